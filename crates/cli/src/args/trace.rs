//! Arguments of `polypath lab trace`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use polypath_lab::units::Human;
use polypath_wire::Rate;

use super::numbers::seed;

pub const EXAMPLES: &str = "\
Examples:
  polypath lab trace lte --seed 1 > lte.trace                         a minute of a cellular link with outages
  polypath lab trace starlink --seconds 300 --mean 100Mbit/s > sat.trace
  polypath lab trace wifi --seed 7 > wifi.trace

The format is mahimahi's: each line is the millisecond at which 1500 bytes may leave. The same seed draws the same \
trace everywhere. docs/experiments.md says where the numbers of each kind come from.";

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// Kind of link
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: String,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// Length of the trace before it repeats, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub seconds: u64,
    /// Mean rate over a long trace; without it 7Mbit/s (lte), 150Mbit/s (starlink), 37Mbit/s (wifi)
    #[arg(long, value_name = "RATE")]
    pub mean: Option<Human<Rate>>,
}

fn kinds() -> PossibleValuesParser {
    [
        ("lte", "Rate wanders, with outages, as Sprout models cellular links"),
        ("starlink", "Rate changes every 15 s, after a short pause"),
        ("wifi", "Bursts on a channel that others use too"),
    ]
    .map(|(name, help)| PossibleValue::new(name).help(help))
    .into()
}
