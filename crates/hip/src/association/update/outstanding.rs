//! What is under way: our UPDATEs that are not acknowledged, what waits for them, and our answers to the peer's.

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::Instant;
use polypath_wire::hip::Param;

use super::{MOST_AHEAD, Update, WINDOW};
use crate::association::Path;
use crate::dh::DhKey;
use crate::event::{DropReason, Route};
use crate::load::Bucket;

/// What is under way in both directions.
#[derive(Default)]
pub(in crate::association) struct Updates {
    pub(super) next_id: u32,
    pub(super) pending: Vec<Pending>,
    /// Requests that wait for another one to finish.
    pub(super) waiting: VecDeque<Request>,
    /// The peer's next id, and our answers to its last ones.
    pub(super) peer_next: u32,
    pub(super) answered: BTreeMap<u32, Vec<u8>>,
    /// Behind the newest of our ids that the peer acknowledged.
    acked: u32,
    /// Digests of the last UPDATEs of the peer that were genuine and refused.
    pub(super) refused: VecDeque<[u8; 32]>,
    /// Limits signature checks of others.
    pub(super) checks: Checks,
    /// Whether addresses without a path are announced to the peer.
    pub(super) announces: bool,
    /// Paths that were rekeyed.
    pub(super) retired: Vec<Retired>,
}

/// More than a peer needs that asks for all its paths at once.
pub(super) struct Checks(Bucket);

impl Default for Checks {
    fn default() -> Self {
        Self(Bucket::new(128, 16))
    }
}

impl Checks {
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.0.take(now, 0)
    }
}

/// What the owner of an association may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// A new path with its own SA pair.
    Add(Route),
    /// The peer is to know all our addresses.
    Announce,
    /// Another SPI and new keys for the path with that inbound SPI.
    Rekey {
        /// The path.
        inbound: u32,
        /// Whether from a new Diffie-Hellman exchange.
        new_dh: bool,
    },
    /// The path with that inbound SPI continues elsewhere.
    Move {
        /// The path.
        inbound: u32,
        /// Where.
        route: Route,
    },
    /// The path with that inbound SPI is given up.
    Remove {
        /// The path.
        inbound: u32,
    },
}

impl Request {
    pub(super) fn draws_keys(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Rekey { .. })
    }

    /// Whether it asks for new keys of the path with that inbound SPI.
    pub(super) fn rekeys(&self, path: u32) -> bool {
        matches!(self, Self::Rekey { inbound, .. } if *inbound == path)
    }

    /// Whether it is asked until the association is idle for too long, as the peer may have done its part already.
    pub(super) fn lasts(&self) -> bool {
        matches!(self, Self::Rekey { .. } | Self::Move { .. } | Self::Announce)
    }
}

/// A path with the keys that it had before.
pub(super) struct Retired {
    /// The inbound SPI that replaced its own.
    pub(super) by: u32,
    pub(super) path: Path,
    /// When its SAs go, set once data has come on the new ones: what was sealed before may still be under way.
    pub(super) until: Option<Instant>,
}

/// An UPDATE of ours that is not acknowledged.
pub(super) struct Pending {
    pub(super) id: u32,
    /// What it says, and that as a packet.
    pub(super) params: Vec<Param>,
    pub(super) packet: Vec<u8>,
    pub(super) route: Route,
    pub(super) sent: Instant,
    /// When it left last.
    pub(super) left: Instant,
    pub(super) due: Instant,
    pub(super) tries: u32,
    /// How often in a row it left without an answer while data came from the peer.
    pub(super) unheeded: u32,
    /// A request for new keys that a live peer does not answer holds up no other until it leaves again.
    pub(super) rests: bool,
    pub(super) what: What,
}

pub(super) enum What {
    /// A request, with the SPI that we will receive on, our new key, the first index of KEYMAT that was free, and what is
    /// asked back if it is about a route.
    Request { request: Request, inbound: u32, dh: Option<DhKey>, index: usize, nonce: Option<Vec<u8>> },
    /// An answer that asks for `nonce` back, about the path with that inbound SPI; whether it has new keys, and whether it
    /// left by another route too, so that who has the nonce may be there.
    Answer { inbound: u32, nonce: Vec<u8>, route: Route, rekeyed: bool, strayed: bool },
    /// Asks for `nonce` back from where data of the path with that inbound SPI came.
    Check { inbound: u32, nonce: Vec<u8>, route: Route },
}

impl Pending {
    pub(super) fn request(&self) -> Option<Request> {
        match self.what {
            What::Request { request, .. } => Some(request),
            What::Answer { .. } | What::Check { .. } => None,
        }
    }

