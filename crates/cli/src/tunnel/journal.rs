//! Log lines for the journal of systemd: it has the time, and takes the priority from the beginning of a line (sd-daemon(3)).

use std::env;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Whether standard error leads there (JOURNAL_STREAM in systemd.exec(5)).
pub fn listens() -> bool {
    let own = io::stderr().as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    let own = own.map(|stderr| format!("{}:{}", stderr.dev(), stderr.ino())).ok();
    own.is_some() && own == env::var("JOURNAL_STREAM").ok()
}

/// The lines of an error.
pub fn error(error: &impl fmt::Display) -> String {
    error.to_string().lines().map(|line| format!("<3>{line}")).collect::<Vec<_>>().join("\n")
}

/// The format of a line of the log.
pub struct Line(Format<Full, ()>);

impl Default for Line {
    fn default() -> Self {
        Self(tracing_subscriber::fmt::format().with_target(false).without_time())
    }
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        write!(line, "<{priority}>")?;
        self.0.format_event(context, line, event)
    }
}
