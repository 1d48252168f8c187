//! What a daemon says: its last lines are kept, and `polypath log` prints them.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polypath_daemon::control::{Answer, Command, ControlError, LogLine, ask};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::ask::{answer, explained, other};
use crate::args::LogArgs;
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;

/// Lines that are kept.
const KEPT: usize = 1000;
/// Longest text of a line that is kept, bytes. In JSON it has twice as many at most: an answer with all lines stays below the 16 MiB that
/// are read of one.
const LONGEST: usize = 4096;
/// How often a daemon is asked for new lines.
const EACH: Duration = Duration::from_millis(500);

/// The last lines of this process.
#[derive(Clone, Default)]
pub struct Recent(Arc<Mutex<VecDeque<LogLine>>>);

impl Recent {
    /// The lines after `at_us`, the oldest first.
    pub fn after(&self, at_us: u64) -> Vec<LogLine> {
        self.lines().iter().filter(|line| line.at_us > at_us).cloned().collect()
    }

    fn push(&self, now_us: u64, level: &str, text: String) {
        let mut lines = self.lines();
        // A clock that is set back does not hide lines from those who follow.
        let at_us = now_us.max(lines.back().map_or(0, |last| last.at_us + 1));
        lines.push_back(LogLine { at_us, level: level.to_owned(), text });
        if lines.len() > KEPT {
            lines.pop_front();
        }
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<LogLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let Text { mut message, fields } = text;
        message += &fields;
        let mut message = harmless(&message);
        message.truncate(message.floor_char_boundary(LONGEST));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.push(now.as_micros() as u64, event.metadata().level().as_str(), message);
    }
}

/// The words of an event: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Prints what a daemon said, and goes on if asked to.
pub fn log(args: &LogArgs) -> Result<(), Failure> {
    let interrupt = args.follow.then(Interrupt::listen_meanwhile).transpose()?;
    let mut lines = since(args, 0)?;
    let skipped = args.lines.map_or(0, |most| lines.len().saturating_sub(most));
    let mut last = lines.last().map_or(0, |line| line.at_us);
    print(args, &lines.split_off(skipped))?;
    let Some(interrupt) = interrupt else { return Ok(()) };
    let followed = interrupt.block_on(interrupt.or(async {
        loop {
            tokio::time::sleep(EACH).await;
            match next(args, last).await? {
                Next::Lines(new) => {
                    last = new.last().map_or(last, |line| line.at_us);
                    print(args, &new)?;
                }
                Next::Later => {}
                Next::Ended => {
                    eprintln!("the daemon has ended");
                    return Ok(());
                }
            }
        }
    }));
    followed.map_err(Failure::unless_told)
}

/// What a daemon says to those who follow.
enum Next {
    Lines(Vec<LogLine>),
    /// Nothing yet: it is busy.
    Later,
    Ended,
}

/// The lines after `at_us`, from a thread that may wait for them.
async fn next(args: &LogArgs, at_us: u64) -> Result<Next, Failure> {
    let socket = args.socket.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&socket, &Command::Log(at_us))).await;
    match asked.map_err(|e| Failure::system("cannot ask the daemon", e))? {
        Err(ControlError::Nobody(_) | ControlError::Ended(_)) => Ok(Next::Ended),
        Err(ControlError::Silent(_)) => Ok(Next::Later),
        answer => lines(explained(answer)?).map(Next::Lines),
    }
}

fn since(args: &LogArgs, at_us: u64) -> Result<Vec<LogLine>, Failure> {
    lines(answer(&args.socket, &Command::Log(at_us))?)
}

fn lines(answer: Answer) -> Result<Vec<LogLine>, Failure> {
    match answer {
        Answer::Log(lines) => Ok(lines),
        _ => Err(other()),
    }
}

fn print(args: &LogArgs, lines: &[LogLine]) -> Result<(), Failure> {
    let mut text = String::new();
    for line in lines {
        text += &match args.json {
            true => serde_json::to_string(line).map_err(|e| Failure::system("cannot write JSON", e))?,
            false => plain(line),
        };
        text.push('\n');
    }
    let mut out = io::stdout();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

fn plain(line: &LogLine) -> String {
    let at = UNIX_EPOCH + Duration::from_micros(line.at_us);
    format!("{} {:>5} {}", humantime::format_rfc3339_millis(at), line.level, harmless(&line.text))
}

/// `text` without control characters, which reach no terminal: a peer may have made them.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::prelude::*;

    use super::*;

    fn texts(lines: &[LogLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_last_thousand_lines_are_kept_in_order_though_the_clock_is_set_back() {
        let recent = Recent::default();
        for n in 0..1200 {
            recent.push(5000 - n, "INFO", n.to_string());
        }
        let all = recent.after(0);
        assert_eq!((all.len(), all[0].text.as_str()), (KEPT, "200"));
        assert!(all.is_sorted_by_key(|line| line.at_us));
        assert_eq!(texts(&recent.after(all[997].at_us)), ["1198", "1199"]);
    }

    #[test]
    fn a_line_has_its_message_and_its_fields() {
        let recent = Recent::default();
        let here = tracing_subscriber::registry().with(recent.clone());
        tracing::subscriber::with_default(here, || {
            tracing::warn!(peer = %"far", device = "tun0", paths = 2, "association is gone");
            tracing::info!("{}", "long ".repeat(2000));
            tracing::info!("{}", "\u{1}".repeat(9000));
        });
        let lines = recent.after(0);
        assert_eq!(
            (lines[0].level.as_str(), texts(&lines)[0]),
            ("WARN", "association is gone peer=far device=tun0 paths=2")
        );
        assert_eq!(lines[1].text.len(), LONGEST);
        assert!(serde_json::to_string(&lines[2]).unwrap().len() < 2 * LONGEST + 100);
    }

    #[test]
    fn what_is_printed_has_no_control_characters() {
        let line = LogLine { at_us: 1_000_000, level: "INFO".into(), text: "a\u{1b}[2Jb".into() };
        assert_eq!(plain(&line), "1970-01-01T00:00:01.000Z  INFO a\u{fffd}[2Jb");
    }
}
