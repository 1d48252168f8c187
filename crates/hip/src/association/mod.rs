//! The association with one peer: the states of RFC 7401 §4.4 and what moves it between them.

mod ahead;
mod close;
mod guest;
mod initiator;
mod notify;
mod offers;
mod path;
mod r1;
pub(crate) mod update;
mod wait;

use polypath_wire::hip::{Hit, Multipath, PacketType, PacketView, Param};
use polypath_wire::{Duration, Instant};

use crate::context::{Context, announcement};
use crate::event::{DropReason, Event, Failure, Route, SaPair};
use crate::keymat::{EspKeys, Pair};
use crate::load::Bucket;
use crate::locators::{Credit, PeerLocators};
use crate::responder::{Accepted, i2_digest};
use crate::session::{Session, seal};
use crate::state::State;
use ahead::Met;
use initiator::{Attempt, Draft};
pub(crate) use notify::notify;
use offers::Offers;
pub use path::Path;
use update::Updates;

/// One association.
pub struct Association {
    peer: Hit,
    state: State,
    /// Where the peer may be found; the first is the one in use.
    routes: Vec<Route>,
    /// Since when it has been in its state.
    since: Instant,
    /// When the state times out.
    timer: Option<Instant>,
    /// How often `packet` was sent.
    tries: u32,
    /// What is sent again: I1, I2, R2 or CLOSE.
    packet: Vec<u8>,
    /// How long the answer to our I1 took.
    round_trip: Duration,
    attempt: Option<Attempt>,
    /// When I1 left, and the routes without a path by which R1s answered it.
    asked_at: Option<Instant>,
    met: Vec<Met>,
    /// R1s that may have to be answered too.
    offers: Offers,
    /// What our I2s propose; the last one is in use.
    drafts: Vec<Draft>,
    /// Why the attempt fails unless a better R1 comes.
    doubt: Option<Failure>,
    session: Option<Session>,
    paths: Vec<Path>,
    updates: Updates,
    /// The digest of the peer's I2, if the peer began.
    accepted_i2: Option<[u8; 32]>,
    r1_counter: Option<u64>,
    /// It is to replace an association in force: who asks for it says when I1 goes again.
    replaces: bool,
    /// When our own I2 was answered.
    won: Option<Instant>,
    /// When an I2 of the peer came first that lost against ours.
    rival: Option<Instant>,
    close_nonce: Vec<u8>,
    /// Limits signature checks of packets that anybody may have sent, and answers that are sent again.
    favours: Bucket,
    /// Whether user data ever came from the peer.
    carried: bool,
    active: Instant,
    /// When user data last came from the peer.
    data_at: Instant,
    /// When an UPDATE of the peer came.
    heard: Instant,
    /// When paths are looked for that were withdrawn long ago.
    leftover_at: Option<Instant>,
    notified: Option<Instant>,
    peer_multipath: Option<Multipath>,
    locators: PeerLocators,
    credit: Credit,
}

/// More than an honest peer needs.
const FAVOURS: Bucket = Bucket::new(16, 4);

impl Association {
    pub(crate) fn new(peer: Hit, routes: Vec<Route>, now: Instant) -> Self {
        Self {
            peer,
            state: State::Unassociated,
            routes,
            since: now,
            timer: None,
            tries: 0,
            packet: Vec::new(),
            round_trip: Duration::ZERO,
            attempt: None,
            asked_at: None,
            met: Vec::new(),
            offers: Offers::default(),
            drafts: Vec::new(),
            doubt: None,
            session: None,
            paths: Vec::new(),
            updates: Updates::default(),
            accepted_i2: None,
            r1_counter: None,
            replaces: false,
            won: None,
            rival: None,
            close_nonce: Vec::new(),
            favours: FAVOURS,
            carried: false,
            active: now,
            data_at: now,
            heard: now,
            leftover_at: None,
            notified: None,
            peer_multipath: None,
            locators: PeerLocators::default(),
            credit: Credit::default(),
        }
    }

