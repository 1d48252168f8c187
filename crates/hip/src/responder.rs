//! The Responder before it knows anybody: R1 packets prepared in advance, and I2 packets checked
//! without having kept anything about their sender (RFC 7401 §6.7, §6.9, appendix A).
//!
//! The puzzle's I is a MAC over both HITs, K and the opaque field with a secret of this generation, so an I2 proves by
//! itself that it answers one of our R1s. The opaque field is a mark of where the R1 went, so that nobody elsewhere gets
//! the puzzle of somebody else's HIT. An I2 from elsewhere is taken, but who sent it may not be there.
//!
//! A puzzle is good for a few bad answers only, and keys are computed for a limited number of I2s a second.

use std::collections::BTreeMap;
use std::sync::Arc;

use polypath_crypto::equal;
use polypath_wire::hip::{
    DiffieHellman, EspInfo, Hit, HostId, Kind, Multipath, NatTraversal, NotifyType, Packet, PacketType,
    PacketView, Param, Puzzle, R1Counter, Solution, coverage,
};
use polypath_wire::{Checksum, Instant};
use zeroize::Zeroizing;

use crate::config::HipConfig;
use crate::context::Context;
use crate::dh::{DhGroup, DhKey};
use crate::error::CryptoError;
use crate::event::{DropReason, Route};
use crate::identity::{Identity, PublicIdentity};
use crate::keymat::Keymat;
use crate::load::{Bucket, Failures, Load, RateLimit, Used};
use crate::puzzle;
use crate::session::Session;
use crate::suite::{EspSuite, Hash, HipCipher, HitSuite};

pub(crate) struct Responder {
    current: Generation,
    previous: Option<Generation>,
    began: Instant,
    pub load: Load,
    pub limit: RateLimit,
    used: Used,
    /// Limits the I2s whose keys are computed.
    work: Bucket,
}

/// Everything that R1s of one generation have in common.
struct Generation {
    counter: u64,
    /// How many generations the keys have served.
    keys_age: u32,
    secret: Zeroizing<[u8; 32]>,
    keys: BTreeMap<DhGroup, Arc<DhKey>>,
    templates: BTreeMap<Form, Template>,
    failures: Failures,
}

/// What distinguishes the R1s of one generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    group: DhGroup,
    difficulty: u8,
    udp: bool,
}

/// A signed R1 without receiver, opaque data and I.
#[derive(Clone)]
struct Template {
    packet: Vec<u8>,
    puzzle_at: usize,
}

/// An I2 that passed every check.
pub(crate) struct Accepted {
    pub session: Session,
    pub outbound: u32,
    pub index: usize,
    pub multipath: Option<Multipath>,
    /// Whether it came from where the R1 went that it answers.
    pub proved: bool,
    /// What identifies this I2 when it comes again.
    pub digest: [u8; 32],
}

/// Why an I2 was refused, and what its sender may be told once it has solved the puzzle.
pub(crate) struct Refused(pub DropReason, pub Option<NotifyType>);

impl From<DropReason> for Refused {
    fn from(reason: DropReason) -> Self {
        Self(reason, None)
    }
}

/// The puzzle is good for 2^(37-32) = 32 s on the Initiator's side.
const PUZZLE_LIFETIME: u8 = 37;

impl Generation {
    /// The R1 of that form, made when it is first wanted.
    fn template(&mut self, form: Form, ctx: &mut Context<'_>) -> Result<&Template, CryptoError> {
        if !self.templates.contains_key(&form) {
            let made = template(self, form, ctx)?;
            self.templates.insert(form, made);
        }
        Ok(&self.templates[&form])
    }

    /// I of the puzzle for `initiator`.
    fn random(&self, hash: Hash, initiator: Hit, responder: Hit, difficulty: u8, opaque: [u8; 2]) -> Vec<u8> {
        hash.mac(&*self.secret, &[&initiator.0[..], &responder.0, &[difficulty], &opaque].concat())
    }
}

impl Responder {
    /// `first` is the generation counter to begin with; it must not fall from one run to the next.
    pub fn new(now: Instant, first: u64, config: &HipConfig, random: &mut crate::Random) -> Self {
        Self {
            current: Generation {
                counter: first,
                keys_age: 0,
                secret: Zeroizing::new(random.bytes()),
                keys: BTreeMap::new(),
                templates: BTreeMap::new(),
                failures: Failures::default(),
            },
            previous: None,
            began: now,
            load: Load::new(config),
            limit: RateLimit::new(random.bytes()),
            used: Used::default(),
            work: Bucket::new(config.i2_rate, config.i2_rate),
        }
    }

