//! The packets: well formed, and wrong where only work shows it.

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
    known: Vec<Known>,
    turn: usize,
}

/// A puzzle that we were given.
struct Known {
    initiator: Hit,
    puzzle: Puzzle,
    group: u8,
    counter: Option<R1Counter>,
    cipher: u16,
    suite: u16,
}

impl Forger {
    pub fn new(kind: Kind, hit: Hit, peer: Option<Hit>) -> Result<Self, Box<dyn std::error::Error>> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let mut random = Random::from_seed(seed);
        let identity = Identity::generate(KeyKind::P384, &mut random)?;
        let dh = DhKey::generate(DhGroup::P384, &mut random);
        Ok(Self { kind, hit, peer, random, identity, dh, known: Vec::new(), turn: 0 })
    }

    /// The next packet; none before there is a puzzle to solve.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        let (random, peer) = (self.stranger(), self.peer);
        match self.kind {
            Kind::I1 => Some(self.i1()),
            Kind::I2 => {
                let hash = self.hash();
                let [random, answer] = [(); 2].map(|()| self.random.vec(hash.len()));
                let solution = Solution { difficulty: 0, reserved: 0, opaque: [0; 2], random, answer };
                let sender = self.stranger();
                Some(self.i2(sender, solution, DhGroup::P384 as u8, None, (4, 13)))
            }
            Kind::Solved => self.solved(),
            Kind::Notify => Some(self.notify(peer.unwrap_or(random))),
            Kind::R1 => Some(self.r1(peer.unwrap_or(random))),
        }
    }

    /// An I1 from a new HIT.
    pub fn i1(&mut self) -> Vec<u8> {
        let groups = Param::DhGroupList(vec![DhGroup::P384 as u8, DhGroup::P256 as u8]);
        self.emit(PacketType::I1, None, vec![groups])
    }

    /// Takes the puzzle of an R1; what came.
    pub fn learn(&mut self, payload: &[u8]) -> PacketType {
        let udp::Payload::Hip(packet) = udp::classify(payload) else { return PacketType::Other(0) };
        let Ok(view) = PacketView::new(packet) else { return PacketType::Other(0) };
        if view.packet_type() == PacketType::R1
            && let Some(known) = known(&view)
        {
            self.known.push(known);
        }
        view.packet_type()
    }

    /// Whether there is none yet. Those that come before the flood are easy; whoever floods uses them as long as they are
    /// good, up to two minutes.
    pub fn wants_puzzles(&self) -> bool {
        self.known.is_empty()
    }

    fn solved(&mut self) -> Option<Vec<u8>> {
        self.turn += 1;
        let known = self.known.get(self.turn % self.known.len().max(1))?;
        let (initiator, group, counter) = (known.initiator, known.group, known.counter);
        let (choice, given) = ((known.cipher, known.suite), known.puzzle.clone());
        let mut search = puzzle::Search::new(self.hash(), given, initiator, self.hit, &mut self.random);
        let solution = search.run(1 << 24)?;
        Some(self.i2(initiator, solution, group, counter, choice))
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
fn known(r1: &PacketView<'_>) -> Option<Known> {
    let params = r1.values().ok()?;
    macro_rules! find {
        ($name:ident) => {
            params.iter().find_map(|p| if let Param::$name(v) = p { Some(v) } else { None })
        };
    }
    Some(Known {
        initiator: r1.receiver(),
        puzzle: find!(Puzzle)?.clone(),
        group: find!(DiffieHellman)?.group,
        counter: find!(R1Counter).copied(),
        cipher: *find!(HipCipher)?.first()?,
        suite: *find!(EspTransform)?.first()?,
    })
}
