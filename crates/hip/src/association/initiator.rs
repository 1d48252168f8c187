//! The Initiator's side: I1, the answer to R1, and R2 (RFC 7401 §6.6, §6.8, §6.10).

use polypath_wire::hip::{
    DiffieHellman, EspInfo, Hit, Kind, NatTraversal, NotifyType, Packet, PacketType, PacketView, Param,
    Solution, coverage,
};
use polypath_wire::{Checksum, Duration, Instant};

use super::r1::{Choice, R1, counter_of};
use super::wait::wait;
use super::{Association, Path};
use crate::context::{Context, announcement};
use crate::error::CryptoError;
use crate::event::{DropReason, Failure, Route};
use crate::keymat::Keymat;
use crate::locators::PeerLocators;
use crate::puzzle::Search;
use crate::responder::is_usable;
use crate::session::Session;
use crate::state::State;

/// How many hashes are tried before other work gets a turn: some milliseconds' worth.
const TRIES_AT_ONCE: u64 = 1 << 14;
const TURN: Duration = Duration::from_millis(1);
/// Most proposals of ours that may still be answered.
const MOST_DRAFTS: usize = 8;
/// I1 goes to this many pairs of addresses at once, and when it is repeated to these and one other (RFC 7401 §6.6.1).
const PARALLEL_I1: usize = 3;

/// An R1 that we are answering: its puzzle is being solved.
pub(super) struct Attempt {
    search: Search,
    expires: Instant,
    route: Route,
    r1: R1,
}

/// The association as our I2 proposes it.
pub(super) struct Draft {
    pub session: Session,
    host_id: Vec<u8>,
    inbound: u32,
    index: usize,
    route: Route,
    /// The I2.
    packet: Vec<u8>,
}

impl Draft {
    pub fn inbound(&self) -> u32 {
        self.inbound
    }
}

impl Association {
    /// Begins, or begins anew: sends I1.
    pub(crate) fn connect(&mut self, ctx: &mut Context<'_>) {
        self.drop_drafts(ctx);
        self.release(ctx);
        self.round_trip = Duration::ZERO;
        self.asked_at = Some(ctx.now);
        self.met.clear();
        self.go(ctx, State::I1Sent);
        let i1 = self.i1(ctx);
        for route in self.routes.iter().take(PARALLEL_I1) {
            ctx.send(*route, &i1);
        }
    }

    /// Asks at `routes` instead, if nobody has answered yet: at once at new ones, and from the beginning at new addresses.
    pub(crate) fn ask_at(&mut self, ctx: &mut Context<'_>, routes: Vec<Route>) {
        if self.state != State::I1Sent || routes == self.routes {
            return;
        }
        let before = std::mem::replace(&mut self.routes, routes);
        let is_asked = |route: &Route| before.iter().any(|asked| asked.remote == route.remote);
        if !self.routes.iter().all(is_asked) {
            self.tries = 0;
            return self.connect(ctx);
        }
        let i1 = self.i1(ctx);
        for route in self.routes.iter().filter(|route| !before.contains(route)).take(PARALLEL_I1) {
            ctx.send(*route, &i1);
        }
    }

    fn i1(&self, ctx: &Context<'_>) -> Vec<u8> {
        let groups = ctx.config.dh_groups.iter().map(|g| *g as u8).collect();
        let i1 = Packet::new(PacketType::I1, ctx.identity.hit(), self.peer, vec![Param::DhGroupList(groups)]);
        i1.emit(Checksum::Unused).unwrap_or_default()
    }

    /// I1 or I2 was not answered: the next R1 is taken, if one came. Else both are sent again, as our I2 may have answered
    /// an R1 that was not the peer's, or one from before the peer was restarted.
    pub(super) fn retry(&mut self, ctx: &mut Context<'_>) {
        self.tries += 1;
        if self.tries > ctx.config.retries {
            return self.fail(ctx, self.doubt.unwrap_or(Failure::Timeout));
        }
        self.wait_for_answer(ctx);
        while let Some((route, r1)) = self.offers.next() {
            if PacketView::new(&r1).is_ok_and(|r1| self.take_r1(ctx, route, &r1).is_ok()) {
                return;
            }
        }
        match (self.drafts.last(), self.doubt) {
            // Whoever silences the peer's answer may let our I2 through later: what is in force would end for it.
            (Some(_), _) if self.replaces => return self.fail(ctx, Failure::Timeout),
            (Some(draft), _) => ctx.send(draft.route, &draft.packet),
            (None, Some(doubt)) => return self.fail(ctx, doubt),
            (None, None) => {}
        }
        if self.replaces {
            return;
        }
        // The routes that were asked first, of which each may work by now, and of the others one in turn.
        let (first, others) = self.routes.split_at(self.routes.len().min(PARALLEL_I1));
        let next = others.get((self.tries as usize - 1) % others.len().max(1));
        let i1 = self.i1(ctx);
        first.iter().chain(next).for_each(|route| ctx.send(*route, &i1));
    }

