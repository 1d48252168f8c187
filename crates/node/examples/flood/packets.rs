//! The packets: well formed, and wrong where only work shows it.

use std::collections::VecDeque;

use polypath_hip::dh::{DhGroup, DhKey};
use polypath_hip::suite::{Hash, HitSuite};
use polypath_hip::{Identity, KeyKind, Random, puzzle};
use polypath_wire::Checksum;
use polypath_wire::hip::{
    DiffieHellman, EspInfo, Hit, Kind as ParamKind, Notification, NotifyType, Packet, PacketType, PacketView,
    Param, Puzzle, R1Counter, Signature, Solution, udp,
};

use crate::Kind;

/// Makes packets.
pub struct Forger {
    kind: Kind,
    hit: Hit,
    peer: Option<Hit>,
    random: Random,
    identity: Identity,
    /// One of each: what is the same in all of them costs nothing again.
    dh: DhKey,
    known: VecDeque<Known>,
    /// Least zero bits of a solution.
    bits: u8,
    /// Of the puzzle that was given last, bits.
    difficulty: Option<u8>,
}

/// How often a puzzle may be answered badly before it is void.
const GOOD_FOR: u32 = 4;
/// Most puzzles that are kept.
const MOST: usize = 1024;

/// A puzzle that we were given.
struct Known {
    /// The source that asked.
    source: usize,
    answered: u32,
    initiator: Hit,
    puzzle: Puzzle,
    group: u8,
    counter: Option<R1Counter>,
    cipher: u16,
    suite: u16,
}

impl Forger {
    /// `peer` is the HIT that NOTIFY and R1 claim; `bits`, the least zero bits of solutions.
    pub fn new(
        kind: Kind,
        hit: Hit,
        peer: Option<Hit>,
        bits: u8,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let mut random = Random::from_seed(seed);
        let identity = Identity::generate(KeyKind::P384, &mut random)?;
        let dh = DhKey::generate(DhGroup::P384, &mut random);
        Ok(Self { kind, hit, peer, random, identity, dh, known: VecDeque::new(), bits, difficulty: None })
    }

    /// The next packet and the source that it leaves; none if there is no puzzle to solve. `anew`: no puzzle is answered
    /// more often than it is good for.
    pub fn next(&mut self, anew: bool) -> Option<(usize, Vec<u8>)> {
        let (random, peer) = (self.stranger(), self.peer);
        let packet = match self.kind {
            Kind::I1 => self.i1(),
            Kind::I2 => {
                let hash = self.hash();
                let [random, answer] = [(); 2].map(|()| self.random.vec(hash.len()));
                let solution = Solution { difficulty: 0, reserved: 0, opaque: [0; 2], random, answer };
                let sender = self.stranger();
                self.i2(sender, solution, DhGroup::P384 as u8, None, (4, 13))
            }
            Kind::Solved => return self.solved(anew),
            Kind::Notify => self.notify(peer.unwrap_or(random)),
            Kind::R1 => self.r1(peer.unwrap_or(random)),
        };
        Some((0, packet))
    }

    /// An I1 from a new HIT.
    pub fn i1(&mut self) -> Vec<u8> {
        let groups = Param::DhGroupList(vec![DhGroup::P384 as u8, DhGroup::P256 as u8]);
        self.emit(PacketType::I1, None, vec![groups])
    }

    /// Takes the puzzle of an R1 that came to `source`; what came.
    pub fn learn(&mut self, source: usize, payload: &[u8]) -> PacketType {
        let udp::Payload::Hip(packet) = udp::classify(payload) else { return PacketType::Other(0) };
        let Ok(view) = PacketView::new(packet) else { return PacketType::Other(0) };
        if view.packet_type() == PacketType::R1
            && self.known.len() < MOST
            && let Some(known) = known(source, &view)
        {
            self.difficulty = Some(known.puzzle.difficulty);
            self.known.push_back(known);
        }
        view.packet_type()
    }

    /// Whether there is none yet. Those that come before the flood are easy; whoever floods uses them as long as they are
    /// good, up to two minutes.
    pub fn wants_puzzles(&self) -> bool {
        self.known.is_empty()
    }

    /// Difficulty of the puzzle that was given last, bits.
    pub fn difficulty(&self) -> Option<u8> {
        self.difficulty
    }

