//! Parameters of one connection. Every default is the value of the RFC named beside it.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::cc::CcConfig;
use crate::engine::config::PathConfig;
use crate::engine::config::{Segmentation, TimeoutTakes};
use crate::facts::ConfigError;
use crate::loss::LossConfig;
use crate::path::knowledge::KnowledgeConfig;
use crate::recv::config::AckConfig;
use crate::sched::SchedulerConfig;

/// Longest of a connection's times.
const DAY: Duration = Duration::from_secs(86_400);

/// Largest receive buffer, bytes: 1 GiB. No larger window can be advertised (RFC 7323 §2.3: 65535 << 14).
const LARGEST_WINDOW: u64 = 1 << 30;

/// Parameters of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionConfig {
    /// Congestion control of the connection over all its paths.
    pub cc: CcConfig,
    /// Which path the next segment takes.
    pub scheduler: SchedulerConfig,
    /// What counts as lost.
    pub loss: LossConfig,
    /// Send buffer, bytes: what the application may write before it has to wait.
    pub send_buffer: u64,
    /// Most bytes that are written and not sent yet. Below this limit: what leaves in the shortest round trip (or in 2 ms, if
    /// that is longer), at least 64 KiB. So little waits on slow paths, and a fast writer's bytes are sent while they are in
    /// the processor's cache. None: only the send buffer limits.
    pub send_ahead: Option<u64>,
    /// Receive buffer, bytes, at most 1 GiB: the window we advertise at most, in order or not.
    pub receive_buffer: u64,
    /// The window until the application reads for the first time, bytes: what a peer that nobody serves can make us hold.
    /// None: the whole receive buffer.
    pub unread_window: Option<u64>,
    /// The application [opens the window](crate::Connection::grow_window) as its own pace needs, so that little of a faster peer
    /// waits here. `false`: the first read opens it whole.
    pub grow_window: bool,
    /// What we hold out of order at most, bytes; what comes early beyond it is dropped. None holds
    /// whatever the window admits.
    pub reorder_store: Option<u64>,
    /// The path that an acknowledgment takes.
    pub ack_return: AckReturn,
    /// Divide the peer's window among the paths in proportion to their congestion windows, as the most
    /// that each has in flight (Arshad and Mian, §3.2).
    pub divide_window: bool,
    /// How the paths are watched beside what deliveries tell of them.
    pub knowledge: KnowledgeConfig,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// When data is acknowledged.
    pub acks: AckConfig,
    /// Acknowledge every second segment or after this time (RFC 9293 §3.8.6.3: at most 500 ms);
    /// zero acknowledges every segment, as the papers' simulations do.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub delayed_ack: Duration,
    /// How data is cut into segments: which of them leave together.
    pub segmentation: Segmentation,
    /// Offer the multi-route option of R-M/TCP (Rojviboonchai, Osuga and Aida, §2.1). With a peer that does not know it the
    /// connection stays on the path it began on; with one that does, every segment is acknowledged at
    /// once, for the option answers one route.
    pub multi_route: bool,
    /// Data may leave directly behind our SYN, and is delivered when the peer's comes like that: an initial window of it, once.
    /// Only for ends that both know of it, over a layer that proves who sent a segment; not with `multi_route`.
    pub early_data: bool,
    /// Offer ECN (RFC 3168): what leaves may be marked by queues, and marks reduce the window as losses do. Only with a
    /// controller that answers marks.
    pub ecn: bool,
    /// Smallest retransmission timeout, ms, above 0. RFC 6298 says 1 s; Linux and ns-2 use 200 ms.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub min_rto: Duration,
    /// Retransmission timeout before the first sample, ms (RFC 6298 §2.1: 1 s).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub initial_rto: Duration,
    /// Largest retransmission timeout, ms (RFC 6298 §2.5: at least 60 s).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub max_rto: Duration,
    /// Granularity of the round trip clock, ms; zero measures exactly (ns-2's `tcpTick_` is 10 ms).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub clock_granularity: Duration,
    /// What a retransmission timeout takes for lost.
    pub timeout_takes: TimeoutTakes,
    /// What a timer gave up goes on another active path than the one whose timer expired; the oldest segment at once, whatever
    /// the windows say. If false, the scheduler treats it as any other.
    pub repair_elsewhere: bool,
    /// Consecutive timeouts of one path, while another works, that make it fail; 0 never does, as in the papers.
    pub path_fail_timeouts: u32,
    /// A path of which nothing was delivered for a while, although others delivered meanwhile, fails at once, and so
    /// does one whose timer expires while another path works (`engine/silence.rs`). If false,
    /// only `path_fail_timeouts` fails a path.
    pub fail_silent: bool,
    /// Consecutive timeouts of all paths that end the connection (RFC 9293 §3.8.3, R2).
    pub max_timeouts: u32,
    /// Idle time before a keep-alive, ms; zero sends none (RFC 9293 §3.8.4: off by default).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub keep_alive: Duration,
    /// Time in TIME-WAIT, ms: twice the maximum segment lifetime.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub time_wait: Duration,
    /// Time in FIN-WAIT-2 for a peer that does not finish, once the application has let go of the connection,
    /// ms; zero waits for ever, as RFC 9293 would (Linux: 60 s).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub fin_wait: Duration,
    /// Do not wait to fill a segment (RFC 9293 §3.7.4, Nagle off).
    pub no_delay: bool,
    /// Most segments sent in answer to one event; zero is unlimited.
    pub max_burst: u32,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            cc: CcConfig::default(),
            scheduler: SchedulerConfig::default(),
            loss: LossConfig::default(),
            send_buffer: 4 << 20,
            send_ahead: None,
            receive_buffer: 4 << 20,
            unread_window: None,
            grow_window: false,
            reorder_store: None,
            ack_return: AckReturn::default(),
            divide_window: false,
            knowledge: KnowledgeConfig::default(),
            sack: true,
            timestamps: true,
            window_scaling: true,
            acks: AckConfig::default(),
            delayed_ack: Duration::from_millis(40),
            segmentation: Segmentation::default(),
            multi_route: false,
            early_data: false,
            ecn: false,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            clock_granularity: Duration::ZERO,
            timeout_takes: TimeoutTakes::default(),
            repair_elsewhere: false,
            path_fail_timeouts: 2,
            fail_silent: false,
            max_timeouts: 12,
            keep_alive: Duration::ZERO,
            time_wait: Duration::from_secs(60),
            fin_wait: Duration::from_secs(60),
            no_delay: true,
            max_burst: 0,
        }
    }
}

