//! Rows to columns: Arrow IPC.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;

use super::write::{DETAILS, EVENTS};
use super::{ABSENT, NUMBERS, Row, Trace};

const ROWS_PER_BATCH: usize = 65_536;

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
        ("path", Arc::new(UInt32Array::from_iter(rows.iter().map(|r| r.path))), true),
        ("event", named(kinds, events)?, false),
        ("detail", named(reasons, details)?, true),
    ];
    for (i, name) in NUMBERS.into_iter().enumerate() {
        let numbers = rows.iter().map(|r| Some(r.numbers[i]).filter(|n| *n != ABSENT));
        columns.push((name, Arc::new(UInt64Array::from_iter(numbers)), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write::tests::trace;

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
}
