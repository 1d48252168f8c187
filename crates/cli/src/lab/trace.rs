//! A trace of a link's rate, drawn by seed.

use std::io::{self, Write};

use polypath_lab::traces::{Kind, TraceError};
use polypath_wire::Seed;

use crate::args::TraceArgs;
use crate::failure::{Failure, printed};

/// Prints the trace.
pub fn draw(args: &TraceArgs) -> Result<(), Failure> {
    let wrong = |e: TraceError| match e {
        TraceError::Length(seconds) => Failure::usage(format!("--seconds {seconds}: {e}")),
        _ => Failure::usage(e.to_string()),
    };
    let kind = Kind::called(&args.kind).map_err(wrong)?;
    let mean = args.mean.map_or(kind.mean(), |mean| mean.0);
    let trace = kind.draw(Seed(args.seed), args.seconds, mean).map_err(wrong)?;
    printed(write!(io::BufWriter::new(io::stdout().lock()), "{trace}"))
}
