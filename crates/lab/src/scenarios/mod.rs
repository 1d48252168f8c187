//! Random scenarios by number, each a spec: `frontier/17`. The same number is the same scenario everywhere.

mod drawn;
mod text;

pub use drawn::{Bottleneck, Path, Rival, Scenario};
pub(crate) use text::{rival, twin};

use crate::place::Place;
use crate::spec::{Experiment, parse_at};

/// The connection under test.
pub const BUNDLE: &str = "bundle";
/// The cell in which a TCP stands for the connection at each bottleneck.
pub const NULL: &str = "null";
/// The cell in which nothing stands for it.
pub const ALONE: &str = "alone";
/// What is compared.
pub const CONTROLLERS: [&str; 8] = ["newreno", "cubic", "bbr", "lia", "olia", "balia", "wvegas", "polypath"];
/// `polypath` with a part of it off, or another in its place.
pub const VARIANTS: [Variant; 8] = [
    ("polypath_separate", "bottlenecks = \"separate\"", &[]),
    ("polypath_shared", "bottlenecks = \"shared\"", &[]),
    ("polypath_statistics", "bottlenecks = \"statistics\"", &[]),
    ("polypath_all_losses", "random_loss = false", &[]),
    ("polypath_newreno", "base = \"newreno\"", &[]),
    ("polypath_cubic", "base = \"cubic\"", &[]),
    ("polypath_target", "queue_target = 10", &[]),
    // As `polypath send` and the daemon have it.
    ("polypath_as_sent", "", &[("scheduler", "earliest_completion"), ("acks", "thinned")]),
];
/// Label, keys of the controller, and other policies of the connection by key.
pub type Variant = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
/// The group to which scenarios belong by name: `frontier/17`.
pub const GROUP: &str = "frontier";

/// The experiment that is scenario `number`.
pub fn experiment(number: u64) -> Experiment {
    let name = format!("{GROUP}/{number}");
    let text = text::text(&Scenario::draw(number));
    let read = parse_at(&text, &name, &Place::Nowhere);
    let experiment = read.unwrap_or_else(|e| panic!("a scenario is a spec: {e}"));
    Experiment { name, ..experiment }
}