    /// Begins a new generation when the time has come. Lazily: nothing happens while nobody asks.
    fn rotate(&mut self, ctx: &mut Context<'_>) {
        let age = ctx.now.since(self.began);
        if age < ctx.config.puzzle_generation {
            return;
        }
        self.began = ctx.now;
        let worn = self.current.keys_age + 1 >= ctx.config.dh_generations;
        let next = Generation {
            counter: self.current.counter + 1,
            keys_age: if worn { 0 } else { self.current.keys_age + 1 },
            secret: Zeroizing::new(ctx.random.bytes()),
            keys: if worn { BTreeMap::new() } else { self.current.keys.clone() },
            templates: BTreeMap::new(),
            failures: Failures::default(),
        };
        let last = std::mem::replace(&mut self.current, next);
        self.previous = (age < ctx.config.puzzle_generation.times(2)).then_some(last);
        self.used.rotate();
    }

    /// The R1 for an I1 from `initiator` that lists `groups`.
    pub fn r1(
        &mut self,
        ctx: &mut Context<'_>,
        initiator: Hit,
        groups: &[u8],
        route: Route,
    ) -> Result<Vec<u8>, CryptoError> {
        self.rotate(ctx);
        let difficulty = self.load.count(ctx.now, ctx.config);
        let ours = &ctx.config.dh_groups;
        let common = ours.iter().find(|g| groups.contains(&(**g as u8)));
        let group = *common.or(ours.first()).ok_or(CryptoError::Unsupported(0))?;
        let form = Form { group, difficulty, udp: route.is_udp() };
        let opaque = self.limit.mark(route.remote.ip());
        let generation = &mut self.current;
        let Template { mut packet, puzzle_at: at } = generation.template(form, ctx)?.clone();
        packet[24..40].copy_from_slice(&initiator.0);
        let hash = ctx.identity.public().suite().hash();
        let random = generation.random(hash, initiator, ctx.identity.hit(), difficulty, opaque);
        packet[at + 2..at + 4].copy_from_slice(&opaque);
        packet[at + 4..at + 4 + random.len()].copy_from_slice(&random);
        Ok(packet)
    }

    /// Makes what the first I1s will be answered with.
    pub fn prepare(&mut self, ctx: &mut Context<'_>) {
        for (group, udp) in ctx.config.dh_groups.first().into_iter().flat_map(|g| [(*g, true), (*g, false)]) {
            // What fails now fails again when it is needed, and is reported then.
            let _ = self.current.template(Form { group, difficulty: ctx.config.calm_difficulty, udp }, ctx);
        }
    }

    /// Checks an I2 from start to end, the cheap things first (RFC 7401 §6.9). Half of the work that may be done at once
    /// is kept for peers that are `known`.
    pub fn check(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
        known: bool,
    ) -> Result<Accepted, Refused> {
        let result = self.look_at(ctx, route, view, known);
        if result.is_err() {
            self.load.count(ctx.now, ctx.config);
        }
        result
    }

    fn look_at(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
        known: bool,
    ) -> Result<Accepted, Refused> {
        self.rotate(ctx);
        let (solution, counter) = solution_in(view).ok_or(DropReason::Puzzle)?;
        let generations = [Some(&mut self.current), self.previous.as_mut()].into_iter().flatten();
        let generation = solved(generations, ctx.identity, view.sender(), &solution, counter)?;
        if !generation.failures.allow(&solution.random) {
            return Err(DropReason::Puzzle.into());
        }
        let used = solution_digest(view.sender(), &solution);
        if self.used.contains(&used) {
            return Err(DropReason::Replay.into());
        }
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let offer = Offer::read(&params)?;
        let kept = if known { 0 } else { ctx.config.i2_rate / 2 };
        if !self.work.take(ctx.now, kept) {
            return Err(DropReason::Policy.into());
        }
        let session = establish(ctx, generation, view, &offer);
        let session = session.inspect_err(|_| generation.failures.count(&solution.random))?;
        self.used.insert(used);
        let (index, digest) = (offer.esp_info.keymat_index.into(), i2_digest(view));
        let (outbound, multipath) = (offer.esp_info.new_spi, offer.multipath);
        let proved = self.limit.mark(route.remote.ip()) == solution.opaque;
        Ok(Accepted { session, outbound, index, multipath, proved, digest })
    }
}