    /// The peer's HIT.
    pub fn peer(&self) -> Hit {
        self.peer
    }
    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Its paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }
    /// What the peer said about multipath; `None` if it knows only one path.
    pub fn multipath(&self) -> Option<&Multipath> {
        self.peer_multipath.as_ref()
    }
    /// The peer's locators, as far as we know them.
    pub fn locators(&self) -> &PeerLocators {
        &self.locators
    }
    /// When the last UPDATE came that the peer made for this association and that was not seen before; at first, when it began.
    pub fn heard(&self) -> Instant {
        self.heard
    }
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let dues = [self.timer, self.updates.timeout(), self.locators.timeout(), self.leftover_at];
        dues.into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.locators.expire(ctx.now) {
            self.review_paths(ctx);
        }
        if self.leftover_at.is_some_and(|at| at <= ctx.now) {
            self.remove_leftovers(ctx);
        }
        if self.updates.timeout().is_some_and(|at| at <= ctx.now) {
            self.remove_retired(ctx);
            self.retransmit_updates(ctx);
        }
        if self.timer.is_none_or(|at| at > ctx.now) {
            return;
        }
        match self.state {
            State::I1Sent | State::I2Sent if self.attempt.is_some() => self.search(ctx),
            State::I1Sent | State::I2Sent => self.retry(ctx),
            State::R2Sent => self.go(ctx, State::Established),
            State::Established => self.on_idle(ctx),
            State::Closing => self.retry_close(ctx),
            State::Closed | State::EFailed | State::Unassociated => self.go(ctx, State::Unassociated),
        }
    }

    /// A packet for this association, well formed and with a good checksum.
    pub(crate) fn handle(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        if let Some(kind) = view.unknown_critical() {
            self.on_unknown(ctx, route, view, kind.0);
            return Err(DropReason::Unknown);
        }
        match view.packet_type() {
            PacketType::R1 => self.on_r1(ctx, route, view),
            PacketType::R2 => self.on_r2(ctx, view),
            PacketType::Update => self.on_update(ctx, route, view),
            PacketType::Notify => self.on_notify(ctx, route, view),
            PacketType::Close => self.on_close(ctx, route, view),
            PacketType::CloseAck => self.on_close_ack(ctx, view),
            PacketType::I1 | PacketType::I2 | PacketType::Other(_) => Err(DropReason::Unknown),
        }
    }

    /// User data, or an UPDATE, arrived from the peer: it has what it needs, and is not idle.
    fn on_data(&mut self, ctx: &mut Context<'_>) {
        if self.state == State::R2Sent {
            let round_trip = ctx.now.since(self.since);
            self.paths.iter_mut().for_each(|path| path.round_trip = round_trip);
            self.go(ctx, State::Established);
        }
        self.active = ctx.now;
    }

    /// Whether `bytes` may go on the path with that inbound SPI; to an address that the peer has not
    /// proved, only as many as it has sent us (RFC 8046 §5.6).
    pub(crate) fn may_send(&mut self, ctx: &mut Context<'_>, inbound: u32, bytes: u64) -> bool {
        let path = self.paths.iter().find(|p| p.inbound == inbound);
        path.is_some_and(|p| p.reachable || !p.withdrawn && self.credit.spend(ctx.now, bytes))
    }

    /// User data arrived on the SA `spi`.
    pub(crate) fn on_sa_data(&mut self, ctx: &mut Context<'_>, spi: u32, bytes: u64) {
        self.on_data(ctx);
        (self.carried, self.data_at) = (true, ctx.now);
        self.credit.earn(ctx.now, bytes);
        self.retire(ctx, spi);
    }

    /// Whether user data came from the peer while an association may be idle.
    fn is_live(&self, ctx: &Context<'_>) -> bool {
        ctx.now.since(self.data_at) < ctx.config.unused_lifetime
    }

    /// Whether the peer may send from there: on a path, at an address of its own, or where we looked for it.
    fn may_be_at(&self, route: Route) -> bool {
        let from = route.remote.ip();
        self.routes.iter().any(|r| r.remote.ip() == from)
            || self.paths.iter().any(|p| p.route.remote.ip() == from)
            || self.locators.iter().any(|l| l.address == from)
    }

    fn go(&mut self, ctx: &mut Context<'_>, to: State) {
        let from = std::mem::replace(&mut self.state, to);
        let config = ctx.config;
        self.timer = match to {
            State::Unassociated => None,
            State::I1Sent | State::I2Sent | State::Closing => Some(ctx.now + config.retransmit),
            State::R2Sent => Some(ctx.now + config.patience()),
            State::Established => Some(ctx.now + config.unused_lifetime),
            State::Closed => Some(ctx.now + config.unused_lifetime + config.segment_lifetime.times(2)),
            State::EFailed => Some(ctx.now + config.failed_hold),
        };
        if to != from {
            (self.tries, self.since) = (0, ctx.now);
        }
        self.rival = None;
        if matches!(to, State::Closing | State::Closed | State::EFailed | State::Unassociated) {
            self.release(ctx);
        }
        if from != to {
            ctx.event(self.peer, Event::State { from, to });
        }
    }

    fn fail(&mut self, ctx: &mut Context<'_>, failure: Failure) {
        self.drop_drafts(ctx);
        ctx.event(self.peer, Event::Failed(failure));
        self.go(ctx, State::EFailed);
    }

    /// Installs an SA pair and its path, with the inbound SPI of the pair that it replaces.
    fn install(
        &mut self,
        ctx: &mut Context<'_>,
        path: Path,
        keys: Pair<EspKeys>,
        replaces: Option<u32>,
        confirmed: bool,
    ) {
        let Some(session) = &self.session else { return };
        let Path { route, inbound, outbound, .. } = path;
        let suite = session.suite;
        let pair = SaPair { inbound, outbound, suite, keys, route, replaces, confirmed };
        ctx.event(self.peer, Event::SaAdded(pair));
        self.met.retain(|met| !met.is_on(route));
        self.paths.push(path);
    }

    /// Withdraws all SAs and forgets unfinished UPDATEs.
    fn release(&mut self, ctx: &mut Context<'_>) {
        for path in std::mem::take(&mut self.paths) {
            ctx.spis.remove(&path.inbound);
            ctx.event(self.peer, Event::SaRemoved { inbound: path.inbound, outbound: path.outbound });
        }
        self.drop_updates(ctx);
    }

    /// Whether this I2 is the one that made the association (RFC 7401 §6.9 step 4).
    pub(crate) fn is_from_i2(&self, view: &PacketView<'_>) -> bool {
        matches!(self.state, State::R2Sent | State::Established)
            && self.accepted_i2.is_some_and(|digest| digest == i2_digest(view))
    }

    /// Whether an I2 of the peer may still be under way that lost against ours when both began at once.
    /// RFC 7401 §4.4.3 would let such a latecomer replace the association at our end only.
    pub(crate) fn has_just_won(&self, ctx: &Context<'_>) -> bool {
        self.won.is_some_and(|at| ctx.now.since(at) < ctx.config.patience()) && ctx.identity.hit() < self.peer
    }

    /// Whether an I2 that loses against ours is dropped (RFC 7401 §4.4.4, table 4). A peer that has ours answers it
    /// and does not send its own again; one that does so for long, while ours is not answered, was restarted in between.
    pub(crate) fn prevails(&mut self, ctx: &Context<'_>) -> bool {
        let precedes = self.state == State::I2Sent && ctx.identity.hit() < self.peer;
        let first = *self.rival.get_or_insert(ctx.now);
        precedes && (self.tries < 2 || ctx.now.since(first) < ctx.config.retransmit.times(2))
    }

    /// Whether the peer is known to be at the other end of `route`.
    pub(crate) fn is_at(&self, route: Route) -> bool {
        self.paths.iter().any(|p| p.route.remote == route.remote)
    }

    /// Whether the MAC of a packet is made with its keys.
    pub(crate) fn is_keyed_for(&self, view: &PacketView<'_>) -> bool {
        self.session.as_ref().is_some_and(|s| s.check_mac(view).is_ok())
    }

    /// It is to replace another one in force: I1 leaves no more often than somebody asks for it. R1s of earlier generations than that one has
    /// seen count too: a peer that lost its state may have lost its clock, from which its generations begin.
    pub(crate) fn succeed(&mut self) {
        self.replaces = true;
    }

    /// Whether our I1 has not been answered.
    pub(crate) fn waits_for_r1(&self) -> bool {
        self.state == State::I1Sent && self.attempt.is_none()
    }

    /// Forgets everything without a word to the peer: another association takes its place, or none.
    pub(crate) fn forget(&mut self, ctx: &mut Context<'_>) {
        self.drop_drafts(ctx);
        self.release(ctx);
        self.state = State::Unassociated;
    }

    /// The same I2 came again: the R2 was lost.
    pub(crate) fn repeat_r2(&mut self, ctx: &mut Context<'_>, route: Route) {
        if !self.favours.take(ctx.now, 0) {
            return;
        }
        ctx.send(route, &self.packet);
        if self.state == State::R2Sent {
            self.timer = Some(ctx.now + ctx.config.patience());
        }
    }

    /// An I2 passed every check: this is the association from now on (RFC 7401 §6.9 steps 18 to 21).
    pub(crate) fn accept(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        mut accepted: Accepted,
    ) -> Result<(), DropReason> {
        let esp = accepted.session.draw(accepted.index, ctx.identity).map_err(|_| DropReason::Crypto)?;
        let inbound = ctx.new_spi();
        let info =
            polypath_wire::hip::EspInfo { keymat_index: accepted.index as u16, old_spi: 0, new_spi: inbound };
        let mut params = vec![Param::EspInfo(info)];
        if accepted.multipath.is_some() {
            params.extend(announcement(ctx.config, ctx.links, &[route.local.ip()]).map(Param::Multipath));
        }
        let Ok(packet) = r2(ctx, &accepted.session, self.peer, params) else {
            ctx.spis.remove(&inbound);
            return Err(DropReason::Crypto);
        };
        self.release(ctx);
        self.drop_drafts(ctx);
        self.carried = false;
        self.packet = packet;
        self.session = Some(accepted.session);
        self.accepted_i2 = Some(accepted.digest);
        self.locators = PeerLocators::new(route.remote.ip(), accepted.proved);
        self.won = None;
        self.asked_at = None;
        self.routes = vec![route];
        self.active = ctx.now;
        self.updates = Updates::default();
        ctx.send(route, &self.packet);
        self.go(ctx, State::R2Sent);
        let path = Path::new(route, inbound, accepted.outbound, accepted.proved, Duration::ZERO);
        self.install(ctx, path, esp, None, false);
        if !accepted.proved {
            self.ask_for_proof(ctx, inbound, route);
        }
        self.learn_multipath(ctx, accepted.multipath);
        Ok(())
    }

    fn learn_multipath(&mut self, ctx: &mut Context<'_>, multipath: Option<Multipath>) {
        self.peer_multipath = multipath.filter(|_| ctx.config.max_paths > 1);
        if let Some(multipath) = self.peer_multipath.clone() {
            ctx.event(self.peer, Event::Multipath(multipath));
        }
    }
}

/// An R2: its MAC covers our Host Identity too (RFC 7401 §5.2.13).
fn r2(
    ctx: &mut Context<'_>,
    session: &Session,
    peer: Hit,
    params: Vec<Param>,
) -> Result<Vec<u8>, crate::CryptoError> {
    use polypath_wire::hip::{Packet, coverage};
    let packet = Packet::new(PacketType::R2, ctx.identity.hit(), peer, params);
    let mut host_id = Vec::new();
    Param::HostId(ctx.identity.public().host_id().clone()).emit(&mut host_id);
    let mac = |bytes: &[u8]| {
        let covered = PacketView::new(bytes).map(|view| coverage::mac_2(&view, &host_id));
        Param::HipMac2(session.hash.mac(&session.keys.outgoing.integrity, &covered.unwrap_or_default()))
    };
    seal(ctx, packet, mac, Vec::new())
}

impl std::fmt::Debug for Association {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.peer, self.state, self.paths)
    }
}
