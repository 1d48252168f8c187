//! Results as columns, one row per run and flow: Arrow IPC and CSV.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;

use crate::results::{FlowResult, Run};

/// A row: a run and one of its flows.
type Row<'a> = (&'a Run, &'a FlowResult);

/// A column of one type.
enum Column {
    Text(fn(&Row<'_>) -> String),
    Whole(fn(&Row<'_>) -> u64),
    Number(fn(&Row<'_>) -> Option<f64>),
    Yes(fn(&Row<'_>) -> bool),
}

const COLUMNS: [(&str, Column); 13] = [
    ("run", Column::Text(|(run, _)| run.id.clone())),
    ("cell", Column::Text(|(run, _)| run.cell.clone())),
    ("seed", Column::Whole(|(run, _)| run.seed)),
    ("flow", Column::Text(|(_, flow)| flow.name.clone())),
    ("bytes", Column::Whole(|(_, flow)| flow.bytes)),
    ("goodput_bps", Column::Number(|(_, flow)| Some(flow.goodput_bps))),
    ("utilisation", Column::Number(|(_, flow)| Some(flow.utilisation))),
    ("completion_s", Column::Number(|(_, flow)| flow.completion_s)),
    ("retransmissions", Column::Whole(|(_, flow)| flow.retransmissions)),
    ("out_of_order", Column::Whole(|(_, flow)| flow.out_of_order)),
    ("timeouts", Column::Whole(|(_, flow)| flow.timeouts)),
    ("loss_rate", Column::Number(|(_, flow)| flow.loss_rate)),
    ("intact", Column::Yes(|(_, flow)| flow.intact)),
];

fn rows(runs: &[Run]) -> Vec<Row<'_>> {
    runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow))).collect()
}

/// Writes `runs` as CSV (RFC 4180).
pub fn write_csv(runs: &[Run], mut out: impl Write) -> io::Result<()> {
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    for row in rows(runs) {
        let fields: Vec<_> = COLUMNS.iter().map(|(_, column)| column.text(&row)).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    out.flush()
}

/// Writes `runs` as an Arrow IPC file.
pub fn write_arrow(runs: &[Run], out: impl Write) -> io::Result<()> {
    let rows = rows(runs);
    let write = || -> Result<(), ArrowError> {
        let batch = RecordBatch::try_from_iter(COLUMNS.iter().map(|(name, c)| (*name, c.array(&rows))))?;
        let mut writer = FileWriter::try_new(out, &batch.schema())?;
        writer.write(&batch)?;
        writer.finish()
    };
    write().map_err(io::Error::other)
}

impl Column {
    fn text(&self, row: &Row<'_>) -> String {
        match self {
            Self::Text(f) => quoted(f(row)),
            Self::Whole(f) => f(row).to_string(),
            Self::Number(f) => f(row).map(|v| v.to_string()).unwrap_or_default(),
            Self::Yes(f) => f(row).to_string(),
        }
    }

    fn array(&self, rows: &[Row<'_>]) -> ArrayRef {
        match self {
            Self::Text(f) => Arc::new(StringArray::from_iter_values(rows.iter().map(f))),
            Self::Whole(f) => Arc::new(UInt64Array::from_iter_values(rows.iter().map(f))),
            Self::Number(f) => Arc::new(Float64Array::from_iter(rows.iter().map(f))),
            Self::Yes(f) => Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(f(row))))),
        }
    }
}

fn quoted(text: String) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<Run> {
        let flow = FlowResult { name: "a".into(), bytes: 7, completion_s: None, ..FlowResult::default() };
        vec![Run {
            id: "x".into(),
            cell: "min_rtt,small".into(),
            seed: 3,
            flows: vec![flow],
            timeline: Default::default(),
        }]
    }

    #[test]
    fn csv_quotes_what_has_commas_and_leaves_out_what_is_missing() {
        let mut out = Vec::new();
        write_csv(&runs(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().nth(1), Some("x,\"min_rtt,small\",3,a,7,0,0,,0,0,0,,true"));
    }

    #[test]
    fn arrow_reads_back() {
        let mut out = Vec::new();
        write_arrow(&runs(), &mut out).unwrap();
        let reader = arrow_ipc::reader::FileReader::try_new(io::Cursor::new(out), None).unwrap();
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!((batches.len(), batches[0].num_rows(), batches[0].num_columns()), (1, 1, COLUMNS.len()));
    }
}
