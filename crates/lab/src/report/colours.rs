//! The colours of a drawing: each stands for a variable of the page.

use plotters::style::RGBColor;

/// Number of colours that the page defines.
pub const COLOURS: usize = 9;
/// Of text and axes, and of the grid.
pub const TEXT: RGBColor = RGBColor(1, 2, 3);
pub const GRID: RGBColor = RGBColor(1, 2, 4);

/// The place of a page's variable in the drawing, replaced by it in the end.
pub(super) fn colour(line: usize) -> RGBColor {
    RGBColor(1, 3, (line % COLOURS) as u8)
}