impl ConnectionConfig {
    /// Whether its parameters mean something together, on paths whose smallest round trip time is
    /// `min_rtt`, if that is known.
    pub fn check(&self, min_rtt: Option<Duration>) -> Result<(), ConfigError> {
        self.check_buffers()?;
        self.check_times()?;
        self.check_bursts()?;
        self.cc.check()?;
        self.scheduler.check()?;
        self.knowledge.check()?;
        self.acks.check()?;
        self.loss.check(min_rtt)
    }

    fn check_buffers(&self) -> Result<(), ConfigError> {
        let empty =
            |key| ConfigError::new(key, "a buffer of 0 holds nothing", "write bytes: 4194304 are 4 MiB");
        let untold = ConfigError::new(
            "receive_buffer",
            "more than a window can tell (RFC 7323)",
            "write at most 1073741824 bytes: 1 GiB",
        );
        let from = ConfigError::new("grow_window", "it has no size to grow from", "write unread_window, too");
        ConfigError::first(&[
            (self.send_buffer == 0, empty("send_buffer")),
            (self.receive_buffer == 0, empty("receive_buffer")),
            (self.receive_buffer > LARGEST_WINDOW, untold),
            (self.unread_window == Some(0), empty("unread_window")),
            (self.grow_window && self.unread_window.is_none(), from),
            (self.reorder_store == Some(0), empty("reorder_store")),
            (self.send_ahead == Some(0), empty("send_ahead")),
        ])
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let long = |key| ConfigError::new(key, "longer than a day", "times are in ms: 1000 is a second");
        let rto = |key, reason| {
            ConfigError::new(
                key,
                reason,
                "the defaults are min_rto = 200, initial_rto = 1000, max_rto = 60000",
            )
        };
        let slow =
            ConfigError::new("delayed_ack", "longer than 500 ms (RFC 9293)", "40 is the default, in ms");
        let coarse = ConfigError::new(
            "clock_granularity",
            "longer than a second",
            "0 measures exactly, ns-2 uses 10, in ms",
        );
        let hopeless =
            ConfigError::new("max_timeouts", "0 gives up before anything is lost", "12 is the default");
        ConfigError::first(&[
            (self.min_rto > DAY, long("min_rto")),
            (self.initial_rto > DAY, long("initial_rto")),
            (self.max_rto > DAY, long("max_rto")),
            (self.keep_alive > DAY, long("keep_alive")),
            (self.time_wait > DAY, long("time_wait")),
            (self.fin_wait > DAY, long("fin_wait")),
            (self.min_rto == Duration::ZERO, rto("min_rto", "0 sends everything again at once")),
            (self.initial_rto == Duration::ZERO, rto("initial_rto", "0 sends everything again at once")),
            (self.max_rto == Duration::ZERO, rto("max_rto", "0 sends everything again at once")),
            (self.max_rto < self.min_rto, rto("max_rto", "smaller than min_rto")),
            (self.max_rto < self.initial_rto, rto("max_rto", "smaller than initial_rto")),
            (self.delayed_ack > Duration::from_millis(500), slow),
            (self.clock_granularity > Duration::from_secs(1), coarse),
            (self.max_timeouts == 0, hopeless),
        ])
    }