    /// Sets the timer of I1 or I2.
    fn wait_for_answer(&mut self, ctx: &Context<'_>) {
        self.timer = Some(ctx.now + wait(ctx.config, self.round_trip, self.tries));
    }

    /// Learns which peer an opportunistic I1 reached.
    pub(crate) fn name_peer(&mut self, peer: Hit) {
        self.peer = peer;
    }

    /// Whether an R1 of its sender answers us, and its sender signed it.
    pub(crate) fn is_answered_by(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        r1: &PacketView<'_>,
    ) -> bool {
        let asked = self.routes.iter().any(|r| r.remote == route.remote);
        asked && self.is_signed_r1(ctx, r1)
    }

    /// Whether an R1 is none of an earlier generation, and its sender signed it.
    pub(crate) fn is_signed_r1(&mut self, ctx: &mut Context<'_>, r1: &PacketView<'_>) -> bool {
        let old = counter_of(r1).map(|c| c.counter) < self.r1_counter;
        !old && self.favours.take(ctx.now, 0) && R1::check(ctx, r1).is_ok()
    }

    /// Takes the first R1 from where we asked, and one of a later generation; others wait (see [`super::offers`]).
    pub(super) fn on_r1(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        self.meet(ctx, route);
        if !matches!(self.state, State::I1Sent | State::I2Sent) {
            return Err(DropReason::State);
        }
        let counter = counter_of(view).map(|c| c.counter);
        if counter < self.r1_counter || self.offers.is_taken(view) {
            return Err(DropReason::Replay);
        }
        let asked = self.routes.iter().any(|r| r.remote == route.remote);
        let better = self.state == State::I1Sent || counter > self.r1_counter;
        if asked && better && self.attempt.is_none() {
            return self.take_r1(ctx, route, view);
        }
        self.offers.keep(route, view).then_some(()).ok_or(DropReason::Policy)
    }

    /// Begins to answer an R1, if it is genuine. One that is genuine and of no use may be old, or not for us: it ends the
    /// attempt only if no better one comes.
    fn take_r1(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        if !self.favours.take(ctx.now, 0) {
            return Err(DropReason::Policy);
        }
        let (signer, params) = R1::check(ctx, view)?;
        let counter = signer.counter();
        let r1 = match signer.choose(ctx, &params) {
            Ok(r1) => r1,
            Err(Choice::Drop(reason)) => return Err(reason),
            Err(Choice::Fail(failure)) => {
                self.doubt = Some(failure);
                return Err(DropReason::Proposal);
            }
        };
        let puzzle = params.into_iter().find_map(|p| if let Param::Puzzle(p) = p { Some(p) } else { None });
        let puzzle = puzzle.ok_or(DropReason::Puzzle)?;
        if puzzle.difficulty > ctx.config.max_difficulty {
            self.doubt = Some(Failure::Puzzle);
            return Err(DropReason::Puzzle);
        }
        if self.state == State::I1Sent {
            self.round_trip = ctx.now.since(self.since);
        }
        self.r1_counter = counter;
        self.offers.take(view);
        let expires = ctx.now + puzzle.valid_for();
        let hash = r1.peer.suite().hash();
        let search = Search::new(hash, puzzle, ctx.identity.hit(), self.peer, ctx.random);
        self.attempt = Some(Attempt { search, expires, route, r1 });
        self.search(ctx);
        Ok(())
    }

    /// Goes on solving the puzzle; sends I2 when it is solved.
    pub(super) fn search(&mut self, ctx: &mut Context<'_>) {
        let Some(mut attempt) = self.attempt.take() else { return };
        if ctx.now > attempt.expires {
            return self.despair(ctx, Failure::Puzzle);
        }
        let Some(solution) = attempt.search.run(TRIES_AT_ONCE) else {
            self.attempt = Some(attempt);
            self.timer = Some(ctx.now + TURN);
            return;
        };
        let Attempt { route, r1, .. } = attempt;
        match self.i2(ctx, route, &r1, solution) {
            Ok(draft) => self.propose(ctx, draft),
            Err(_) => self.despair(ctx, Failure::NoProposal(NotifyType::INVALID_DH_CHOSEN)),
        }
    }

    /// This R1 led to nothing; the next one is tried.
    fn despair(&mut self, ctx: &Context<'_>, failure: Failure) {
        self.doubt = Some(failure);
        self.timer = Some(ctx.now);
    }

    /// Sends an I2. Others before it may still be answered.
    fn propose(&mut self, ctx: &mut Context<'_>, draft: Draft) {
        self.routes.retain(|r| *r != draft.route);
        self.routes.insert(0, draft.route);
        self.go(ctx, State::I2Sent);
        self.wait_for_answer(ctx);
        ctx.send(draft.route, &draft.packet);
        if self.drafts.len() == MOST_DRAFTS {
            ctx.spis.remove(&self.drafts.remove(0).inbound);
        }
        self.drafts.push(draft);
    }

