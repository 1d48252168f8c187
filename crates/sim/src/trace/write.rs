//! Rows to columns: Arrow IPC and CSV.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use polypath_transport::DropReason;
use polypath_transport::facts::{LossCause, PathState};

use super::{ABSENT, Detail, Kind, NUMBERS, Row, Trace};
use crate::hop::Drop;

/// The column `event`, in the order of [`Kind`].
const EVENTS: [&str; 12] = [
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
    "hop_left",
    "hop_dropped",
];

/// The column `detail`, in the order of [`Detail::number`].
const DETAILS: [&str; 31] = [
    "retransmission",
    "dup_ack",
    "partial_ack",
    "later_delivered",
    "tail_probe",
    "timeout",
    "too_big",
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
    "removed",
    "queue_full",
    "too_big",
    "loss",
    "down",
];

const LOSS: usize = 1;
const DROP: usize = LOSS + LossCause::PathRemoved as usize + 1;
const PATH: usize = DROP + DropReason::COUNT;
const HOP: usize = PATH + PathState::Removed as usize + 1;
const _: () = assert!(HOP + Drop::COUNT == DETAILS.len());
const _: () = assert!(Kind::HopDropped as usize + 1 == EVENTS.len());

const ROWS_PER_BATCH: usize = 65_536;

impl Detail {
    /// Its place in [`DETAILS`].
    pub(super) fn number(self) -> usize {
        match self {
            Self::Retransmission => 0,
            Self::Loss(cause) => LOSS + cause as usize,
            Self::Drop(reason) => DROP + reason as usize,
            Self::Path(state) => PATH + state as usize,
            Self::Hop(cause) => HOP + cause as usize,
        }
    }
}

impl Trace {
    /// Writes all rows as an Arrow IPC file.
    pub fn write_arrow(&self, out: impl Write) -> io::Result<()> {
        let strings = |names: &mut dyn Iterator<Item = &str>| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(names))
        };
        let names = strings(&mut self.names.iter().map(String::as_str));
        let dictionaries = [names, strings(&mut EVENTS.into_iter()), strings(&mut DETAILS.into_iter())];
        let empty = batch(&[], &dictionaries).map_err(io::Error::other)?;
        let write = || -> Result<(), ArrowError> {
            let mut writer = FileWriter::try_new(out, &empty.schema())?;
            for rows in self.rows.chunks(ROWS_PER_BATCH) {
                writer.write(&batch(rows, &dictionaries)?)?;
            }
            writer.finish()
        };
        write().map_err(io::Error::other)
    }

    /// Writes all rows as CSV with a header line; what has no value is empty.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "time_ns,source,flow,path,event,detail,{}", NUMBERS.join(","))?;
        for row in &self.rows {
            let source = quoted(&self.names[row.source as usize]);
            let [flow, path] = [row.flow, row.path.map(u32::from)].map(|v| text(v.map(u64::from)));
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

fn batch(rows: &[Row], [names, events, details]: &[ArrayRef; 3]) -> Result<RecordBatch, ArrowError> {
    let named = |keys: Int32Array, values: &ArrayRef| -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values.clone())?))
    };
    let sources = Int32Array::from_iter_values(rows.iter().map(|r| r.source as i32));
    let kinds = Int32Array::from_iter_values(rows.iter().map(|r| r.event as i32));
    let reasons = Int32Array::from_iter(rows.iter().map(|r| r.detail.map(|d| d.number() as i32)));
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("time_ns", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.time.0))), false),
        ("source", named(sources, names)?, false),
        ("flow", Arc::new(UInt32Array::from_iter(rows.iter().map(|r| r.flow))), true),
        ("path", Arc::new(UInt8Array::from_iter(rows.iter().map(|r| r.path))), true),
        ("event", named(kinds, events)?, false),
        ("detail", named(reasons, details)?, true),
    ];
    for (i, name) in NUMBERS.into_iter().enumerate() {
        let numbers = rows.iter().map(|r| Some(r.numbers[i]).filter(|n| *n != ABSENT));
        columns.push((name, Arc::new(UInt64Array::from_iter(numbers)), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns)
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
mod tests {
    use polypath_transport::facts::Episode;
    use polypath_transport::{Observation, Record};
    use polypath_wire::{Instant, PathId};

    use super::*;
    use crate::topology::{HopId, NodeId};
    use crate::trace::HopEvent;

    fn trace() -> Trace {
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
    fn arrow_survives_the_round_trip() {
        let mut file = Vec::new();
        trace().write_arrow(&mut file).unwrap();
        let mut reader = arrow_ipc::reader::FileReader::try_new(io::Cursor::new(file), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 6 + NUMBERS.len()));
        let lens = batch.column_by_name("len").unwrap();
        assert_eq!(lens.as_any().downcast_ref::<UInt64Array>().unwrap().values(), &[5, 40]);
        let details = batch.column_by_name("detail").unwrap();
        let details = details.as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap();
        let details: Vec<_> = details.downcast_dict::<StringArray>().unwrap().into_iter().flatten().collect();
        assert_eq!(details, ["timeout", "down"]);
        assert!(reader.next().is_none());
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
        for cause in [LossCause::DupAck, LossCause::PathRemoved] {
            assert_eq!(DETAILS[Detail::Loss(cause).number()], snake(format!("{cause:?}")));
        }
        for reason in [DropReason::Malformed, DropReason::AckOfUnsent, DropReason::UnknownPath] {
            assert_eq!(DETAILS[Detail::Drop(reason).number()], snake(format!("{reason:?}")));
        }
        for state in [PathState::Active, PathState::Congested, PathState::Failed, PathState::Removed] {
            assert_eq!(DETAILS[Detail::Path(state).number()], snake(format!("{state:?}")));
        }
        for cause in [Drop::QueueFull, Drop::TooBig, Drop::Loss, Drop::Down] {
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
