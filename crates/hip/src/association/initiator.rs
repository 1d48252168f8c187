//! The Initiator's side: I1, the answer to R1, and R2 (RFC 7401 §6.6, §6.8, §6.10).

use polypath_wire::hip::{
    DiffieHellman, EspInfo, Hit, Kind, Multipath, NatTraversal, NotifyType, Packet, PacketType, PacketView,
    Param, R1Counter, Solution, coverage,
};
use polypath_wire::{Checksum, Duration, Instant};

use super::{Association, Path, State};
use crate::context::{Context, announcement};
use crate::dh::{DhGroup, DhKey};
use crate::error::CryptoError;
use crate::event::{DropReason, Failure, Route};
use crate::identity::PublicIdentity;
use crate::keymat::Keymat;
use crate::locators::PeerLocators;
use crate::puzzle::Search;
use crate::session::{Session, signature_in, verify_signature};
use crate::suite::{EspSuite, HipCipher};

/// How many hashes are tried before other work gets a turn: some milliseconds' worth.
const TRIES_AT_ONCE: u64 = 1 << 14;
const TURN: Duration = Duration::from_millis(1);
/// I1 goes to so many addresses at once, and later to one at a time (RFC 7401 §6.6.1).
const PARALLEL_I1: usize = 3;

/// An R1 that we are answering: its puzzle is being solved.
pub(super) struct Attempt {
    search: Search,
    expires: Instant,
    route: Route,
    r1: R1,
}

/// What we take from an R1.
struct R1 {
    peer: PublicIdentity,
    /// The whole HOST_ID parameter, which HIP_MAC_2 covers.
    host_id: Vec<u8>,
    counter: Option<R1Counter>,
    group: DhGroup,
    public: Vec<u8>,
    cipher: HipCipher,
    suite: EspSuite,
    udp_mode: bool,
    multipath: Option<Multipath>,
    echo_signed: Vec<Vec<u8>>,
    echo_unsigned: Vec<Vec<u8>>,
}

/// The association as our I2 proposes it.
pub(super) struct Draft {
    pub session: Session,
    host_id: Vec<u8>,
    inbound: u32,
    index: usize,
    route: Route,
}

impl Draft {
    pub fn inbound(&self) -> u32 {
        self.inbound
    }
}

impl Association {
    /// Begins, or begins anew: sends I1.
    pub(crate) fn connect(&mut self, ctx: &mut Context<'_>) {
        let groups = ctx.config.dh_groups.iter().map(|g| *g as u8).collect();
        let i1 = Packet::new(PacketType::I1, ctx.identity.hit(), self.peer, vec![Param::DhGroupList(groups)]);
        self.packet = i1.emit(Checksum::Unused).unwrap_or_default();
        self.attempt = None;
        self.drop_draft(ctx);
        self.release(ctx);
        self.go(ctx, State::I1Sent);
        for route in self.routes.iter().take(PARALLEL_I1) {
            ctx.send(*route, &self.packet);
        }
    }

    /// I1 or I2 was not answered.
    pub(super) fn retry(&mut self, ctx: &mut Context<'_>) {
        self.tries += 1;
        if self.tries > ctx.config.retries {
            return self.fail(ctx, Failure::Timeout);
        }
        let route = match &self.draft {
            Some(draft) => Some(draft.route),
            None => self.routes.get(self.tries as usize % self.routes.len().max(1)).copied(),
        };
        if let Some(route) = route {
            ctx.send(route, &self.packet);
        }
        self.timer = Some(ctx.now + ctx.config.retransmit.times(1 << self.tries.min(16)));
    }

    /// Learns whom an opportunistic I1 reached.
    pub(crate) fn name_peer(&mut self, peer: Hit) {
        self.peer = peer;
    }

