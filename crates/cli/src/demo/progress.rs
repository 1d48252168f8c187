//! Live bars on the terminal: one for the file, one for the rate of each path.

use std::sync::Mutex;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use polypath_wire::Duration;

use super::content::Content;
use super::plan::Plan;

/// Rates are over this long.
const INTERVAL: Duration = Duration::from_millis(200);
/// The clock of the file's bar moves, even if nothing else does.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

/// The bars. Nothing is drawn where standard error is no terminal.
pub struct Progress {
    all: MultiProgress,
    file: ProgressBar,
    paths: Vec<ProgressBar>,
    last: Mutex<Last>,
}

struct Last {
    /// Since the beginning, in the time of the paths.
    at: Duration,
    delivered: Vec<u64>,
}

impl Progress {
    pub fn new(plan: &Plan, content: &Content, hidden: bool) -> Self {
        let target = match hidden {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let all = MultiProgress::with_draw_target(target);
        let file = all.add(
            ProgressBar::new(content.len)
                .with_style(style("{prefix:7} {wide_bar} {bytes:>10} of {total_bytes} in {elapsed}"))
                .with_prefix("file"),
        );
        let bar = |(id, link): (usize, &polypath_lab::units::Link)| {
            let bar = ProgressBar::new(link.rate.0)
                .with_style(style("{prefix:7} {wide_bar} {msg}"))
                .with_prefix(format!("path {id}"));
            // Whatever changes before it is among the others is drawn on a line of its own.
            let bar = all.add(bar);
            bar.set_message(format!("   0.0 of {link}"));
            bar
        };
        if !file.is_hidden() {
            file.enable_steady_tick(TICK);
        }
        let paths = plan.links.iter().enumerate().map(bar).collect();
        let last = Last { at: Duration::ZERO, delivered: vec![0; plan.links.len()] };
        Self { all, file, paths, last: Mutex::new(last) }
    }

    /// How much arrived in all and over each path until `now`, since the beginning in the time of the paths.
    pub fn show(&self, plan: &Plan, now: Duration, arrived: u64, delivered: &[u64]) {
        self.file.set_position(arrived);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let passed = now - last.at;
        if passed < INTERVAL || delivered.len() != self.paths.len() {
            return;
        }
        for (id, bar) in self.paths.iter().enumerate() {
            let bytes = delivered[id].saturating_sub(last.delivered[id]);
            let rate = bytes as f64 * 8.0 / passed.as_secs_f64();
            bar.set_position(rate as u64);
            bar.set_message(format!("{:6.1} of {}", rate / 1e6, plan.links[id]));
        }
        *last = Last { at: now, delivered: delivered.to_vec() };
    }

    /// From now on it is path `id` that carries the whole file alone.
    pub fn alone(&self, id: usize) {
        self.paths.iter().for_each(ProgressBar::finish_and_clear);
        self.file.reset();
        self.file.set_prefix(format!("path {id} alone, simulated"));
    }

    /// Takes the bars away: the table follows.
    pub fn finish(&self) {
        self.file.disable_steady_tick(); // a tick after this would draw the bar again, into the table
        // A terminal that cannot be cleared still shows the table.
        let _ = self.all.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are well-formed").progress_chars("━╸─")
}
