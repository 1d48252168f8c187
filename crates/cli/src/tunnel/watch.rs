//! `polypath status --watch`: how a daemon is, on a screen that follows it, or as lines of JSON.

mod history;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polypath_daemon::Status;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde::Serialize;

use super::ask::current;
use crate::args::StatusArgs;
use crate::failure::{Failure, printed};
use history::History;

/// Time between two looks at the daemon.
const EVERY: Duration = Duration::from_secs(1);

/// Follows a daemon until the user has seen enough.
pub fn watch(args: &StatusArgs) -> Result<(), Failure> {
    if args.json {
        return lines(args);
    }
    if !io::stdout().is_terminal() {
        let failure = Failure::usage("standard output is not a terminal");
        return Err(failure.help("`polypath status --watch --json` prints a line of JSON each second"));
    }
    let first = current(&args.socket)?;
    let mut terminal = ratatui::try_init().map_err(|e| Failure::system("no screen", e))?;
    let seen = follow(&mut terminal, args, &first);
    ratatui::restore();
    seen
}

/// A line each second.
fn lines(args: &StatusArgs) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Line<'a> {
        /// Seconds since 1970.
        time: f64,
        #[serde(flatten)]
        status: &'a Status,
    }
    loop {
        let status = current(&args.socket)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let json = serde_json::to_string(&Line { time, status: &status });
        let json = json.map_err(|e| Failure::system("cannot write JSON", e))?;
        let mut out = io::stdout();
        match writeln!(out, "{json}").and_then(|()| out.flush()) {
            Ok(()) => sleep(EVERY),
            failed => return printed(failed),
        }
    }
}

fn follow(terminal: &mut DefaultTerminal, args: &StatusArgs, first: &Status) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::system("no screen", e);
    let (mut history, began) = (History::default(), Instant::now());
    history.see(Duration::ZERO, first);
    loop {
        terminal.draw(|frame| screen::draw(frame, &history)).map_err(failed)?;
        let next = Instant::now() + EVERY;
        while event::poll(next.saturating_duration_since(Instant::now())).map_err(failed)? {
            match event::read().map_err(failed)? {
                Event::Key(key) if ends(&key) => return Ok(()),
                Event::Resize(..) => {
                    _ = terminal.draw(|frame| screen::draw(frame, &history)).map_err(failed)?
                }
                _ => {}
            }
        }
        history.see(began.elapsed(), &current(&args.socket)?);
    }
}

/// `q`, Escape and Ctrl-C.
fn ends(key: &KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_interrupt_end_it() {
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        assert!(ends(&key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(ends(&key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(ends(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends(&key(KeyCode::Char('c'), KeyModifiers::NONE)));
    }
}