    fn i2(
        &self,
        ctx: &mut Context<'_>,
        route: Route,
        r1: &R1,
        solution: Solution,
    ) -> Result<Draft, CryptoError> {
        let (ours, hash) = (ctx.identity.hit(), r1.peer.suite().hash());
        let key = ctx.dh_key(r1.group);
        let kij = ctx.agree(&key, &r1.public)?;
        let salt = (solution.random.clone(), solution.answer.clone());
        let keymat = Keymat::new(hash, &kij, &salt.0, &salt.1, ours, self.peer);
        let keys = keymat.hip_keys(r1.cipher, ours, self.peer)?;
        let index = keymat.first_esp_index(r1.cipher);
        let session = Session {
            hash,
            cipher: r1.cipher,
            suite: r1.suite,
            group: r1.group,
            keymat,
            next_index: index,
            drawn: Vec::new(),
            keys,
            peer: r1.peer.clone(),
            salt,
        };
        let inbound = ctx.new_spi();
        let mut params = vec![
            Param::EspInfo(EspInfo { keymat_index: index as u16, old_spi: 0, new_spi: inbound }),
            Param::Solution(solution),
            Param::DiffieHellman(DiffieHellman { group: r1.group as u8, public: key.public().to_vec() }),
            Param::HipCipher(vec![r1.cipher as u16]),
            host_id(ctx, &session)?,
            Param::TransportFormatList(vec![Kind::ESP_TRANSFORM]),
            Param::EspTransform(r1.suite.number().into_iter().collect()),
        ];
        params.extend(r1.counter.map(Param::R1Counter));
        if r1.udp_mode && route.is_udp() {
            params
                .push(Param::NatTraversalMode(NatTraversal { modes: vec![NatTraversal::UDP_ENCAPSULATION] }));
        }
        params.extend(r1.echo_signed.iter().cloned().map(Param::EchoResponseSigned));
        if r1.multipath.is_some() {
            params.extend(announcement(ctx.config, ctx.links, &[route.local.ip()]).map(Param::Multipath));
        }
        let tail = r1.echo_unsigned.iter().cloned().map(Param::EchoResponseUnsigned).collect();
        let packet = Packet::new(PacketType::I2, ours, self.peer, params);
        let packet = session.seal(ctx, packet, tail)?;
        Ok(Draft { session, host_id: r1.host_id.clone(), inbound, index, route, packet })
    }

    /// Forgets what an exchange has computed and received.
    pub(super) fn drop_drafts(&mut self, ctx: &mut Context<'_>) {
        (self.attempt, self.doubt) = (None, None);
        self.offers = Default::default();
        for draft in self.drafts.drain(..) {
            ctx.spis.remove(&draft.inbound);
        }
    }

    /// The R2, wherever it came from: the peer is where its R1 came from and our I2 went.
    pub(super) fn on_r2(&mut self, ctx: &mut Context<'_>, view: &PacketView<'_>) -> Result<(), DropReason> {
        if self.state != State::I2Sent {
            return Err(DropReason::State);
        }
        let answers = |draft: &Draft| {
            let covered = coverage::mac_2(view, &draft.host_id);
            draft.session.verify_mac(view, Kind::HIP_MAC_2, &covered).is_ok()
        };
        let n = self.drafts.iter().position(answers).ok_or(DropReason::Mac)?;
        let draft = &self.drafts[n];
        ctx.verify_signature(&draft.session.peer, view)?;
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let info = params.iter().find_map(|p| if let Param::EspInfo(i) = p { Some(*i) } else { None });
        let fits = |i: &EspInfo| i.old_spi == 0 && usize::from(i.keymat_index) == draft.index;
        let info = info.filter(|i| fits(i) && is_usable(i.new_spi)).ok_or(DropReason::Proposal)?;
        let Draft { mut session, inbound, index, route, .. } = self.drafts.remove(n);
        self.drop_drafts(ctx);
        let keys = session.draw(index, ctx.identity).map_err(|_| DropReason::Crypto)?;
        self.session = Some(session);
        self.accepted_i2 = None;
        self.locators = PeerLocators::new(route.remote.ip(), true);
        self.won = Some(ctx.now);
        self.active = ctx.now;
        self.updates = Default::default();
        let round_trip = ctx.now.since(self.since);
        self.go(ctx, State::Established);
        self.install(ctx, Path::new(route, inbound, info.new_spi, true, round_trip), keys, None, true);
        let multipath =
            params.into_iter().find_map(|p| if let Param::Multipath(m) = p { Some(m) } else { None });
        self.learn_multipath(ctx, multipath);
        Ok(())
    }
}

/// Our HOST_ID, encrypted if so configured.
fn host_id(ctx: &mut Context<'_>, session: &Session) -> Result<Param, CryptoError> {
    let host_id = Param::HostId(ctx.identity.public().host_id().clone());
    if !ctx.config.encrypt_host_id {
        return Ok(host_id);
    }
    let mut plain = Vec::new();
    host_id.emit(&mut plain);
    let sealed = session.cipher.encrypt(&session.keys.outgoing.encryption, ctx.random.bytes(), &plain)?;
    Ok(Param::Encrypted(sealed))
}