/// The one of `generations` whose puzzle was solved.
fn solved<'a>(
    mut generations: impl Iterator<Item = &'a mut Generation>,
    identity: &Identity,
    initiator: Hit,
    solution: &Solution,
    counter: Option<u64>,
) -> Result<&'a mut Generation, DropReason> {
    let (hash, responder) = (identity.public().suite().hash(), identity.hit());
    let ours = |g: &&mut Generation| {
        counter.is_none_or(|c| c == g.counter) && {
            let random = g.random(hash, initiator, responder, solution.difficulty, solution.opaque);
            equal(&random, &solution.random)
        }
    };
    let generation = generations.find(ours).ok_or(DropReason::Puzzle)?;
    let solved = puzzle::is_solved(hash, solution, initiator, responder);
    solved.then_some(generation).ok_or(DropReason::Puzzle)
}

/// SOLUTION and R1_COUNTER of an I2, and nothing else of it.
fn solution_in(view: &PacketView<'_>) -> Option<(Solution, Option<u64>)> {
    let value = |kind| view.param(kind).and_then(|p| Param::parse(kind, p.contents).ok());
    let Some(Param::Solution(solution)) = value(Kind::SOLUTION) else { return None };
    let counter = match value(Kind::R1_COUNTER) {
        Some(Param::R1Counter(counter)) => Some(counter.counter),
        _ => None,
    };
    Some((solution, counter))
}

/// Whether a peer may have that SPI: those below 256 are reserved (RFC 4303 §2.1).
pub(crate) fn is_usable(spi: u32) -> bool {
    spi > 255
}

fn template(generation: &mut Generation, form: Form, ctx: &mut Context<'_>) -> Result<Template, CryptoError> {
    let Form { group, difficulty, udp } = form;
    let key = generation.keys.entry(group).or_insert_with(|| Arc::new(ctx.dh_key(group))).clone();
    let (config, public) = (ctx.config, ctx.identity.public());
    let puzzle = Puzzle {
        difficulty,
        lifetime: PUZZLE_LIFETIME,
        opaque: [0; 2],
        random: vec![0; public.suite().hash().len()],
    };
    let mut params = vec![
        Param::Puzzle(puzzle),
        Param::DhGroupList(config.dh_groups.iter().map(|g| *g as u8).collect()),
        Param::DiffieHellman(DiffieHellman { group: group as u8, public: key.public().to_vec() }),
        Param::HipCipher(config.hip_ciphers.iter().map(|c| *c as u16).collect()),
        Param::HostId(public.host_id().clone()),
        Param::HitSuiteList(HitSuite::supported().map(HitSuite::list_byte).collect()),
        Param::TransportFormatList(vec![Kind::ESP_TRANSFORM]),
        Param::EspTransform(config.offered_suites().into_iter().filter_map(EspSuite::number).collect()),
    ];
    if config.send_r1_counter {
        params.push(Param::R1Counter(R1Counter { reserved: 0, counter: generation.counter }));
    }
    if udp {
        params.push(Param::NatTraversalMode(NatTraversal { modes: vec![NatTraversal::UDP_ENCAPSULATION] }));
    }
    params.extend(crate::context::announcement(config, ctx.links, &[]).map(Param::Multipath));
    let mut packet = Packet::new(PacketType::R1, public.hit(), Hit::NULL, params);
    let covered = packet.emit(Checksum::Unused).map_err(|_| CryptoError::Key)?;
    packet.push(Param::HipSignature2(ctx.sign(&covered)?));
    let bytes = packet.emit(Checksum::Unused).map_err(|_| CryptoError::Key)?;
    let view = PacketView::new(&bytes).map_err(|_| CryptoError::Key)?;
    let puzzle_at = view.param(Kind::PUZZLE).map_or(0, |p| p.span.start + 4);
    Ok(Template { packet: bytes, puzzle_at })
}

/// What an I2 says.
struct Offer<'a> {
    esp_info: EspInfo,
    solution: &'a Solution,
    dh: &'a DiffieHellman,
    cipher: u16,
    host_id: Option<&'a HostId>,
    encrypted: Option<&'a [u8]>,
    suite: u16,
    multipath: Option<Multipath>,
}

impl<'a> Offer<'a> {
    fn read(params: &'a [Param]) -> Result<Self, DropReason> {
        macro_rules! find {
            ($name:ident) => {
                params.iter().find_map(|p| if let Param::$name(v) = p { Some(v) } else { None })
            };
        }
        let one = |list: Option<&Vec<u16>>| match list.map(Vec::as_slice) {
            Some(&[choice]) => Ok(choice),
            _ => Err(DropReason::Proposal),
        };
        let formats = find!(TransportFormatList).ok_or(DropReason::Proposal)?;
        if formats.first() != Some(&Kind::ESP_TRANSFORM) {
            return Err(DropReason::Proposal);
        }
        Ok(Self {
            esp_info: *find!(EspInfo).filter(|i| is_usable(i.new_spi)).ok_or(DropReason::Proposal)?,
            solution: find!(Solution).ok_or(DropReason::Puzzle)?,
            dh: find!(DiffieHellman).ok_or(DropReason::Proposal)?,
            cipher: one(find!(HipCipher))?,
            host_id: find!(HostId),
            encrypted: find!(Encrypted).map(Vec::as_slice),
            suite: one(find!(EspTransform))?,
            multipath: find!(Multipath).cloned(),
        })
    }
}

