//! Rows to columns: Arrow IPC.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::ArrowError;

use super::rows::Head;
use super::write::{DETAILS, EVENTS};
use super::{Detail, NUMBERS, Trace};

const ROWS_PER_BATCH: usize = 65_536;

impl Trace {
    /// Writes all rows as an Arrow IPC file, its columns compressed (LZ4).
    pub fn write_arrow(&self, out: impl Write) -> io::Result<()> {
        let write = || -> Result<(), ArrowError> {
            let options =
                IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
            let none = batch(&[], &[], &self.dictionaries());
            let mut writer = FileWriter::try_new_with_options(out, &none.schema(), options)?;
            self.columns().try_for_each(|batch| writer.write(&batch))?;
            writer.finish()
        };
        write().map_err(io::Error::other)
    }

    /// All rows as columns; at least one batch, though it may be empty.
    pub fn batches(&self) -> Vec<RecordBatch> {
        self.columns().collect()
    }

    fn columns(&self) -> impl Iterator<Item = RecordBatch> {
        let dictionaries = self.dictionaries();
        let empty = self.rows().is_empty().then_some((&[][..], &[][..]));
        let chunks = self.rows().chunks(ROWS_PER_BATCH).chain(empty);
        chunks.map(move |(heads, numbers)| batch(heads, numbers, &dictionaries))
    }

    /// Of the columns `source`, `event` and `detail`.
    fn dictionaries(&self) -> [Names; 3] {
        let names = Names::of(self.names.iter().map(String::as_str));
        [names, Names::of(EVENTS.into_iter()), Names::of(DETAILS.into_iter())]
    }
}

/// The values of a dictionary, each once, as readers demand. Several numbers may have the same name: a segment that
/// is `too_big` is lost at a hop and is the cause of a loss.
struct Names {
    values: ArrayRef,
    /// The place among `values` of the name that each number has.
    places: Vec<i32>,
}

impl Names {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let (mut values, mut known, mut places) = (Vec::new(), BTreeMap::new(), Vec::new());
        for name in names {
            places.push(*known.entry(name).or_insert_with(|| {
                values.push(name);
                values.len() as i32 - 1
            }));
        }
        Self { values: Arc::new(StringArray::from_iter_values(values)), places }
    }

    fn column(&self, numbers: impl Iterator<Item = Option<usize>>) -> ArrayRef {
        let keys = Int32Array::from_iter(numbers.map(|n| n.map(|n| self.places[n])));
        let values = self.values.clone();
        Arc::new(
            DictionaryArray::<Int32Type>::try_new(keys, values).expect("every place is among the values"),
        )
    }
}

fn batch(heads: &[Head], numbers: &[u64], [names, events, details]: &[Names; 3]) -> RecordBatch {
    let optional = |of: fn(&Head) -> u32| {
        Arc::new(UInt32Array::from_iter(heads.iter().map(|h| Some(of(h)).filter(|v| *v != u32::MAX))))
    };
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("time_ns", Arc::new(UInt64Array::from_iter_values(heads.iter().map(|h| h.time.0))), false),
        ("source", names.column(heads.iter().map(|h| Some(h.source as usize))), false),
        ("flow", optional(|h| h.flow), true),
        ("path", optional(|h| h.path), true),
        ("event", events.column(heads.iter().map(|h| Some(h.event as usize))), false),
        ("detail", details.column(heads.iter().map(|h| h.detail.map(Detail::number))), true),
    ];
    for (name, column) in NUMBERS.into_iter().zip(spread(heads, numbers)) {
        columns.push((name, Arc::new(column), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns)
        .expect("every column has a value or a null for each row")
}

/// The numbers of these rows, each in its column.
fn spread(heads: &[Head], numbers: &[u64]) -> [UInt64Array; NUMBERS.len()] {
    let mut values = [(); NUMBERS.len()].map(|()| vec![0; heads.len()]);
    let mut valid = [(); NUMBERS.len()].map(|()| vec![0_u8; heads.len().div_ceil(8)]);
    let mut numbers = numbers.iter();
    for (row, head) in heads.iter().enumerate() {
        for (column, number) in head.columns().zip(&mut numbers) {
            values[column][row] = *number;
            valid[column][row / 8] |= 1 << (row % 8);
        }
    }
    let mut valid = valid.into_iter();
    values.map(|values| {
        let len = values.len();
        let valid = valid.next().unwrap_or_default();
        let valid = BooleanBuffer::new(valid.into(), 0, len);
        UInt64Array::new(values.into(), Some(NullBuffer::new(valid)))
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use polypath_wire::Instant;

    use super::*;
    use crate::Drop;
    use crate::topology::HopId;
    use crate::trace::HopEvent;
    use crate::trace::write::tests::trace;

    fn dictionary<'a>(batch: &'a RecordBatch, column: &str) -> &'a DictionaryArray<Int32Type> {
        batch.column_by_name(column).unwrap().as_any().downcast_ref().unwrap()
    }

    fn details(batch: &RecordBatch) -> Vec<&str> {
        let details = dictionary(batch, "detail").downcast_dict::<StringArray>().unwrap();
        details.into_iter().flatten().collect()
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
        assert_eq!(details(&batch), ["timeout", "down"]);
        assert!(reader.next().is_none());
    }

    #[test]
    fn dictionaries_have_each_value_once() {
        let mut trace = trace();
        trace.name_node("a");
        trace.hop(Instant(9), HopId(0), 40, HopEvent::Dropped(Drop::TooBig));
        let batch = &trace.batches()[0];
        for name in ["source", "event", "detail"] {
            let values =
                dictionary(batch, name).values().as_any().downcast_ref::<StringArray>().unwrap().clone();
            let unique: std::collections::BTreeSet<_> = values.iter().collect();
            assert_eq!(unique.len(), values.len(), "{name}: {values:?}");
        }
        assert_eq!(details(batch), ["timeout", "down", "too_big"]);
    }
}