    fn solved(&mut self, anew: bool) -> Option<(usize, Vec<u8>)> {
        let mut known = self.known.pop_front()?;
        let (source, initiator, group, counter) = (known.source, known.initiator, known.group, known.counter);
        let choice = (known.cipher, known.suite);
        let solution = self.solve(&known)?;
        known.answered += 1;
        if !anew || known.answered < GOOD_FOR {
            self.known.push_back(known);
        }
        Some((source, self.i2(initiator, solution, group, counter, choice)))
    }

    /// Another solution of that puzzle.
    fn solve(&mut self, known: &Known) -> Option<Solution> {
        let asked = known.puzzle.difficulty;
        let puzzle = Puzzle { difficulty: asked.max(self.bits), ..known.puzzle.clone() };
        let mut search =
            puzzle::Search::new(self.hash(), puzzle, known.initiator, self.hit, &mut self.random);
        Some(Solution { difficulty: asked, ..search.run(1 << 28)? })
    }

    fn i2(
        &mut self,
        sender: Hit,
        solution: Solution,
        group: u8,
        counter: Option<R1Counter>,
        (cipher, suite): (u16, u16),
    ) -> Vec<u8> {
        if group != self.dh.group() as u8
            && let Some(group) = DhGroup::from_id(group)
        {
            self.dh = DhKey::generate(group, &mut self.random);
        }
        let mut params = vec![
            Param::EspInfo(EspInfo { keymat_index: 0, old_spi: 0, new_spi: self.random.u32() }),
            Param::Solution(solution),
            Param::DiffieHellman(DiffieHellman { group, public: self.dh.public().to_vec() }),
            Param::HipCipher(vec![cipher]),
            Param::HostId(self.identity.public().host_id().clone()),
            Param::TransportFormatList(vec![ParamKind::ESP_TRANSFORM]),
            Param::EspTransform(vec![suite]),
            Param::HipMac(self.random.vec(48)),
            self.signature(),
        ];
        params.extend(counter.map(Param::R1Counter));
        self.emit(PacketType::I2, Some(sender), params)
    }

    fn notify(&mut self, sender: Hit) -> Vec<u8> {
        let said = Notification { notify_type: NotifyType::BLOCKED_BY_POLICY, data: Vec::new() };
        let params = vec![Param::Notification(said), self.signature()];
        self.emit(PacketType::Notify, Some(sender), params)
    }

    fn r1(&mut self, sender: Hit) -> Vec<u8> {
        let random = self.random.vec(self.hash().len());
        let Param::HipSignature(signature) = self.signature() else { unreachable!("it made one") };
        let params = vec![
            Param::Puzzle(Puzzle { difficulty: 0, lifetime: 37, opaque: [0; 2], random }),
            Param::HostId(self.identity.public().host_id().clone()),
            Param::HipSignature2(signature),
        ];
        self.emit(PacketType::R1, Some(sender), params)
    }

    fn signature(&mut self) -> Param {
        Param::HipSignature(Signature { algorithm: 7, signature: self.random.vec(96) })
    }

    fn emit(&mut self, packet_type: PacketType, sender: Option<Hit>, params: Vec<Param>) -> Vec<u8> {
        let sender = sender.unwrap_or_else(|| self.stranger());
        let packet = Packet::new(packet_type, sender, self.hit, params);
        [&udp::HIP_MARKER[..], &packet.emit(Checksum::Unused).unwrap_or_default()].concat()
    }

    /// A HIT of nobody.
    fn stranger(&mut self) -> Hit {
        let mut hit = self.identity.hit();
        self.random.fill(&mut hit.0[4..]);
        hit
    }

    /// The hash of the host's puzzles.
    fn hash(&self) -> Hash {
        HitSuite::from_id(self.hit.suite()).map_or(Hash::Sha384, HitSuite::hash)
    }
}

/// What an R1 asks for.
fn known(source: usize, r1: &PacketView<'_>) -> Option<Known> {
    let params = r1.values().ok()?;
    macro_rules! find {
        ($name:ident) => {
            params.iter().find_map(|p| if let Param::$name(v) = p { Some(v) } else { None })
        };
    }
    Some(Known {
        source,
        answered: 0,
        initiator: r1.receiver(),
        puzzle: find!(Puzzle)?.clone(),
        group: find!(DiffieHellman)?.group,
        counter: find!(R1Counter).copied(),
        cipher: *find!(HipCipher)?.first()?,
        suite: *find!(EspTransform)?.first()?,
    })
}
