//! What a run says of its flows when it is over.

use polypath_transport::PathStats;
use serde::Serialize;

/// The numbers of one flow in one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// Bytes delivered in order in the whole run.
    pub bytes: u64,
    /// Stream bytes that arrived in the measured time, each once, bit/s; of a flow that finished, over its
    /// life.
    pub goodput_bps: f64,
    /// The same over the sum of the rates of its bottlenecks.
    pub utilisation: f64,
    /// From start to the last byte, s.
    pub completion_s: Option<f64>,
    /// Data segments sent again in the measured time.
    pub retransmissions: u64,
    /// Packets that arrived out of order in the measured time.
    pub out_of_order: u64,
    /// Retransmission timeouts in the measured time.
    pub timeouts: u64,
    /// Packets lost over packets sent, of UDP, in the whole run.
    pub loss_rate: Option<f64>,
    /// Every byte was the one sent.
    pub intact: bool,
    /// Why the connection failed, if it did.
    pub failed: Option<String>,
    /// Each path, of TCP.
    pub paths: Vec<PathResult>,
}

impl Default for FlowResult {
    fn default() -> Self {
        Self {
            name: String::new(),
            bytes: 0,
            goodput_bps: 0.0,
            utilisation: 0.0,
            completion_s: None,
            retransmissions: 0,
            out_of_order: 0,
            timeouts: 0,
            loss_rate: None,
            intact: true,
            failed: None,
            paths: Vec::new(),
        }
    }
}

/// The numbers of one path of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PathResult {
    /// Bytes delivered over it in the whole run.
    pub bytes: u64,
    /// Data segments sent again in the measured time.
    pub retransmissions: u64,
    /// Smoothed round trip time at the end, ms.
    pub srtt_ms: Option<f64>,
    /// SPI of the packets sent over it at the end, if the flow is secure.
    pub spi: Option<u32>,
}

impl PathResult {
    /// Of what one path counted, of that `retransmissions` in the measured time.
    pub fn new(stats: &PathStats, retransmissions: u64, spi: Option<u32>) -> Self {
        Self {
            bytes: stats.bytes_delivered,
            retransmissions,
            srtt_ms: stats.srtt.map(|d| d.as_millis_f64()),
            spi,
        }
    }
}
