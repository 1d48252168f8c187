//! Tables of the terminal: no borders, words to the left, numbers to the right.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};
use terminal_size::{Width, terminal_size_of};

/// A table whose first `words` columns hold words.
pub fn plain(headers: impl Into<Row>, words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headers);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if n >= words {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The same; where a terminal is too narrow for it, words are wrapped. Numbers never are.
#[cfg_attr(not(feature = "lab"), expect(dead_code, reason = "only `lab` has tables that wide"))]
pub fn wrapped(headers: impl Into<Row>, words: usize) -> Table {
    let mut table = plain(headers, words);
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width as u16);
    }
    for column in table.column_iter_mut().skip(words) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

/// Columns of the terminal that standard output is, if it is one.
pub fn width() -> Option<usize> {
    terminal_size_of(std::io::stdout()).map(|(Width(width), _)| width.into())
}