    /// Whether it acknowledges the peer's UPDATE `id`.
    fn acknowledges(&self, id: u32) -> bool {
        self.params.iter().any(|p| matches!(p, Param::Ack(ids) if ids.contains(&id)))
    }

    /// Whether the peer draws keys for it, or we did.
    pub(super) fn changes_keys(&self) -> bool {
        match self.what {
            What::Request { request, .. } => !self.rests && request.draws_keys(),
            What::Answer { .. } => true,
            What::Check { .. } => false,
        }
    }
}

impl Updates {
    /// Whether an UPDATE can be new: its own number is near the newest, or it acknowledges one of ours.
    pub(super) fn may_be_new(&self, update: &Update) -> Result<(), DropReason> {
        let ours = || self.pending.iter().any(|p| update.acks.contains(&p.id));
        match update.seq {
            None if update.acks.is_empty() => Err(DropReason::Proposal),
            None => ours().then_some(()).ok_or(DropReason::Replay),
            // One far ahead follows many that were lost.
            Some(id) => {
                let ahead = id.wrapping_sub(self.peer_next) as i32;
                (ahead >= -WINDOW).then_some(()).ok_or(DropReason::Replay)
            }
        }
    }

    /// Whether the peer's UPDATE `id` is newer than all that came before.
    pub(super) fn is_news(&self, id: u32) -> bool {
        id.wrapping_sub(self.peer_next) as i32 >= 0
    }

    /// The peer has our UPDATEs `ids`.
    pub(super) fn note_acks(&mut self, ids: &[u32]) {
        let next = self.next_id;
        for id in ids.iter().filter(|id| (id.wrapping_sub(next) as i32) < 0) {
            let behind = id.wrapping_add(1);
            if behind.wrapping_sub(self.acked) as i32 > 0 {
                self.acked = behind;
            }
        }
    }

    /// That UPDATE of the peer is refused: when it comes again, its signature is known to be good.
    pub(super) fn note_refused(&mut self, digest: [u8; 32]) {
        if !self.refused.contains(&digest) {
            self.refused.truncate(WINDOW as usize - 1);
            self.refused.push_front(digest);
        }
    }

    /// Whether that is asked already; for a path, just now: later its addresses may be others, as seen from there.
    pub(super) fn is_asked(&self, now: Instant, request: Request) -> bool {
        let asked = |p: &Pending| p.request().map(|request| (request, p.sent));
        self.pending.iter().filter_map(asked).any(|(asked, sent)| match (asked, request) {
            (Request::Add(_), _) => asked == request && sent == now,
            (Request::Rekey { inbound: path, .. }, Request::Rekey { inbound, .. }) => path == inbound,
            (Request::Move { .. }, _) => asked == request,
            _ => false,
        })
    }

    /// Of the places to which a path was to be moved the last one counts.
    pub(super) fn supersede(&mut self, request: Request) {
        let Request::Move { inbound: path, .. } = request else { return };
        let older = |r: Request| matches!(r, Request::Move { inbound, .. } if inbound == path);
        self.waiting.retain(|request| !older(*request));
        self.pending.retain(|pending| !pending.request().is_some_and(older));
    }

    /// Our answer to the peer's UPDATE `id` leaves by `route`.
    pub(super) fn note_way(&mut self, id: u32, route: Route) {
        for pending in self.pending.iter_mut().filter(|p| p.acknowledges(id)) {
            if let What::Answer { route: claimed, strayed, .. } = &mut pending.what {
                *strayed |= *claimed != route;
            }
        }
    }

    /// Where the path with that inbound SPI was to be proved before does not matter any more.
    pub(super) fn drop_proofs(&mut self, path: u32) {
        let other =
            |what: &What| !matches!(what, What::Answer { inbound, rekeyed: false, .. } if *inbound == path);
        self.pending.retain(|pending| other(&pending.what));
    }

    /// The path with that inbound SPI needs no proof any more.
    pub(super) fn forget_path(&mut self, path: u32) {
        self.pending.retain(|pending| match pending.what {
            What::Answer { inbound, .. } | What::Check { inbound, .. } => inbound != path,
            What::Request { .. } => true,
        });
    }

    /// Whether a list of our addresses has one of the last ids that the peer is taken to accept.
    pub(super) fn is_last_announced(&self) -> bool {
        let last = |id: u32| id.wrapping_sub(self.acked) as i32 >= MOST_AHEAD;
        self.pending.iter().any(|p| p.request() == Some(Request::Announce) && last(p.id))
    }

    /// Whether there are any under way, and none had to leave again: the answers may be on their way.
    pub(super) fn are_fresh(&self) -> bool {
        !self.pending.is_empty() && self.pending.iter().all(|p| p.tries == 0)
    }