/// Computes the keys and checks everything that needs them.
fn establish(
    ctx: &mut Context<'_>,
    generation: &Generation,
    view: &PacketView<'_>,
    offer: &Offer<'_>,
) -> Result<Session, Refused> {
    let refuse = |notify| Refused(DropReason::Proposal, Some(notify));
    let cipher = HipCipher::from_id(offer.cipher).filter(|c| ctx.config.hip_ciphers.contains(c));
    let cipher = cipher.ok_or(refuse(NotifyType::INVALID_HIP_CIPHER_CHOSEN))?;
    let suite = EspSuite::from_number(offer.suite).filter(|s| ctx.config.esp_suites.contains(s));
    let suite = suite.ok_or(refuse(NotifyType::INVALID_ESP_TRANSFORM_CHOSEN))?;
    let key = DhGroup::from_id(offer.dh.group).and_then(|g| generation.keys.get(&g));
    let key = key.ok_or(refuse(NotifyType::INVALID_DH_CHOSEN))?;
    let (group, kij) = (key.group(), ctx.agree(key, &offer.dh.public).map_err(|_| DropReason::Crypto)?);
    let (ours, peers) = (ctx.identity.hit(), view.sender());
    let hash = ctx.identity.public().suite().hash();
    let salt = (offer.solution.random.clone(), offer.solution.answer.clone());
    let keymat = Keymat::new(hash, &kij, &salt.0, &salt.1, ours, peers);
    let keys = keymat.hip_keys(cipher, ours, peers).map_err(|_| DropReason::Crypto)?;
    let mac = view.param(Kind::HIP_MAC).ok_or(DropReason::Mac)?.contents;
    if !hash.verify_mac(&keys.incoming.integrity, &coverage::mac(view), mac) {
        // Before anything is deciphered: what fails there must not tell a forger how.
        return Err(DropReason::Mac.into());
    }
    let host_id = match (offer.host_id, offer.encrypted) {
        (Some(host_id), _) => host_id.clone(),
        (None, Some(sealed)) => decrypt_host_id(cipher, &keys.incoming.encryption, sealed)?,
        (None, None) => return Err(DropReason::Proposal.into()),
    };
    let peer = PublicIdentity::new(host_id).map_err(|_| DropReason::Hit)?;
    if peer.hit() != peers {
        return Err(Refused(DropReason::Hit, Some(NotifyType::INVALID_HIT)));
    }
    let next_index = keymat.first_esp_index(cipher);
    if usize::from(offer.esp_info.keymat_index) != next_index || offer.esp_info.old_spi != 0 {
        return Err(refuse(NotifyType::INVALID_SYNTAX));
    }
    let session =
        Session { hash, cipher, suite, group, keymat, next_index, drawn: Vec::new(), keys, peer, salt };
    ctx.verify_signature(&session.peer, view)?;
    Ok(session)
}

fn decrypt_host_id(cipher: HipCipher, key: &[u8], sealed: &[u8]) -> Result<HostId, Refused> {
    let failed = || Refused(DropReason::Crypto, Some(NotifyType::ENCRYPTION_FAILED));
    let plain = cipher.decrypt(key, sealed).map_err(|_| failed())?;
    let header = plain.first_chunk().ok_or_else(failed)?;
    let [a, b, c, d] = *header;
    let contents = plain.get(4..4 + usize::from(u16::from_be_bytes([c, d]))).ok_or_else(failed)?;
    match Param::parse(Kind(u16::from_be_bytes([a, b])), contents) {
        Ok(Param::HostId(host_id)) => Ok(host_id),
        _ => Err(failed()),
    }
}

/// What identifies an I2 however it travelled: the digest of all of it but the checksum.
pub(crate) fn i2_digest(view: &PacketView<'_>) -> [u8; 32] {
    sha256(&[&coverage::before(view, Kind(u16::MAX), &[])])
}

fn solution_digest(initiator: Hit, solution: &Solution) -> [u8; 32] {
    sha256(&[&initiator.0, &solution.random, &solution.answer])
}

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    *Hash::Sha256.digest(parts).as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}
