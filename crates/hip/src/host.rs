//! One Host Identity with all its associations.

mod renewal;
mod several;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use polypath_wire::hip::{Hit, NotifyType, PacketType, PacketView, Param, udp};
use polypath_wire::{Duration, Instant};

use crate::Random;
use crate::association::update::Request;
use crate::association::{Association, notify};
use crate::config::{Accept, HipConfig};
use crate::context::{Context, Link, Links};
use crate::effort::Effort;
use crate::event::{DropReason, Event, PeerEvent, Route, Transmit};
use crate::identity::Identity;
use crate::responder::{Refused, Responder};
use crate::state::State;
use crate::suite::HitSuite;
use table::Associations;

/// A host: answers I1 without keeping anything, and holds an [`Association`] for each peer.
///
/// It has four kinds of methods:
/// - requests: [`connect`](Self::connect), [`close`](Self::close), [`add_path`](Self::add_path) and the
///   other changes to paths;
/// - inputs: [`handle`](Self::handle) for a packet, [`handle_timeout`](Self::handle_timeout),
///   [`on_data`](Self::on_data);
/// - outputs, to be polled until they give `None` after every request and input:
///   [`poll_transmit`](Self::poll_transmit), then [`poll_event`](Self::poll_event), and at last
///   [`poll_timeout`](Self::poll_timeout);
/// - questions: the rest.
pub struct Host {
    identity: Identity,
    config: HipConfig,
    links: Links,
    addresses: Vec<IpAddr>,
    random: Random,
    responder: Responder,
    /// By name: the peer's HIT, or for a further association one of `others`.
    peers: Associations,
    /// The names of further associations, by the peer's HIT.
    others: BTreeMap<Hit, Vec<Hit>>,
    /// Exchanges that may replace an association whose peer is silent.
    renewals: Associations,
    spis: BTreeSet<u32>,
    outbox: VecDeque<Transmit>,
    events: VecDeque<PeerEvent>,
    dropped: BTreeMap<DropReason, u64>,
    effort: Effort,
}

/// Why nothing was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// No addresses.
    #[error("no route to the peer is known")]
    NoRoute,
    /// The NULL HIT, which only opportunistic mode allows.
    #[error("opportunistic mode is off: the peer's HIT must be known")]
    Opportunistic,
    /// A HIT of a suite that we do not have, or our own.
    #[error("{0} cannot be a peer")]
    Hit(Hit),
}

impl Host {
    /// A host at `now`. `seed` is the source of all its chance; `generation` begins the R1 counter, and
    /// must not fall from one run to the next (seconds since some epoch will do; RFC 7401 §4.1.4).
    pub fn new(identity: Identity, config: HipConfig, seed: [u8; 32], generation: u64, now: Instant) -> Self {
        let mut random = Random::from_seed(seed);
        Self {
            responder: Responder::new(now, generation, &config, &mut random),
            identity,
            config,
            links: Links::new(),
            addresses: Vec::new(),
            random,
            peers: Associations::default(),
            others: BTreeMap::new(),
            renewals: Associations::default(),
            spis: BTreeSet::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            dropped: BTreeMap::new(),
            effort: Effort::default(),
        }
    }

    /// Makes a key and the signatures for the first R1s in advance: some milliseconds of work.
    pub fn prepare(&mut self, now: Instant) {
        let (responder, mut ctx) = self.context(now);
        responder.prepare(&mut ctx);
    }

    /// From now on answers those peers. Associations that there are stay.
    pub fn accept(&mut self, accept: Accept) {
        self.config.accept = accept;
    }

