//! Live bars: one for the file, one for all files, one for the rate of each path as paths come and go.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use polypath_endpoint::{Locators, PathReport};
use polypath_files::Work;
use polypath_node::StreamStats;
use polypath_transport::PathStats;

use super::progress::View;

/// The bars. Nothing is drawn where standard error is no terminal. They move only when something arrives.
pub struct Bars {
    all: MultiProgress,
    file: ProgressBar,
    /// Shown where there are several files.
    sum: ProgressBar,
    /// Number of files, 0 if it is not known.
    files: usize,
    paths: BTreeMap<Ends, PathBar>,
    last: Instant,
}

/// The addresses of a path. Our port may be another one when an address comes back.
type Ends = (IpAddr, SocketAddr);

struct PathBar {
    bar: ProgressBar,
    /// The present path between these addresses, or the last.
    report: PathReport,
    /// The first path through its bottleneck, if the controller tells.
    bottleneck: Option<Locators>,
    /// Bytes delivered by the present path between these locators.
    seen: u64,
    total: u64,
    /// `total` when the bar was last drawn.
    shown: u64,
    /// The highest rate so far: the bar's length.
    top: f64,
    /// There is no path between these addresses now.
    gone: bool,
}

/// What one pair of addresses carried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried {
    /// The present path between them, or the last.
    pub path: PathReport,
    pub bytes: u64,
    /// The first path through its bottleneck, if the controller tells.
    pub bottleneck: Option<Locators>,
}

impl Bars {
    /// For `files` files, 0 if the number is not known, of `total` bytes.
    pub fn new(hidden: bool, files: usize, total: Option<u64>) -> Self {
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let all = MultiProgress::with_draw_target(target);
        let file = all.add(ProgressBar::new(0));
        let sum = ProgressBar::new(total.unwrap_or_default());
        let sum = if files > 1 { all.add(sum.with_style(style(SUM))) } else { sum };
        Self { all, file, sum, files, paths: BTreeMap::new(), last: Instant::now() }
    }

    /// Draws all bars; the rates of the paths are those since they were last drawn.
    pub fn show(&mut self, view: &View) {
        let passed = self.last.elapsed().as_secs_f64().max(1e-3);
        self.last = Instant::now();
        self.paths.values_mut().for_each(|path| path.show(passed));
        self.show_files(view);
    }

    fn show_files(&self, view: &View) {
        let Some((number, name)) = &view.file else {
            if let Some(work) = view.work {
                self.file.set_style(style("{msg}"));
                self.file.set_message(doing(work));
            }
            return;
        };
        let (at, size) = view.of_file;
        let known = size.filter(|size| *size > 0);
        self.file.set_style(style(if known.is_some() { FILE } else { ENDLESS }));
        known.into_iter().for_each(|size| self.file.set_length(size));
        self.file.set_position(at);
        let speed = speed(view);
        match self.files {
            0 => self.file.set_message(format!("file {number}: {name}")),
            1 => self.file.set_message(name.clone()),
            count => self.file.set_message(format!("file {number} of {count}: {name}")),
        }
        self.file.set_prefix(if self.files > 1 { String::new() } else { speed.clone() });
        self.sum.set_position(view.position);
        self.sum.set_prefix(speed);
    }

    /// Counts what the paths carried; `delivered` picks the direction.
    pub fn count(&mut self, stats: &StreamStats, delivered: impl Fn(&PathStats) -> u64) {
        let all = || stats.paths.iter().zip(&stats.secure);
        let locators = |id| all().find(|((path, ..), _)| *path == id)?.1.as_ref().map(|path| path.locators);
        let mut now: BTreeMap<Ends, (u64, &PathReport, Option<Locators>)> = BTreeMap::new();
        for ((_, _, path), secure) in all() {
            if let Some(secure) = secure {
                let ends = (secure.locators.local.ip(), secure.locators.remote);
                let before = now.get(&ends).map_or(0, |path| path.0);
                let bottleneck = path.bottleneck.and_then(locators);
                now.insert(ends, (before + delivered(path), secure, bottleneck));
            }
        }
        for (ends, path) in &mut self.paths {
            path.gone = !now.contains_key(ends);
            if path.gone {
                path.seen = 0;
            }
        }
        for (ends, (bytes, report, bottleneck)) in now {
            let path = self.paths.entry(ends).or_insert_with(|| PathBar::new(&self.all, report));
            path.count(report, bytes);
            path.bottleneck = bottleneck;
        }
    }

