//! Tables of the terminal: no borders, words to the left, numbers to the right.

use comfy_table::{CellAlignment, Row, Table, presets};

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