    /// How many ids the next one is behind the newest that the peer acknowledged.
    pub(super) fn ahead(&self) -> i32 {
        self.next_id.wrapping_sub(self.acked) as i32
    }

    pub fn timeout(&self) -> Option<Instant> {
        self.pending.iter().map(|p| p.due).chain(self.retired.iter().filter_map(|r| r.until)).min()
    }

    /// Where the path with that inbound SPI is being moved to.
    pub(super) fn destination(&self, path: u32) -> Option<Route> {
        self.pending.iter().find_map(|p| match p.request() {
            Some(Request::Move { inbound, route }) if inbound == path => Some(route),
            _ => None,
        })
    }

    /// How many old SA pairs are kept of the path with that inbound SPI.
    pub(super) fn old_keys(&self, inbound: u32) -> usize {
        let before = |new: u32| self.retired.iter().find(|r| r.by == new).map(|r| r.path.inbound);
        std::iter::successors(before(inbound), |new| before(*new)).take(self.retired.len()).count()
    }

    /// Our requests that draw keys and are under way.
    pub(super) fn drawing(&self) -> impl Iterator<Item = Request> {
        self.pending.iter().filter_map(Pending::request).filter(Request::draws_keys)
    }

    /// Those that others wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Request> {
        let awake = self.pending.iter().filter(|p| !p.rests);
        awake.filter_map(Pending::request).filter(Request::draws_keys)
    }

    /// The paths that we asked for, with the SPI that we will receive on.
    pub(super) fn adding(&self) -> impl Iterator<Item = (u32, Route)> {
        self.pending.iter().filter_map(|p| match p.what {
            What::Request { request: Request::Add(route), inbound, .. } => Some((inbound, route)),
            _ => None,
        })
    }

    /// The path that we asked for on `route`: the SPI that we will receive on, and where its keys are drawn.
    pub fn asked_on(&self, route: Route) -> Option<(u32, usize)> {
        self.pending.iter().find_map(|p| match p.what {
            What::Request { request: Request::Add(to), inbound, index, .. } if to == route => {
                Some((inbound, index))
            }
            _ => None,
        })
    }

    /// Whether one of them asks for new keys of a path.
    pub(super) fn is_rekeying(&self) -> bool {
        self.awaited().any(|request| matches!(request, Request::Rekey { .. }))
    }

    /// Whether the path with that inbound SPI is being given up.
    pub(super) fn is_removing(&self, inbound: u32) -> bool {
        self.pending.iter().any(|p| p.request() == Some(Request::Remove { inbound }))
    }

    /// Whether it is, or will be.
    pub(super) fn is_leaving(&self, inbound: u32) -> bool {
        self.is_removing(inbound) || self.waiting.contains(&Request::Remove { inbound })
    }

    /// Whether new keys of the path with that inbound SPI were asked for, by us or in a request without its proof.
    pub(super) fn is_changing(&self, path: u32) -> bool {
        self.pending.iter().any(|p| match p.what {
            What::Request { request, .. } => request.rekeys(path) && !p.rests,
            What::Answer { inbound, rekeyed, .. } => rekeyed && inbound == path,
            What::Check { .. } => false,
        })
    }

    /// The path with the inbound SPI `old` has `new` now.
    pub(super) fn rename(&mut self, old: u32, new: u32) {
        for pending in &mut self.pending {
            if let What::Answer { inbound, .. } | What::Check { inbound, .. } = &mut pending.what
                && *inbound == old
            {
                *inbound = new;
            }
        }
        for request in &mut self.waiting {
            match request {
                Request::Remove { inbound } | Request::Move { inbound, .. } if *inbound == old => {
                    *inbound = new
                }
                _ => {}
            }
        }
    }

    /// Whether nothing is under way that `request` depends on, and the peer will take its id.
    pub(super) fn may_go(&self, request: Request) -> bool {
        if self.ahead() >= MOST_AHEAD {
            return false;
        }
        let mut answers = self.pending.iter().filter_map(|p| match p.what {
            What::Answer { rekeyed, .. } => Some(rekeyed),
            What::Request { .. } | What::Check { .. } => None,
        });
        match request {
            Request::Add(_) => !self.is_rekeying() && !answers.any(|rekeyed| rekeyed),
            Request::Rekey { inbound, .. } => {
                self.awaited().next().is_none() && answers.next().is_none() && !self.is_removing(inbound)
            }
            Request::Announce => true,
            Request::Move { inbound, .. } | Request::Remove { inbound } => !self.is_changing(inbound),
        }
    }
}
