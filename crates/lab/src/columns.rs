//! Tables of results: columns of one type each, as CSV, Arrow IPC and Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::DataType;

use crate::results::{FlowResult, Run};

mod parquet_file;

pub use parquet_file::write_parquet;

/// A column of a table whose rows are `R`: its name and what a row has there.
pub(crate) struct Column<'a, R> {
    name: String,
    of: Of<'a, R>,
}

/// What a row has; `None` is null.
type Get<'a, R, T> = Box<dyn Fn(&R) -> Option<T> + 'a>;

/// What a row has in a column of each type.
pub(crate) enum Of<'a, R> {
    Text(Get<'a, R, String>),
    Whole(Get<'a, R, u64>),
    Integer(Get<'a, R, i64>),
    Number(Get<'a, R, f64>),
    Yes(Get<'a, R, bool>),
}

impl<'a, R> Column<'a, R> {
    /// The column `name`.
    pub fn new(name: impl Into<String>, of: Of<'a, R>) -> Self {
        Self { name: name.into(), of }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A column of text.
    pub fn text(name: &str, of: impl Fn(&R) -> Option<String> + 'a) -> Self {
        Self::new(name, Of::Text(Box::new(of)))
    }

    /// A column of counts.
    pub fn whole(name: &str, of: impl Fn(&R) -> Option<u64> + 'a) -> Self {
        Self::new(name, Of::Whole(Box::new(of)))
    }

    /// A column of numbers.
    pub fn number(name: &str, of: impl Fn(&R) -> Option<f64> + 'a) -> Self {
        Self::new(name, Of::Number(Box::new(of)))
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match &self.of {
            Of::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            Of::Whole(of) => Arc::new(rows.iter().map(of).collect::<UInt64Array>()),
            Of::Integer(of) => Arc::new(rows.iter().map(of).collect::<Int64Array>()),
            Of::Number(of) => Arc::new(rows.iter().map(of).collect::<Float64Array>()),
            Of::Yes(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
        }
    }
}

/// The table of `rows`. Its schema depends on the columns alone: each may have nulls.
pub(crate) fn table<R>(columns: &[Column<'_, R>], rows: &[R]) -> RecordBatch {
    let arrays = columns.iter().map(|column| (column.name.as_str(), column.array(rows), true));
    RecordBatch::try_from_iter_with_nullable(arrays).expect("every column has a value or a null for each row")
}

/// `runs` with a row for each run and each of its flows.
pub fn runs(runs: &[Run]) -> RecordBatch {
    type Row<'a> = (&'a Run, &'a FlowResult);
    type Col<'a> = Column<'a, Row<'a>>;
    let rows: Vec<Row<'_>> =
        runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow))).collect();
    let columns = [
        Col::text("run", |(run, _)| Some(run.id.clone())),
        Col::text("cell", |(run, _)| Some(run.cell.clone())),
        Col::whole("seed", |(run, _)| Some(run.seed)),
        Col::text("flow", |(_, flow)| Some(flow.name.clone())),
        Col::whole("bytes", |(_, flow)| Some(flow.bytes)),
        Col::number("goodput_bps", |(_, flow)| Some(flow.goodput_bps)),
        Col::number("utilisation", |(_, flow)| Some(flow.utilisation)),
        Col::number("completion_s", |(_, flow)| flow.completion_s),
        Col::whole("retransmissions", |(_, flow)| Some(flow.retransmissions)),
        Col::whole("out_of_order", |(_, flow)| Some(flow.out_of_order)),
        Col::whole("timeouts", |(_, flow)| Some(flow.timeouts)),
        Col::number("loss_rate", |(_, flow)| flow.loss_rate),
        Col::new("intact", Of::Yes(Box::new(|(_, flow)| Some(flow.intact)))),
    ];
    table(&columns, &rows)
}

/// Writes `table` as CSV (RFC 4180); a null is empty.
pub fn write_csv(table: &RecordBatch, mut out: impl Write) -> io::Result<()> {
    let schema = table.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
    writeln!(out, "{}", names.join(","))?;
    for row in 0..table.num_rows() {
        let fields: Vec<String> = table.columns().iter().map(|column| text(column, row)).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    out.flush()
}

/// Writes `table` as an Arrow IPC file.
pub fn write_arrow(table: &RecordBatch, out: impl Write) -> io::Result<()> {
    let mut writer = FileWriter::try_new(out, &table.schema()).map_err(io::Error::other)?;
    writer.write(table).and_then(|()| writer.finish()).map_err(io::Error::other)
}

fn text(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::Utf8 => quoted(column.as_string::<i32>().value(row)),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        other => unreachable!("no column is of type {other}"),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;

    fn one_run() -> RecordBatch {
        let flow = FlowResult { name: "a".into(), bytes: 7, completion_s: None, ..FlowResult::default() };
        runs(&[Run {
            id: "x".into(),
            cell: "min_rtt,small".into(),
            seed: 3,
            flows: vec![flow],
            timeline: Default::default(),
        }])
    }

    #[test]
    fn csv_quotes_what_has_commas_and_leaves_out_what_is_missing() {
        let mut out = Vec::new();
        write_csv(&one_run(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().nth(1), Some("x,\"min_rtt,small\",3,a,7,0,0,,0,0,0,,true"));
    }

    #[test]
    fn arrow_reads_back() {
        let mut out = Vec::new();
        write_arrow(&one_run(), &mut out).unwrap();
        let mut reader = arrow_ipc::reader::FileReader::try_new(io::Cursor::new(out), None).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), one_run());
        assert!(reader.next().is_none());
    }

    #[test]
    fn parquet_reads_back_and_repeats_byte_for_byte() {
        let written = || {
            let mut out = Vec::new();
            write_parquet(&one_run(), &mut out).unwrap();
            out
        };
        let reader = SerializedFileReader::new(bytes::Bytes::from(written())).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let text = |name: &str, value: &str| (name.to_owned(), Field::Str(value.to_owned()));
        let whole = |name: &str, value| (name.to_owned(), Field::ULong(value));
        let one = Row::new(vec![
            text("run", "x"),
            text("cell", "min_rtt,small"),
            whole("seed", 3),
            text("flow", "a"),
            whole("bytes", 7),
            ("goodput_bps".to_owned(), Field::Double(0.0)),
            ("utilisation".to_owned(), Field::Double(0.0)),
            ("completion_s".to_owned(), Field::Null),
            whole("retransmissions", 0),
            whole("out_of_order", 0),
            whole("timeouts", 0),
            ("loss_rate".to_owned(), Field::Null),
            ("intact".to_owned(), Field::Bool(true)),
        ]);
        assert_eq!(rows, [one]);
        assert_eq!(written(), written());
    }
}