    /// What every pair of addresses carried since the beginning.
    pub fn carried(&self) -> Vec<Carried> {
        let carried = |path: &PathBar| {
            let (report, bytes, bottleneck) = (path.report.clone(), path.total, path.bottleneck);
            Carried { path: report, bytes, bottleneck }
        };
        self.paths.values().map(carried).collect()
    }

    /// Takes the bars away for good: one that is not finished would be drawn again when it is dropped.
    pub fn clear(&self) {
        self.file.finish_and_clear();
        self.sum.finish_and_clear();
        self.paths.values().for_each(|path| path.bar.finish_and_clear());
        // A terminal that cannot be cleared still shows what follows.
        let _ = self.all.clear();
    }

    /// A line above the bars.
    pub fn say(&self, line: &str) {
        self.all.suspend(|| eprintln!("{line}"));
    }
}

impl PathBar {
    fn new(all: &MultiProgress, report: &PathReport) -> Self {
        let bar = all.add(ProgressBar::new(1).with_style(style("  {wide_bar} {msg}")));
        let (report, bottleneck) = (report.clone(), None);
        Self { bar, report, bottleneck, seen: 0, total: 0, shown: 0, top: 1.0, gone: false }
    }

    fn count(&mut self, report: &PathReport, bytes: u64) {
        self.report = report.clone();
        // A new path between the same addresses counts from 0.
        let new = if bytes >= self.seen { bytes - self.seen } else { bytes };
        (self.seen, self.total) = (bytes, self.total + new);
    }

    /// Draws the rate of the `passed` seconds since the bar was last drawn.
    fn show(&mut self, passed: f64) {
        let rate = (self.total - self.shown) as f64 * 8.0 / passed;
        self.shown = self.total;
        self.top = self.top.max(rate);
        self.bar.set_length(self.top as u64);
        self.bar.set_position(if self.gone { 0 } else { rate as u64 });
        let ends = self.report.locators;
        let state = if self.gone { "gone".to_owned() } else { format!("{:6.1} Mbit/s", rate / 1e6) };
        self.bar.set_message(format!("{} → {}: {state}", ends.local.ip(), ends.remote));
    }
}

const FILE: &str = "{msg}  {wide_bar} {bytes:>10} of {total_bytes}{prefix}";
const ENDLESS: &str = "{msg}  {bytes:>10}{prefix}";
const SUM: &str = "all files  {wide_bar} {bytes:>10} of {total_bytes}{prefix}";

/// Below this rate only messages of the protocol move, bit/s.
const SILENT: f64 = 1e3;

/// The rate and the time that is left.
fn speed(view: &View) -> String {
    if let Some(work) = view.work
        && view.rate < SILENT
    {
        return format!(", {}", doing(work));
    }
    if view.rate <= 0.0 {
        return ", nothing moves".to_owned();
    }
    let rate = format!(", {:.1} Mbit/s", view.rate / 1e6);
    match view.left {
        Some(left) => {
            format!("{rate}, {:#} left", HumanDuration(Duration::from_secs(left.as_secs_f64().ceil() as u64)))
        }
        None => rate,
    }
}

/// What an end does while no bytes move.
fn doing(work: Work) -> &'static str {
    match work {
        Work::Checking => "checking what is there",
        Work::Storing => "storing",
        Work::Waiting => "an earlier transfer of it is not over there",
        Work::Reading => "waiting for more to send",
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are well-formed").progress_chars("━╸─")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_end_does_is_shown_where_no_bytes_of_files_move() {
        let shown = |work, rate| speed(&View { work, rate, ..View::default() });
        assert_eq!(shown(None, 0.0), ", nothing moves");
        assert_eq!(shown(Some(Work::Storing), 8.0), ", storing");
        assert_eq!(shown(Some(Work::Storing), 8e6), ", 8.0 Mbit/s");
    }
}