    fn check_bursts(&self) -> Result<(), ConfigError> {
        let short = ConfigError::new(
            "max_burst",
            "cuts what leaves together with segmentation = \"offload\"",
            "leave out one of the two",
        );
        let cuts = self.segmentation == Segmentation::Offload && self.max_burst > 0;
        ConfigError::first(&[(cuts, short)])
    }

    /// The same for the paths of a connection, as far as their delays are configured.
    pub fn check_on(&self, paths: &[PathConfig]) -> Result<(), ConfigError> {
        self.check(paths.iter().filter_map(|p| p.one_way).min().map(|one_way| one_way.times(2)))
    }
}

/// The path that an acknowledgment takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AckReturn {
    /// The one its data came on, so that a round trip is of one path.
    #[default]
    SamePath,
    /// Each in turn, as a host scatters packets that does not know of paths.
    RoundRobin,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_themselves_are_allowed_and_what_lies_beyond_is_named() {
        let refused = |config: ConnectionConfig| config.check(None).err().map(|error| error.key);
        let window = |receive_buffer| ConnectionConfig { receive_buffer, ..Default::default() };
        assert_eq!(refused(window(LARGEST_WINDOW)), None);
        assert_eq!(refused(window(LARGEST_WINDOW + 1)), Some("receive_buffer"));
        let timeout = |min_rto| ConnectionConfig { min_rto, ..Default::default() };
        assert_eq!(refused(timeout(Duration(1))), None);
        assert_eq!(refused(timeout(Duration::ZERO)), Some("min_rto"));
        let bursts = |segmentation| ConnectionConfig { segmentation, max_burst: 4, ..Default::default() };
        assert_eq!(refused(bursts(Segmentation::Standard)), None);
        assert_eq!(refused(bursts(Segmentation::Offload)), Some("max_burst"));
    }
}
