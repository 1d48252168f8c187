//! Live bars on the terminal: one for the file, one for the rate of each path.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::content::Content;
use super::plan::{Mode, Plan};

/// Rates are over this long.
const INTERVAL: Duration = Duration::from_millis(200);

/// The bars. Nothing is drawn where standard error is no terminal.
pub struct Progress {
    all: MultiProgress,
    file: ProgressBar,
    paths: Vec<ProgressBar>,
    last: Mutex<Last>,
}

struct Last {
    at: Instant,
    delivered: Vec<u64>,
}

impl Progress {
    pub fn new(plan: &Plan, content: &Content, hidden: bool) -> Self {
        let target = match hidden || plan.mode == Mode::Simulated {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let all = MultiProgress::with_draw_target(target);
        let file = all.add(
            ProgressBar::new(content.len)
                .with_style(style("file    {wide_bar} {bytes:>10} of {total_bytes} in {elapsed}")),
        );
        let bar = |(id, link): (usize, &polypath_lab::units::Link)| {
            let bar =
                ProgressBar::new(link.rate.0).with_style(style(&format!("path {id}  {{wide_bar}} {{msg}}")));
            bar.set_message(format!("   0.0 of {link}"));
            all.add(bar)
        };
        let paths = plan.links.iter().enumerate().map(bar).collect();
        let last = Last { at: Instant::now(), delivered: vec![0; plan.links.len()] };
        Self { all, file, paths, last: Mutex::new(last) }
    }

    /// How much arrived in all and over each path so far.
    pub fn show(&self, plan: &Plan, arrived: u64, delivered: &[u64]) {
        self.file.set_position(arrived);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let passed = last.at.elapsed();
        if passed < INTERVAL || delivered.len() != self.paths.len() {
            return;
        }
        for (id, bar) in self.paths.iter().enumerate() {
            let bytes = delivered[id].saturating_sub(last.delivered[id]);
            let rate = bytes as f64 * 8.0 / passed.as_secs_f64();
            bar.set_position(rate as u64);
            bar.set_message(format!("{:6.1} of {}", rate / 1e6, plan.links[id]));
        }
        *last = Last { at: Instant::now(), delivered: delivered.to_vec() };
    }

    /// Takes the bars away: the table follows.
    pub fn finish(&self) {
        // A terminal that cannot be cleared still shows the table.
        let _ = self.all.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are well-formed").progress_chars("━╸─")
}
