//! What came out, drawn: charts of figures, files of each, and whole pages.

mod chart;
mod colours;
mod drawing;
mod files;
mod frame;
mod lines;
mod marks;
mod page;
mod pdf;
mod points;
mod published;
mod runs;
mod spread;
mod svg;

pub use chart::{Chart, Line, Mark};
pub use drawing::drawing;
pub use files::files;
pub use lines::{FigureError, charts, charts_with_data};
pub use page::{About, Again, Frontier, frontier, page};
pub use pdf::{PdfError, pdf};
pub use points::points;
pub use svg::svg;
