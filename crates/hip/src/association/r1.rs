//! What an R1 says, and what we take of it (RFC 7401 §6.8).

use polypath_wire::hip::{Kind, Multipath, NatTraversal, NotifyType, PacketView, Param, R1Counter, coverage};

use crate::context::Context;
use crate::dh::DhGroup;
use crate::event::{DropReason, Failure};
use crate::identity::PublicIdentity;
use crate::suite::{EspSuite, HipCipher};

/// What we take from an R1.
pub(super) struct R1 {
    pub peer: PublicIdentity,
    /// The whole HOST_ID parameter, which HIP_MAC_2 covers.
    pub host_id: Vec<u8>,
    pub counter: Option<R1Counter>,
    pub group: DhGroup,
    pub public: Vec<u8>,
    pub cipher: HipCipher,
    pub suite: EspSuite,
    pub udp_mode: bool,
    pub multipath: Option<Multipath>,
    pub echo_signed: Vec<Vec<u8>>,
    pub echo_unsigned: Vec<Vec<u8>>,
}

/// Why an R1 is not answered.
pub(super) enum Choice {
    /// It is not to be believed: wait for a better one.
    Drop(DropReason),
    /// It is genuine, and we have nothing in common.
    Fail(Failure),
}

/// The signer of an R1 and what it holds.
pub(super) struct Signer {
    peer: PublicIdentity,
    host_id: Vec<u8>,
    counter: Option<R1Counter>,
}

impl R1 {
    /// Checks that the owner of the sender's HIT signed it (RFC 7401 §6.8 steps 4 and 10).
    pub fn check(ctx: &mut Context<'_>, view: &PacketView<'_>) -> Result<(Signer, Vec<Param>), DropReason> {
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let host_id = params.iter().find_map(|p| if let Param::HostId(h) = p { Some(h) } else { None });
        let peer =
            PublicIdentity::new(host_id.ok_or(DropReason::Hit)?.clone()).map_err(|_| DropReason::Hit)?;
        if peer.hit() != view.sender() {
            return Err(DropReason::Hit);
        }
        ctx.verify(&peer, view, Kind::HIP_SIGNATURE_2, &coverage::signature_2(view))?;
        let span = view.param(Kind::HOST_ID).map(|p| p.span).unwrap_or_default();
        let (host_id, counter) = (view.bytes()[span].to_vec(), counter_of(view));
        Ok((Signer { peer, host_id, counter }, params))
    }
}

impl Signer {
    /// The generation of the puzzle.
    pub fn counter(&self) -> Option<u64> {
        self.counter.map(|c| c.counter)
    }

    /// Takes the peer's first proposals that we accept, of ESP suites one that is quick here (RFC 7401 §6.8 steps 6, 7, 14, 15).
    pub fn choose(self, ctx: &Context<'_>, params: &[Param]) -> Result<R1, Choice> {
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
        let suite = config.chosen_suite(suites);
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

/// The generation that an R1 says it is of, whoever sent it.
pub(super) fn counter_of(r1: &PacketView<'_>) -> Option<R1Counter> {
    match Param::parse(Kind::R1_COUNTER, r1.param(Kind::R1_COUNTER)?.contents) {
        Ok(Param::R1Counter(counter)) => Some(counter),
        _ => None,
    }
}