    /// Our HIT.
    pub fn hit(&self) -> Hit {
        self.identity.hit()
    }
    /// The association of that name: the peer's HIT, or one of [`names_of`](Self::names_of).
    pub fn association(&self, name: Hit) -> Option<&Association> {
        self.peers.get(&name)
    }
    /// All associations in the order of their names.
    pub fn associations(&self) -> impl Iterator<Item = &Association> {
        self.peers.iter().map(|(_, association)| association)
    }
    /// How many packets were dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(&reason).copied().unwrap_or(0)
    }
    /// How many public-key operations were done.
    pub fn effort(&self) -> Effort {
        self.effort
    }
    /// How many packets were dropped.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Says what is known of the link of our `address`, or what was `measured` on a path from there: peers are told
    /// so in MULTIPATH.
    pub fn set_link(&mut self, address: IpAddr, link: Link, measured: bool) {
        self.links.insert(address, (link, measured));
    }

    /// All addresses at which peers may ask for paths.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.addresses = addresses;
    }

    /// Tells `peer` of our addresses and their links. With `all`, those without a path are among them from now on
    /// ([`set_addresses`](Self::set_addresses)): it may ask for paths to them.
    pub fn announce(&mut self, now: Instant, peer: Hit, all: bool) {
        self.with(now, peer, |a, ctx| a.announce(ctx, all));
    }

    /// Begins an association with `peer` at any of `routes`, unless there is one. One that nobody has answered yet is asked
    /// for at these instead. The NULL HIT asks whoever answers, if opportunistic mode is on.
    pub fn connect(&mut self, now: Instant, peer: Hit, routes: Vec<Route>) -> Result<(), ConnectError> {
        if routes.is_empty() {
            return Err(ConnectError::NoRoute);
        }
        if peer.is_null() && !self.config.opportunistic {
            return Err(ConnectError::Opportunistic);
        }
        let known = peer.is_null() || peer.is_orchid() && HitSuite::has(peer);
        if !known || peer == self.hit() {
            return Err(ConnectError::Hit(peer));
        }
        let busy = |a: &Association| !matches!(a.state(), State::Closing | State::Closed | State::EFailed);
        if self.peers.get(&peer).is_some_and(busy) {
            self.with(now, peer, |a, ctx| a.ask_at(ctx, routes));
            return Ok(());
        }
        self.peers.put(peer, Association::new(peer, routes, now));
        self.with(now, peer, |a, ctx| a.connect(ctx));
        Ok(())
    }

    /// Ends the association with `peer`.
    pub fn close(&mut self, now: Instant, peer: Hit) {
        self.cancel_renewal(now, peer);
        self.with(now, peer, |a, ctx| a.close(ctx));
    }
    /// Asks `peer` for one more path with its own SA pair.
    pub fn add_path(&mut self, now: Instant, peer: Hit, route: Route) {
        self.with(now, peer, |a, ctx| a.request(ctx, Request::Add(route)));
    }
    /// Gives up the path with that inbound SPI, unless it is the last one.
    pub fn remove_path(&mut self, now: Instant, peer: Hit, inbound: u32) {
        self.with(now, peer, |a, ctx| a.request(ctx, Request::Remove { inbound }));
    }
    /// The path with that inbound SPI continues at `route`.
    pub fn move_path(&mut self, now: Instant, peer: Hit, inbound: u32, route: Route) {
        self.with(now, peer, |a, ctx| a.request(ctx, Request::Move { inbound, route }));
    }
    /// New keys and SPIs for the path with that inbound SPI, from a new Diffie-Hellman exchange if so said.
    pub fn rekey(&mut self, now: Instant, peer: Hit, inbound: u32, new_dh: bool) {
        self.with(now, peer, |a, ctx| a.request(ctx, Request::Rekey { inbound, new_dh }));
    }
    /// `bytes` of authentic user data arrived from `peer` on the SA `inbound`.
    pub fn on_data(&mut self, now: Instant, peer: Hit, inbound: u32, bytes: u64) {
        self.with(now, peer, |a, ctx| a.on_sa_data(ctx, inbound, bytes));
    }
    /// Of the authentic data from `peer` on the SA `inbound`, that with the largest sequence number came on `route`. If the peer is not
    /// known to be there, it is asked to prove it; once it has, the path leads there.
    pub fn on_source(&mut self, now: Instant, peer: Hit, inbound: u32, route: Route) {
        self.with(now, peer, |a, ctx| a.on_source(ctx, inbound, route));
    }
    /// What a packet and its answer took just now on the path with that inbound SPI: answers to our UPDATEs are waited for
    /// as long.
    pub fn on_round_trip(&mut self, now: Instant, peer: Hit, inbound: u32, round_trip: Duration) {
        self.with(now, peer, |a, _| a.set_round_trip(inbound, round_trip));
    }
    /// Whether `bytes` of user data may go to `peer` on the path with that inbound SPI. Until the peer
    /// has proved that it is there, that takes credit (RFC 8046 §5.6).
    pub fn may_send(&mut self, now: Instant, peer: Hit, inbound: u32, bytes: u64) -> bool {
        self.with(now, peer, |a, ctx| a.may_send(ctx, inbound, bytes)).unwrap_or(false)
    }

    /// A payload of UDP or of IP protocol 139 that came on `route`. Whether it changed anything that has to be polled: what is
    /// dropped is counted and sets no timer, and seldom is there a word about it.
    pub fn handle(&mut self, now: Instant, route: Route, payload: &[u8]) -> bool {
        let taken = self.receive(now, route, payload);
        if let Err(reason) = taken {
            *self.dropped.entry(reason).or_default() += 1;
        }
        taken.is_ok() || !self.outbox.is_empty() || !self.events.is_empty()
    }

    /// The packet in a payload, if it is well formed, for us, and of a possible peer.
    fn check<'a>(&self, route: Route, payload: &'a [u8]) -> Result<PacketView<'a>, DropReason> {
        let packet = match (route.is_udp(), udp::classify(payload)) {
            (false, _) => payload,
            (true, udp::Payload::Hip(packet)) => packet,
            (true, _) => return Err(DropReason::Malformed),
        };
        let view = PacketView::new(packet).map_err(|_| DropReason::Malformed)?;
        let checksum = route.checksum(true).ok_or(DropReason::Malformed)?;
        view.verify(checksum).map_err(|_| DropReason::Checksum)?;
        let (sender, receiver) = (view.sender(), view.receiver());
        let opportunistic =
            receiver.is_null() && view.packet_type() == PacketType::I1 && self.config.opportunistic;
        if receiver != self.hit() && !opportunistic || sender == self.hit() {
            return Err(DropReason::NotForUs);
        }
        if !sender.is_orchid() || !HitSuite::has(sender) {
            return Err(DropReason::Hit);
        }
        Ok(view)
    }

    fn receive(&mut self, now: Instant, route: Route, payload: &[u8]) -> Result<(), DropReason> {
        let view = self.check(route, payload)?;
        let sender = view.sender();
        match view.packet_type() {
            PacketType::I1 => self.on_i1(now, route, &view),
            PacketType::I2 => self.on_i2(now, route, &view),
            packet_type => {
                if packet_type == PacketType::R1 {
                    self.adopt(now, route, &view);
                }
                if matches!(packet_type, PacketType::R1 | PacketType::R2)
                    && let Some(result) = self.with_renewal(now, sender, |a, ctx| a.handle(ctx, route, &view))
                {
                    return result;
                }
                let name = self.named(sender, route, &view);
                self.with(now, name, |a, ctx| a.handle(ctx, route, &view)).ok_or(DropReason::NoAssociation)?
            }
        }
    }

    /// The first to answer an opportunistic I1 with an R1 of its own is the peer.
    fn adopt(&mut self, now: Instant, route: Route, r1: &PacketView<'_>) {
        let sender = r1.sender();
        if !self.peers.contains(&sender)
            && self.with(now, Hit::NULL, |a, ctx| a.is_answered_by(ctx, route, r1)) == Some(true)
            && let Some(mut association) = self.peers.take(&Hit::NULL)
        {
            association.name_peer(sender);
            self.peers.put(sender, association);
        }
    }

    /// Answers with an R1 and keeps nothing (RFC 7401 §6.7).
    fn on_i1(&mut self, now: Instant, route: Route, view: &PacketView<'_>) -> Result<(), DropReason> {
        let peer = view.sender();
        if view.unknown_critical().is_some() {
            return Err(DropReason::Unknown);
        }
        if !self.config.accept.allows(peer) && !self.config.tell_refused {
            return Err(DropReason::Policy);
        }
        let asking = self.peers.get(&peer).is_some_and(|a| a.state() == State::I1Sent);
        if asking && self.hit() < peer {
            return Err(DropReason::State);
        }
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let groups = params.iter().find_map(|p| if let Param::DhGroupList(g) = p { Some(g) } else { None });
        let groups = groups.ok_or(DropReason::Proposal)?;
        let known = self.knows(peer);
        let (responder, mut ctx) = self.context(now);
        if !responder.limit.allow(now, route.remote.ip(), known, ctx.config.r1_rate) {
            responder.load.count(now, ctx.config);
            return Err(DropReason::Policy);
        }
        let r1 = responder.r1(&mut ctx, peer, groups, route).map_err(|_| DropReason::Crypto)?;
        ctx.send(route, &r1);
        Ok(())
    }

    fn on_i2(&mut self, now: Instant, route: Route, view: &PacketView<'_>) -> Result<(), DropReason> {
        let peer = view.sender();
        if view.unknown_critical().is_some() {
            return Err(DropReason::Unknown);
        }
        let allowed = self.config.accept.allows(peer);
        if !allowed && !self.config.tell_refused {
            return Err(DropReason::Policy);
        }
        let made = |name: &Hit| self.peers.get(name).is_some_and(|a| a.is_from_i2(view));
        let repeated = self.names_of(peer).find(made);
        if let Some(name) = repeated {
            self.with(now, name, |a, ctx| a.repeat_r2(ctx, route));
            return Ok(());
        }
        if self.with(now, peer, |a, ctx| a.has_just_won(ctx) || a.prevails(ctx)) == Some(true) {
            return Err(DropReason::State);
        }
        let known = self.knows(peer);
        let (responder, mut ctx) = self.context(now);
        let accepted = match responder.check(&mut ctx, route, view, known) {
            Ok(accepted) if allowed => accepted,
            Ok(_) => {
                ctx.event(peer, Event::Refused { route });
                self.refuse(now, route, peer, Some(NotifyType::BLOCKED_BY_POLICY));
                return Err(DropReason::Policy);
            }
            Err(Refused(reason, notify_type)) => {
                self.refuse(now, route, peer, notify_type);
                return Err(reason);
            }
        };
        let is_there = |name: Hit| self.peers.contains(&name);
        if !self.name_taken(peer, route).is_some_and(is_there) {
            self.make_room(now)?;
        }
        self.cancel_renewal(now, peer);
        let name = self.name_taken(peer, route).unwrap_or_else(|| self.new_name(peer));
        if !self.peers.contains(&name) {
            self.peers.put(name, Association::new(peer, vec![route], now));
        }
        self.with(now, name, |a, ctx| a.accept(ctx, route, accepted))
            .unwrap_or(Err(DropReason::NoAssociation))
    }

    /// Whether `peer` is one of a list, or there is an association with it.
    fn knows(&self, peer: Hit) -> bool {
        self.config.accept.names(peer) || self.peers.contains(&peer)
    }

    /// Says why an I2 is refused, within the limit of R1s to its address.
    fn refuse(&mut self, now: Instant, route: Route, peer: Hit, notify_type: Option<NotifyType>) {
        let (responder, mut ctx) = self.context(now);
        let may = |_: &_| responder.limit.allow(now, route.remote.ip(), false, ctx.config.r1_rate);
        if let Some(notify_type) = notify_type.filter(may)
            && let Some(packet) = notify(&mut ctx, peer, notify_type, Vec::new())
        {
            ctx.send(route, &packet);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for name in self.peers.due(now) {
            self.with(now, name, |a, ctx| a.handle_timeout(ctx));
        }
        for peer in self.renewals.due(now) {
            self.with_renewal(now, peer, |a, ctx| a.handle_timeout(ctx));
        }
    }

    /// The names of the associations for which something is due at `now`.
    pub fn due(&self, now: Instant) -> BTreeSet<Hit> {
        &self.peers.due(now) | &self.renewals.due(now)
    }

    /// The next packet to be sent.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }
    /// The next event, with the peer it is about.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }
    /// When [`Self::handle_timeout`] must be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.peers.next().into_iter().chain(self.renewals.next()).min()
    }

    fn context(&mut self, now: Instant) -> (&mut Responder, Context<'_>) {
        let ctx = Context {
            now,
            name: None,
            config: &self.config,
            identity: &self.identity,
            links: &self.links,
            addresses: &self.addresses,
            random: &mut self.random,
            spis: &mut self.spis,
            outbox: &mut self.outbox,
            events: &mut self.events,
            effort: &mut self.effort,
        };
        (&mut self.responder, ctx)
    }

    /// Lets the association of that name do something; forgets it when it is over.
    fn with<T>(
        &mut self,
        now: Instant,
        name: Hit,
        act: impl FnOnce(&mut Association, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut association = self.peers.take(&name)?;
        let (_, mut ctx) = self.context(now);
        ctx.name = Some(name).filter(|_| name != association.peer());
        let result = act(&mut association, &mut ctx);
        match association.state() {
            State::Unassociated => self.forget_name(association.peer(), name),
            _ if name.is_null() => self.peers.put(association.peer(), association),
            _ => self.peers.put(name, association),
        }
        Some(result)
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("identity", &self.identity)
            .field("peers", &self.associations().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
