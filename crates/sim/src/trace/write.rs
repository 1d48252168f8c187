//! Names of what happens, and rows as CSV.

use std::io::{self, Write};

use polypath_hip::State as HipState;
use polypath_transport::DropReason;
use polypath_transport::facts::{LossCause, PathState, Why};

use super::{ABSENT, Detail, Kind, NUMBERS, Trace};
use polypath_hop::Drop;

/// The column `event`, in the order of [`Kind`].
pub(super) const EVENTS: [&str; 15] = [
    "picked",
    "sent",
    "acked",
    "lost",
    "undone",
    "window",
    "estimate",
    "reorder",
    "delivered",
    "dropped",
    "path_state",
    "hip_state",
    "hop_left",
    "hop_dropped",
    "bottleneck",
];

/// The column `detail`, in the order of [`Detail::number`].
pub(super) const DETAILS: [&str; 49] = [
    "retransmission",
    "only_open",
    "best",
    "next_best",
    "turn",
    "copy",
    "urgent",
    "tail_probe",
    "dup_ack",
    "partial_ack",
    "later_delivered",
    "tail_probe",
    "timeout",
    "too_big",
    "silence",
    "path_removed",
    "malformed",
    "checksum",
    "no_connection",
    "outside_window",
    "duplicate",
    "overlap_mismatch",
    "ack_of_unsent",
    "old_ack",
    "bad_sack",
    "old_timestamp",
    "missing_timestamp",
    "unexpected_flag",
    "wrong_state",
    "buffer_full",
    "unknown_path",
    "active",
    "congested",
    "failed",
    "unproved",
    "removed",
    "unassociated",
    "i1_sent",
    "i2_sent",
    "r2_sent",
    "established",
    "closing",
    "closed",
    "e_failed",
    "queue_full",
    "too_big",
    "loss",
    "down",
    "aqm",
];

const WHY: usize = 1;
const LOSS: usize = WHY + Why::COUNT;
const DROP: usize = LOSS + LossCause::PathRemoved as usize + 1;
const PATH: usize = DROP + DropReason::COUNT;
const HIP: usize = PATH + PathState::Removed as usize + 1;
const HOP: usize = HIP + HipState::EFailed as usize + 1;
const _: () = assert!(HOP + Drop::COUNT == DETAILS.len());
const _: () = assert!(Kind::Bottleneck as usize + 1 == EVENTS.len());

impl Detail {
    /// Its place in [`DETAILS`].
    pub(super) fn number(self) -> usize {
        match self {
            Self::Retransmission => 0,
            Self::Why(why) => WHY + why as usize,
            Self::Loss(cause) => LOSS + cause as usize,
            Self::Drop(reason) => DROP + reason as usize,
            Self::Path(state) => PATH + state as usize,
            Self::Hip(state) => HIP + state as usize,
            Self::Hop(cause) => HOP + cause as usize,
        }
    }
}

impl Trace {
    /// Writes all rows as CSV with a header line; what has no value is empty.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "time_ns,source,flow,path,event,detail,{}", NUMBERS.join(","))?;
        for row in self.rows().iter() {
            let source = quoted(&self.names[row.source as usize]);
            let [flow, path] = [row.flow, row.path].map(|v| text(v.map(u64::from)));
            let detail = row.detail.map_or("", |d| DETAILS[d.number()]);
            write!(out, "{},{source},{flow},{path},{},{detail}", row.time.0, EVENTS[row.event as usize])?;
            for number in row.numbers {
                write!(out, ",{}", text(Some(number).filter(|n| *n != ABSENT)))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn text(number: Option<u64>) -> String {
    number.map_or(String::new(), |n| n.to_string())
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use polypath_transport::facts::Episode;
    use polypath_transport::{Observation, Record};
    use polypath_wire::{Instant, PathId};

    use super::*;
    use crate::topology::{HopId, NodeId};
    use crate::trace::HopEvent;

    pub fn trace() -> Trace {
        let mut trace = Trace::new(true);
        trace.name_node("a");
        trace.name_hop("a,b");
        let record = |what| Record { at: Instant(1), path: Some(PathId(1)), what };
        let lost = Observation::Lost { offset: 10, len: 5, cause: LossCause::Timeout, episode: Episode(2) };
        trace.record(Instant(7), NodeId(0), Some(3), &record(lost));
        trace.hop(Instant(8), HopId(0), 40, HopEvent::Dropped(Drop::Down));
        trace
    }

    #[test]
    fn csv_says_what_happened() {
        let mut csv = Vec::new();
        trace().write_csv(&mut csv).unwrap();
        let expected = "time_ns,source,flow,path,event,detail,offset,len,cwnd,ssthresh,in_flight,srtt_ns,\
                        rtt_ns,rate_bps,episode,occupancy\n\
                        7,a,3,1,lost,timeout,10,5,,,,,,,2,\n\
                        8,\"a,b\",,,hop_dropped,down,,40,,,,,,,,\n";
        assert_eq!(String::from_utf8(csv).unwrap(), expected);
    }

    #[test]
    fn every_detail_has_its_name() {
        let snake = |debug: String| {
            let mut name = String::new();
            for c in debug.chars() {
                if c.is_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.extend(c.to_lowercase());
            }
            name
        };
        for why in [Why::OnlyOpen, Why::NextBest, Why::TailProbe] {
            assert_eq!(DETAILS[Detail::Why(why).number()], snake(format!("{why:?}")));
        }
        for state in [HipState::Unassociated, HipState::R2Sent, HipState::Established, HipState::EFailed] {
            assert_eq!(DETAILS[Detail::Hip(state).number()], snake(format!("{state:?}")));
        }
        for cause in [LossCause::DupAck, LossCause::PathRemoved] {
            assert_eq!(DETAILS[Detail::Loss(cause).number()], snake(format!("{cause:?}")));
        }
        for reason in [DropReason::Malformed, DropReason::AckOfUnsent, DropReason::UnknownPath] {
            assert_eq!(DETAILS[Detail::Drop(reason).number()], snake(format!("{reason:?}")));
        }
        for state in [
            PathState::Active,
            PathState::Congested,
            PathState::Failed,
            PathState::Unproved,
            PathState::Removed,
        ] {
            assert_eq!(DETAILS[Detail::Path(state).number()], snake(format!("{state:?}")));
        }
        for cause in [Drop::QueueFull, Drop::TooBig, Drop::Loss, Drop::Down, Drop::Aqm] {
            assert_eq!(DETAILS[Detail::Hop(cause).number()], snake(format!("{cause:?}")));
        }
    }

    #[test]
    fn the_hash_sees_every_field() {
        let mut other = trace();
        assert_eq!(other.hash(), trace().hash());
        other.hop(Instant(8), HopId(0), 40, HopEvent::Left);
        assert_ne!(other.hash(), trace().hash());
    }
}