    pub(super) fn on_r1(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        if !matches!(self.state, State::I1Sent | State::I2Sent) || self.attempt.is_some() {
            return Err(DropReason::State);
        }
        let r1 = R1::check(view)?;
        let counter = r1.0.counter.map(|c| c.counter);
        let newer = match self.state {
            State::I1Sent => counter >= self.r1_counter,
            _ => counter > self.r1_counter,
        };
        if !newer {
            return Err(DropReason::Replay);
        }
        let (identity, params) = r1;
        let r1 = match identity.choose(ctx, &params) {
            Ok(r1) => r1,
            Err(Choice::Drop(reason)) => return Err(reason),
            Err(Choice::Fail(failure)) => {
                self.fail(ctx, failure);
                return Err(DropReason::Proposal);
            }
        };
        self.drop_draft(ctx);
        self.r1_counter = counter;
        let puzzle = params.into_iter().find_map(|p| if let Param::Puzzle(p) = p { Some(p) } else { None });
        let puzzle = puzzle.ok_or(DropReason::Puzzle)?;
        if puzzle.difficulty > ctx.config.max_difficulty {
            self.fail(ctx, Failure::Puzzle);
            return Err(DropReason::Puzzle);
        }
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
            return self.fail(ctx, Failure::Puzzle);
        }
        let Some(solution) = attempt.search.run(TRIES_AT_ONCE) else {
            self.attempt = Some(attempt);
            self.timer = Some(ctx.now + TURN);
            return;
        };
        let Attempt { route, r1, .. } = attempt;
        match self.i2(ctx, route, &r1, solution) {
            Ok((packet, draft)) => {
                self.packet = packet;
                self.draft = Some(draft);
                self.routes.retain(|r| *r != route);
                self.routes.insert(0, route);
                self.go(ctx, State::I2Sent);
                ctx.send(route, &self.packet);
            }
            Err(_) => self.fail(ctx, Failure::NoProposal(NotifyType::INVALID_DH_CHOSEN)),
        }
    }

    fn i2(
        &self,
        ctx: &mut Context<'_>,
        route: Route,
        r1: &R1,
        solution: Solution,
    ) -> Result<(Vec<u8>, Draft), CryptoError> {
        let (ours, hash) = (ctx.identity.hit(), r1.peer.suite().hash());
        let key = DhKey::generate(r1.group, ctx.random);
        let kij = key.agree(&r1.public)?;
        let salt = (solution.random.clone(), solution.answer.clone());
        let keymat = Keymat::new(hash, &kij, &salt.0, &salt.1, ours, self.peer);
        let keys = keymat.hip_keys(r1.cipher, ours, self.peer)?;
        let index = keymat.first_esp_index(r1.cipher);
        let session = Session {
            hash,
            cipher: r1.cipher,
            suite: r1.suite,
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
        let packet = session.seal(packet, ctx.identity, tail)?;
        Ok((packet, Draft { session, host_id: r1.host_id.clone(), inbound, index, route }))
    }

    pub(super) fn drop_draft(&mut self, ctx: &mut Context<'_>) {
        if let Some(draft) = self.draft.take() {
            ctx.spis.remove(&draft.inbound);
        }
    }

    pub(super) fn on_r2(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        let draft = self.draft.as_ref().filter(|_| self.state == State::I2Sent).ok_or(DropReason::State)?;
        draft.session.verify_mac(view, Kind::HIP_MAC_2, &coverage::mac_2(view, &draft.host_id))?;
        verify_signature(&draft.session.peer, view)?;
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let info = params.iter().find_map(|p| if let Param::EspInfo(i) = p { Some(*i) } else { None });
        let info = info.filter(|i| i.old_spi == 0 && usize::from(i.keymat_index) == draft.index);
        let info = info.ok_or(DropReason::Proposal)?;
        let Some(Draft { mut session, inbound, index, .. }) = self.draft.take() else {
            return Err(DropReason::State);
        };
        let keys = session.draw(index, ctx.identity).map_err(|_| DropReason::Crypto)?;
        self.session = Some(session);
        self.accepted_i2 = None;
        self.locators = PeerLocators::new(route.remote.ip());
        self.won = Some(ctx.now);
        self.active = ctx.now;
        self.updates = Default::default();
        self.go(ctx, State::Established);
        self.install(ctx, Path { route, inbound, outbound: info.new_spi, reachable: true }, keys, true);
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

/// Why an R1 is not answered.
enum Choice {
    /// It is not to be believed: wait for a better one.
    Drop(DropReason),
    /// It is genuine, and we have nothing in common.
    Fail(Failure),
}

/// The signer of an R1 and what it holds.
struct Signer {
    peer: PublicIdentity,
    host_id: Vec<u8>,
    counter: Option<R1Counter>,
}

impl R1 {
    /// Checks that the owner of the sender's HIT signed it (RFC 7401 §6.8 steps 4 and 10).
    fn check(view: &PacketView<'_>) -> Result<(Signer, Vec<Param>), DropReason> {
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let host_id = params.iter().find_map(|p| if let Param::HostId(h) = p { Some(h) } else { None });
        let peer =
            PublicIdentity::new(host_id.ok_or(DropReason::Hit)?.clone()).map_err(|_| DropReason::Hit)?;
        if peer.hit() != view.sender() {
            return Err(DropReason::Hit);
        }
        let signature = signature_in(view, Kind::HIP_SIGNATURE_2).ok_or(DropReason::Signature)?;
        peer.verify(&coverage::signature_2(view), &signature).map_err(|_| DropReason::Signature)?;
        let span = view.param(Kind::HOST_ID).map(|p| p.span).unwrap_or_default();
        let counter = params.iter().find_map(|p| if let Param::R1Counter(c) = p { Some(*c) } else { None });
        Ok((Signer { peer, host_id: view.bytes()[span].to_vec(), counter }, params))
    }
}

impl Signer {
    /// Takes the peer's first proposals that we accept (RFC 7401 §6.8 steps 6, 7, 14, 15).
    fn choose(self, ctx: &Context<'_>, params: &[Param]) -> Result<R1, Choice> {
        macro_rules! find {
            ($name:ident) => {
                params.iter().find_map(|p| if let Param::$name(v) = p { Some(v) } else { None })
            };
        }
        let config = ctx.config;
        let missing = Choice::Drop(DropReason::Proposal);
        let fail = |notify| Choice::Fail(Failure::NoProposal(notify));
        let suites = find!(HitSuiteList).ok_or(Choice::Drop(DropReason::Proposal))?;
        if !suites.contains(&ctx.identity.public().suite().list_byte()) {
            return Err(Choice::Fail(Failure::HitSuite));
        }
        let dh = find!(DiffieHellman).ok_or(Choice::Drop(DropReason::Proposal))?;
        let theirs = find!(DhGroupList).ok_or(missing)?;
        let best = theirs.iter().filter_map(|g| DhGroup::from_id(*g)).find(|g| config.dh_groups.contains(g));
        let group = best.ok_or_else(|| fail(NotifyType::NO_DH_PROPOSAL_CHOSEN))?;
        if dh.group != group as u8 {
            // Someone took our preference out of the I1 (RFC 7401 §4.1.7).
            return Err(Choice::Drop(DropReason::Proposal));
        }
        let ciphers = find!(HipCipher).into_iter().flatten().filter_map(|c| HipCipher::from_id(*c));
        let cipher = ciphers.into_iter().find(|c| config.hip_ciphers.contains(c));
        let suites = find!(EspTransform).into_iter().flatten().filter_map(|s| EspSuite::from_number(*s));
        let suite = suites.into_iter().find(|s| config.esp_suites.contains(s));
        let esp = find!(TransportFormatList).is_some_and(|f| f.contains(&Kind::ESP_TRANSFORM));
        let modes = find!(NatTraversalMode);
        Ok(R1 {
            peer: self.peer,
            host_id: self.host_id,
            counter: self.counter,
            group,
            public: dh.public.clone(),
            cipher: cipher.ok_or_else(|| fail(NotifyType::NO_HIP_PROPOSAL_CHOSEN))?,
            suite: suite.filter(|_| esp).ok_or_else(|| fail(NotifyType::NO_ESP_PROPOSAL_CHOSEN))?,
            udp_mode: modes.is_some_and(|m| m.modes.contains(&NatTraversal::UDP_ENCAPSULATION)),
            multipath: find!(Multipath).cloned(),
            echo_signed: echoes(params, Kind::ECHO_REQUEST_SIGNED),
            echo_unsigned: echoes(params, Kind::ECHO_REQUEST_UNSIGNED),
        })
    }
}

fn echoes(params: &[Param], kind: Kind) -> Vec<Vec<u8>> {
    let bytes = |p: &Param| match p {
        Param::EchoRequestSigned(b) | Param::EchoRequestUnsigned(b) => Some(b.clone()),
        _ => None,
    };
    params.iter().filter(|p| p.kind() == kind).filter_map(bytes).collect()
}
