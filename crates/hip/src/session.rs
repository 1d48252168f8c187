//! What both ends share after the base exchange: keys, and how packets are sealed with them.

use polypath_wire::Checksum;
use polypath_wire::hip::{Kind, Packet, PacketView, Param, coverage};

use crate::context::Context;
use crate::dh::DhGroup;
use crate::error::CryptoError;
use crate::event::DropReason;
use crate::identity::{Identity, PublicIdentity};
use crate::keymat::{EspKeys, HipKeys, Keymat, Pair, esp_draw_len};
use crate::suite::{EspSuite, Hash, HipCipher};

pub(crate) struct Session {
    pub hash: Hash,
    pub cipher: HipCipher,
    pub suite: EspSuite,
    /// The Diffie-Hellman group of this association.
    pub group: DhGroup,
    pub keymat: Keymat,
    /// The first byte of KEYMAT that no key was drawn from.
    pub next_index: usize,
    /// Where the keys of SA pairs were drawn.
    pub drawn: Vec<usize>,
    pub keys: Pair<HipKeys>,
    pub peer: PublicIdentity,
    /// The puzzle's I and J: the salt of every KEYMAT of this association.
    pub salt: (Vec<u8>, Vec<u8>),
}

impl Session {
    /// Draws the keys of an SA pair at `index`, which must be where none were drawn before.
    pub fn draw(&mut self, index: usize, identity: &Identity) -> Result<Pair<EspKeys>, CryptoError> {
        let len = esp_draw_len(self.suite);
        if self.drawn.iter().any(|drawn| drawn.abs_diff(index) < len) {
            return Err(CryptoError::Key);
        }
        let keys = self.keymat.esp_keys(self.suite, index, identity.hit(), self.peer.hit())?;
        self.drawn.push(index);
        self.next_index = self.next_index.max(index + len);
        Ok(keys)
    }

    /// Whether the keys of an SA pair can be drawn at `index`: behind the first and where none were drawn.
    pub fn is_free(&self, index: usize) -> bool {
        let len = esp_draw_len(self.suite);
        let apart = self.drawn.iter().all(|drawn| drawn.abs_diff(index) >= len);
        apart && self.drawn.iter().any(|drawn| *drawn < index) && index + len <= self.keymat.capacity()
    }

    /// Whether half of KEYMAT is used up.
    pub fn is_scarce(&self) -> bool {
        2 * self.next_index > self.keymat.capacity()
    }

    /// There is new key material, of which nothing was drawn.
    pub fn begin_keymat(&mut self) {
        self.next_index = 0;
        self.drawn.clear();
    }

    /// Leaves out as much KEYMAT as `pairs` SA pairs take: the peer may have drawn there.
    pub fn skip(&mut self, pairs: usize) {
        self.next_index += pairs * esp_draw_len(self.suite);
    }

    /// `packet` with MAC and signature, checksum 0. `tail` is not covered by them.
    pub fn seal(
        &self,
        ctx: &mut Context<'_>,
        packet: Packet,
        tail: Vec<Param>,
    ) -> Result<Vec<u8>, CryptoError> {
        let mac = |bytes: &[u8]| Param::HipMac(self.hash.mac(&self.keys.outgoing.integrity, bytes));
        seal(ctx, packet, mac, tail)
    }

    /// Checks HIP_MAC, which costs little. A replayed packet passes.
    pub fn check_mac(&self, view: &PacketView<'_>) -> Result<(), DropReason> {
        self.verify_mac(view, Kind::HIP_MAC, &coverage::mac(view))
    }

    /// Checks HIP_SIGNATURE, which costs much and so comes last.
    pub fn verify_signature(&self, ctx: &mut Context<'_>, view: &PacketView<'_>) -> Result<(), DropReason> {
        ctx.verify_signature(&self.peer, view)
    }

    /// Checks the MAC in the parameter `kind` over `covered`.
    pub fn verify_mac(&self, view: &PacketView<'_>, kind: Kind, covered: &[u8]) -> Result<(), DropReason> {
        let mac = view.param(kind).ok_or(DropReason::Mac)?.contents;
        let good = self.hash.verify_mac(&self.keys.incoming.integrity, covered, mac);
        good.then_some(()).ok_or(DropReason::Mac)
    }
}

/// `packet` with the MAC that `mac` makes over it, our signature, and `tail`; checksum 0.
pub(crate) fn seal(
    ctx: &mut Context<'_>,
    mut packet: Packet,
    mac: impl Fn(&[u8]) -> Param,
    tail: Vec<Param>,
) -> Result<Vec<u8>, CryptoError> {
    let emit = |packet: &Packet| packet.emit(Checksum::Unused).map_err(|_| CryptoError::Key);
    let mac = mac(&emit(&packet)?);
    packet.push(mac);
    packet.push(Param::HipSignature(ctx.sign(&emit(&packet)?)?));
    tail.into_iter().for_each(|p| packet.push(p));
    emit(&packet)
}
