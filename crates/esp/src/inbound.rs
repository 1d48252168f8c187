//! The receiving half of an association.

use std::fmt;
use std::ops::Range;

use polypath_wire::WireError;
use polypath_wire::esp::{EspHeader, EspTrailer, HEADER_LEN, NO_NEXT_HEADER, Spi, TRAILER_LEN};
use serde::Serialize;

use crate::config::{EspConfig, Keys, SetupError};
use crate::replay::{Replay, ReplayWindow};
use crate::transform::Transform;

/// Opens packets that carry our SPI.
pub struct Inbound {
    spi: Spi,
    config: EspConfig,
    transform: Transform,
    window: ReplayWindow,
    stats: InboundStats,
}

/// What became of the packets given to [`Inbound::open`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct InboundStats {
    /// Opened.
    pub opened: u64,
    /// Too short, of an odd length, or of another association.
    pub malformed: u64,
    /// Seen before.
    pub replayed: u64,
    /// Older than the window, or beyond the last number.
    pub out_of_window: u64,
    /// Not authentic.
    pub forged: u64,
    /// Authentic, but with a trailer that makes no sense.
    pub bad_trailer: u64,
}

/// An opened packet. Its payload stands in the buffer that was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Its sequence number, all 64 bits.
    pub seq: u64,
    /// How many numbers lie between it and the largest opened before: packets that are lost or late. 0 if it is late itself.
    pub skipped: u64,
    /// Protocol of the payload.
    pub next_header: u8,
    /// Where the payload stands in the packet.
    pub payload: Range<usize>,
}

impl Opened {
    /// A packet that only hides how much is sent: drop it (RFC 4303 §2.6).
    pub fn is_dummy(&self) -> bool {
        self.next_header == NO_NEXT_HEADER
    }
}

/// Why a packet was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Not an ESP packet of this suite.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// For another association.
    #[error("packet for {0:?}")]
    OtherSpi(Spi),
    /// Old or seen.
    #[error(transparent)]
    Replay(#[from] Replay),
    /// Beyond the last sequence number.
    #[error("the sequence number is beyond the last of the association")]
    BeyondLast,
    /// Changed on its way, or not the peer's.
    #[error("the packet is not authentic")]
    Forged,
    /// Authentic, but its padding is not what a sender may write.
    #[error("{0}")]
    Trailer(WireError),
}

impl Inbound {
    /// An association with our own `spi`.
    pub fn new(spi: Spi, config: EspConfig, keys: &Keys) -> Result<Self, SetupError> {
        config.check(spi, keys)?;
        Ok(Self {
            spi,
            transform: Transform::new(&config, keys),
            window: ReplayWindow::new(config.replay_window),
            config,
            stats: InboundStats::default(),
        })
    }

    /// Our SPI.
    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// Opens `packet`, from its SPI to its ICV, where it stands. A packet that is refused leaves
    /// the window as it was; its bytes are then without meaning.
    pub fn open(&mut self, packet: &mut [u8]) -> Result<Opened, OpenError> {
        let result = self.try_open(packet);
        let counter = match &result {
            Ok(_) => &mut self.stats.opened,
            Err(OpenError::Malformed(_) | OpenError::OtherSpi(_)) => &mut self.stats.malformed,
            Err(OpenError::Replay(Replay::Seen(_))) => &mut self.stats.replayed,
            Err(OpenError::Replay(Replay::TooOld(_)) | OpenError::BeyondLast) => {
                &mut self.stats.out_of_window
            }
            Err(OpenError::Forged) => &mut self.stats.forged,
            Err(OpenError::Trailer(_)) => &mut self.stats.bad_trailer,
        };
        *counter += 1;
        result
    }

    /// The steps of RFC 4303 §3.4 in their order.
    fn try_open(&mut self, packet: &mut [u8]) -> Result<Opened, OpenError> {
        let header = EspHeader::parse(packet)?;
        if header.spi != self.spi {
            return Err(OpenError::OtherSpi(header.spi));
        }
        let body = self.body_of(packet.len())?;
        let seq = self.number_of(header.seq)?;
        self.window.check(seq)?;
        self.transform.open(seq, packet).map_err(|_| OpenError::Forged)?;
        let skipped = seq.saturating_sub(self.window.top().saturating_add(1));
        self.window.accept(seq);
        let trailer = EspTrailer::parse(&packet[body.clone()]).map_err(OpenError::Trailer)?;
        let payload = body.start..body.end - trailer.len();
        Ok(Opened { seq, skipped, next_header: trailer.next_header, payload })
    }

    /// Where payload and trailer stand in a packet of `len` bytes.
    fn body_of(&self, len: usize) -> Result<Range<usize>, WireError> {
        let start = HEADER_LEN + self.config.iv_len();
        let (align, icv) = (self.config.suite.alignment(), self.config.icv_len());
        let shortest = start + TRAILER_LEN.next_multiple_of(align) + icv;
        if len < shortest {
            return Err(WireError { what: "ESP", field: "length", need: shortest as u64, got: len as u64 });
        }
        let over = (len - icv - start) % align;
        if over != 0 {
            return Err(WireError { what: "ESP", field: "alignment", need: align as u64, got: over as u64 });
        }
        Ok(start..len - icv)
    }

    fn number_of(&self, low: u32) -> Result<u64, OpenError> {
        if self.config.extended_sequence {
            self.window.infer(low).ok_or(OpenError::BeyondLast)
        } else {
            Ok(u64::from(low))
        }
    }

    /// The largest sequence number opened.
    pub fn highest(&self) -> u64 {
        self.window.top()
    }

    /// Whether it is time for new keys: the peer has sealed `rekey_after` packets.
    pub fn needs_rekey(&self) -> bool {
        self.config.needs_rekey(self.window.top())
    }

    /// Counters.
    pub fn stats(&self) -> &InboundStats {
        &self.stats
    }

    #[cfg(test)]
    pub(crate) fn skip_to(&mut self, seq: u64) {
        self.window.accept(seq.max(1));
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spi, config, window, stats, .. } = self;
        f.debug_struct("Inbound")
            .field("spi", spi)
            .field("suite", &config.suite)
            .field("highest", &window.top())
            .field("stats", stats)
            .finish()
    }
}
