//! The sending half of an association.

use std::fmt;

use polypath_wire::esp::{EspHeader, EspTrailer, HEADER_LEN, Spi, TRAILER_LEN};

use crate::config::{EspConfig, Keys, SetupError};
use crate::transform::Transform;

/// Seals packets. Not `Clone`: two of them would use a sequence number twice.
pub struct Outbound {
    spi: Spi,
    config: EspConfig,
    transform: Transform,
    /// The number of the packet sealed last; the first is 1.
    seq: u64,
}

/// Why a packet was not sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SealError {
    /// The buffer does not hold the sealed packet.
    #[error("buffer of {got} bytes: the sealed packet has {need}")]
    Buffer {
        /// Bytes of the sealed packet.
        need: usize,
        /// Bytes of the buffer.
        got: usize,
    },
    /// All sequence numbers are used (RFC 4303 §3.3.3): the association is dead, rekey.
    #[error("all sequence numbers of the association are used")]
    Exhausted,
    /// The cipher refused, which it does only for payloads of many GiB.
    #[error("the cipher refused the packet")]
    Cipher,
}

impl Outbound {
    /// An association towards the peer's inbound `spi`.
    pub fn new(spi: Spi, config: EspConfig, keys: &Keys) -> Result<Self, SetupError> {
        config.check(spi, keys)?;
        Ok(Self { spi, transform: Transform::new(&config, keys), config, seq: 0 })
    }

    /// The peer's SPI.
    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// Where the payload begins in a packet.
    pub fn payload_offset(&self) -> usize {
        HEADER_LEN + self.config.iv_len()
    }

    /// Bytes of the packet that carries `payload_len` bytes.
    pub fn sealed_len(&self, payload_len: usize) -> usize {
        let trailer = EspTrailer::after(payload_len, self.config.suite.alignment(), 0);
        self.payload_offset() + payload_len + trailer.len() + self.config.icv_len()
    }

    /// The most payload a packet of `packet_len` bytes carries; 0 if it carries none.
    pub fn max_payload(&self, packet_len: usize) -> usize {
        let body = packet_len.saturating_sub(self.payload_offset() + self.config.icv_len());
        (body - body % self.config.suite.alignment()).saturating_sub(TRAILER_LEN)
    }

    /// Seals the `payload_len` bytes at [`payload_offset`](Self::payload_offset) of `buffer` where
    /// they stand; returns the length of the packet, which begins with the buffer.
    pub fn seal(
        &mut self,
        buffer: &mut [u8],
        payload_len: usize,
        next_header: u8,
    ) -> Result<usize, SealError> {
        let trailer = EspTrailer::after(payload_len, self.config.suite.alignment(), next_header);
        let end = self.payload_offset() + payload_len;
        let len = end + trailer.len() + self.config.icv_len();
        let got = buffer.len();
        let packet = buffer.get_mut(..len).ok_or(SealError::Buffer { need: len, got })?;
        if self.seq == self.config.last_sequence() {
            return Err(SealError::Exhausted);
        }
        self.seq += 1;
        packet[..HEADER_LEN].copy_from_slice(&EspHeader { spi: self.spi, seq: self.seq as u32 }.emit());
        trailer.emit(&mut packet[end..end + trailer.len()]);
        self.transform.seal(self.seq, packet).map_err(|_| SealError::Cipher)?;
        Ok(len)
    }

    /// Packets sealed.
    pub fn sealed(&self) -> u64 {
        self.seq
    }

    /// Whether it is time for new keys: `rekey_after` packets, or an eighth of the numbers is left.
    pub fn needs_rekey(&self) -> bool {
        self.config.needs_rekey(self.seq)
    }

    /// Goes on as if `seq` packets had been sealed. Never below the present number.
    #[cfg(test)]
    pub(crate) fn skip_to(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spi, config, seq, .. } = self;
        f.debug_struct("Outbound").field("spi", spi).field("suite", &config.suite).field("seq", seq).finish()
    }
}
