//! One run: a spec and a seed become a world, the world becomes numbers.

use std::fs::File;
use std::io;

use arrow_array::RecordBatch;
use polypath_sim::{Delays, FlowReport, WorldError};
use polypath_transport::CloseReason;
use polypath_wire::{Duration, Instant, PathId, Seed};
use sha2::{Digest, Sha256};

use crate::build::{Built, Carried, Looks, packet_size};
use crate::counters::{FlowLevel, HopLevel, PathLevel, PathSums, Snapshot};
pub use crate::keep::{Capture, Keep, Wanted};
use crate::metric::Needs;
use crate::results::{FlowResult, PathResult, Run};
use crate::spec::{Cell, FigureKind, Spec, What};
use crate::stop::Stop;
use crate::timeline::{Course, Layout, SAMPLE, Timeline, instants};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The world cannot be built.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Somebody asked it to, with [`Stop`].
    #[error("stopped")]
    Stopped,
    /// What it observed cannot be written.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
}

/// Name of a run: a hash of everything that decides it.
pub fn id(spec: &Spec, seed: u64) -> String {
    let mut decides = spec.clone();
    (decides.title, decides.description) = (String::new(), String::new());
    (decides.expect, decides.measure, decides.figure) = (Vec::new(), Vec::new(), Vec::new());
    let resolved = serde_json::to_vec(&decides).expect("a spec has only strings for keys");
    let hash = Sha256::new().chain_update(resolved).chain_update(seed.to_be_bytes()).finalize();
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Runs `cell` with `seed`.
pub fn run(cell: &Cell, seed: u64, keep: &Keep) -> Result<Run, RunError> {
    run_until(cell, seed, keep, &Stop::default())
}

/// The same, unless it is stopped before its end.
pub fn run_until(cell: &Cell, seed: u64, keep: &Keep, stop: &Stop) -> Result<Run, RunError> {
    let (mut built, watch) = observed(cell, seed, keep, stop)?;
    let id = id(&cell.spec, seed);
    let timeline = watch.timeline;
    let flows = (0..cell.spec.flow.len()).map(|n| result(&built, &cell.spec, n, &timeline)).collect();
    write(&mut built, keep, &id)?;
    Ok(Run { id, cell: cell.label.clone(), seed, flows, timeline })
}

/// Every observation of the run of `cell` with `seed`, as columns.
pub fn trace(cell: &Cell, seed: u64, stop: &Stop) -> Result<Vec<RecordBatch>, RunError> {
    let keep = Keep { trace: Some(Wanted::default()), ..Keep::default() };
    let (mut built, _) = observed(cell, seed, &keep, stop)?;
    Ok(built.world.take_trace().map(|trace| trace.batches()).unwrap_or_default())
}

/// The world after the run, and what was read on the way.
fn observed(cell: &Cell, seed: u64, keep: &Keep, stop: &Stop) -> Result<(Built, Watch), RunError> {
    let mut watch = Watch::of(cell, keep);
    let mut built = Built::new(&cell.spec, Seed(seed), watch.looks)?;
    if let Some(wanted) = &keep.trace {
        built.world.trace(true, true);
        built.world.filter_trace(wanted.filter(&cell.spec, &built));
    }
    if let Some(capture) = &keep.capture {
        let file = create(keep, &id(&cell.spec, seed), "pcapng")?;
        let hops = capture.hops(&cell.spec, &built);
        built.world.capture(&hops, capture.snap, Box::new(io::BufWriter::new(file)));
    }
    watch.run(&mut built, stop)?;
    Ok((built, watch))
}

/// A file under another name until it is complete: [`complete`] gives it its own.
fn create(keep: &Keep, id: &str, kind: &str) -> Result<File, RunError> {
    let path = keep.dir.join(format!("{id}.{kind}.part"));
    let made = std::fs::create_dir_all(&keep.dir).and_then(|()| File::create(&path));
    made.map_err(|source| RunError::Write { file: path.display().to_string(), source })
}

/// Ends a file of [`create`]; if writing failed, it is removed.
fn complete(keep: &Keep, id: &str, kind: &str, written: io::Result<()>) -> Result<(), RunError> {
    let path = keep.dir.join(format!("{id}.{kind}"));
    let part = keep.dir.join(format!("{id}.{kind}.part"));
    written.and_then(|()| std::fs::rename(&part, &path)).map_err(|source| {
        let _ = std::fs::remove_file(&part); // the error that counts is the first
        RunError::Write { file: path.display().to_string(), source }
    })
}

/// How often a run looks whether it is to stop, in virtual time.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the world and stops it wherever something must be read.
struct Watch {
    timeline: Timeline,
    instants: Vec<Duration>,
    /// Whether windows and queues are wanted.
    samples: Option<Duration>,
    looks: Looks,
    /// Width of a bin, the series, and the counters at the last bin's end, per course.
    courses: Vec<(Duration, Vec<What>, Snapshot)>,
    /// Sums of the samples so far: per flow and path, per hop.
    paths: Vec<Vec<PathSums>>,
    queues: Vec<u64>,
    taken: u64,
}

impl Watch {
    fn of(cell: &Cell, keep: &Keep) -> Self {
        let spec = &cell.spec;
        let mut whats: Vec<What> = keep.also.clone();
        whats.extend(spec.asked().flat_map(|(_, of)| of.whats().cloned().collect::<Vec<_>>()));
        let (mut courses, mut lines) = (Vec::new(), Vec::new());
        for (figure, f) in spec.figure.iter().enumerate() {
            let selected = f.series.iter().map(|s| s.selector(f));
            if f.kind != FigureKind::Time {
                whats.extend(selected.flat_map(|s| s.whats().cloned().collect::<Vec<_>>()));
            } else if f.cell.as_ref().is_none_or(|c| cell.matches(c)) {
                let series: Vec<What> = selected.map(|s| s.what).collect();
                lines.push(Course { figure, series: vec![Vec::new(); series.len()] });
                courses.push((f.bin.0, series, Snapshot::default()));
            }
        }
        let all = || whats.iter().chain(courses.iter().flat_map(|(_, series, _)| series));
        let needs = |what| all().any(|w| w.metric.def().needs == what);
        let sampled = needs(Needs::Samples);
        let finest = courses.iter().map(|(bin, ..)| *bin).min().unwrap_or(SAMPLE).min(SAMPLE);
        let (reordering, delays) = (needs(Needs::Reordering), needs(Needs::Delays));
        let packet = |n: usize, p: usize| packet_size(spec, &spec.flow[n], &spec.flow[n].paths[p]);
        let layout = Layout::of(spec, packet);
        Self {
            instants: instants(spec, whats.iter()),
            samples: sampled.then_some(finest),
            looks: Looks { observations: keep.trace.is_some(), reordering, delays },
            paths: spec.flow.iter().map(|f| vec![PathSums::default(); f.paths.len()]).collect(),
            queues: vec![0; spec.link.len() * 2],
            taken: 0,
            timeline: Timeline { layout, marks: Vec::new(), courses: lines },
            courses,
        }
    }

    fn run(&mut self, built: &mut Built, stop: &Stop) -> Result<(), RunError> {
        let end = *self.instants.last().expect("the end of the run is always watched");
        let mut next_sample = self.samples.unwrap_or(Duration(u64::MAX));
        let mut next_bins: Vec<Duration> = self.courses.iter().map(|(bin, ..)| *bin).collect();
        let mut marks = self.instants.clone().into_iter().peekable();
        let mut next_look = LOOK;
        while !stop.is_asked() {
            let bin = next_bins.iter().copied().min().unwrap_or(end);
            let mark = marks.peek().copied().unwrap_or(end);
            let at = mark.min(bin).min(next_sample).min(next_look).min(end);
            if at > Duration::ZERO {
                built.world.run(Instant::ZERO + at); // what happens at 0 counts after the first mark
            }
            if at == next_look {
                next_look = at + LOOK;
            }
            if at == next_sample {
                self.sample(built);
                next_sample = at + self.samples.unwrap_or_default();
            }
            if at == bin || at == mark {
                let now = self.snapshot(built);
                for (n, next) in next_bins.iter_mut().enumerate().filter(|(_, next)| **next == at) {
                    self.draw(n, &now, at, &built.starts);
                    *next = at + self.courses[n].0;
                }
                if marks.next_if_eq(&at).is_some() {
                    self.timeline.marks.push((at, now));
                }
            }
            if at == end {
                return Ok(());
            }
        }
        Err(RunError::Stopped)
    }

    fn sample(&mut self, built: &Built) {
        self.taken += 1;
        for (paths, source) in self.paths.iter_mut().zip(&built.sources) {
            let Carried::Tcp(connections) = source else { continue };
            for (path, sums) in paths.iter_mut().enumerate() {
                let (connection, path) = match connections[..] {
                    [one] => (one, path),
                    ref apart => (apart[path], 0),
                };
                if built.world.is_under_way(connection) {
                    sums.add(built.world.flow_path(connection, PathId(path as u16)).as_ref());
                }
            }
        }
        for (sum, hop) in self.queues.iter_mut().zip(&built.hops) {
            *sum += built.world.hop_waiting(*hop) as u64;
        }
    }

    /// One more bin of the course `n`, which ends `at`; flows begin at `starts`.
    fn draw(&mut self, n: usize, now: &Snapshot, at: Duration, starts: &[Instant]) {
        let (bin, series, before) = &mut self.courses[n];
        let Timeline { layout, courses, .. } = &mut self.timeline;
        for (what, line) in series.iter().zip(&mut courses[n].series) {
            let value = layout.value(what, before, now, (at - *bin, at));
            let begun = layout.has_begun(what, starts, Instant::ZERO + at);
            line.push(value.filter(|_| begun).unwrap_or(f64::NAN));
        }
        before.clone_from(now);
    }

    fn snapshot(&self, built: &Built) -> Snapshot {
        let flows = built.sources.iter().zip(&self.paths);
        let hops = built.hops.iter().zip(&self.queues);
        Snapshot {
            flows: flows.map(|(source, sums)| level(built, source, sums)).collect(),
            hops: hops
                .map(|(hop, sum)| {
                    let stats = built.world.hop_stats(*hop);
                    HopLevel { drops: stats.dropped_total(), bytes: stats.bytes_left, queue_sum: *sum }
                })
                .collect(),
            samples: self.taken,
        }
    }
}

/// What a flow has counted so far.
fn level(built: &Built, source: &Carried, sums: &[PathSums]) -> FlowLevel {
    match source {
        Carried::Udp(id) => {
            let report = built.world.source_report(*id);
            let (arrived, delivered, sent) = (report.bytes, report.bytes, report.sent);
            let path = PathLevel { arrived, delivered, sent, ..PathLevel::default() };
            let (bytes, out_of_order) = (report.bytes, report.out_of_order);
            let delays = built.world.source_delays(*id).cloned().unwrap_or_default();
            FlowLevel { bytes, out_of_order, paths: vec![path], delays, ..FlowLevel::default() }
        }
        Carried::Tcp(connections) => {
            let each = sums.len() / connections.len();
            let levels = connections.iter().zip(sums.chunks(each));
            let levels = levels.map(|(id, sums)| FlowLevel {
                delays: built.world.flow_delays(*id).cloned().unwrap_or_default(),
                ..level_of(&built.world.flow_report(*id), sums)
            });
            levels.reduce(FlowLevel::and).unwrap_or_default()
        }
    }
}

/// What a connection has counted so far.
fn level_of(report: &FlowReport, sums: &[PathSums]) -> FlowLevel {
    let path = |(p, sampled): (usize, &PathSums)| {
        let ends = (report.sender_paths.get(p), report.receiver_paths.get(p));
        let sender = ends.0.cloned().unwrap_or_default();
        PathLevel {
            arrived: ends.1.map_or(0, |r| r.bytes_received),
            delivered: sender.bytes_delivered,
            sent: sender.segments_sent,
            retransmissions: sender.retransmissions,
            srtt_ms: sender.srtt.map(|d| d.as_millis_f64()),
            rate_bps: sender.rate.map(|r| r.0 as f64),
            sampled: *sampled,
        }
    };
    FlowLevel {
        bytes: report.bytes + report.receiver.bytes_early,
        out_of_order: report.receiver.out_of_order,
        timeouts: report.sender.timeouts,
        reordering: report.reordering,
        blocking: report.blocking,
        delays: Delays::NONE,
        paths: sums.iter().enumerate().map(path).collect(),
    }
}

/// The numbers of flow `n`.
fn result(built: &Built, spec: &Spec, n: usize, timeline: &Timeline) -> FlowResult {
    let flow = &spec.flow[n];
    let (before, after) = timeline.measured(n);
    let counted = |count: fn(&FlowLevel) -> u64| count(after).saturating_sub(count(before));
    let measured = (spec.duration.0 - spec.measure_from.0).as_secs_f64();
    let arriving = counted(|level| level.bytes) as f64 * 8.0 / measured;
    let capacity = spec.capacity(flow);
    let result = FlowResult {
        name: flow.name.clone(),
        goodput_bps: arriving,
        utilisation: arriving / capacity.mean(spec.measure_from.0, spec.duration.0),
        out_of_order: counted(|level| level.out_of_order),
        timeouts: counted(|level| level.timeouts),
        ..FlowResult::default()
    };
    match &built.sources[n] {
        Carried::Udp(id) => {
            let loss_rate = built.world.loss_rate(*id);
            FlowResult { bytes: built.world.source_report(*id).bytes, loss_rate, ..result }
        }
        Carried::Tcp(connections) => {
            let reports: Vec<FlowReport> =
                connections.iter().map(|id| built.world.flow_report(*id)).collect();
            let bytes = reports.iter().map(|report| report.bytes).sum();
            let life = |r: &FlowReport| r.finished.map(|at| at.since(r.started).as_secs_f64());
            let lives: Option<Vec<f64>> = reports.iter().map(life).collect();
            let completion_s = lives.and_then(|lives| lives.into_iter().reduce(f64::max));
            let goodput_bps = completion_s.map_or(arriving, |seconds| bytes as f64 * 8.0 / seconds);
            let began = reports.iter().map(|r| r.started.since(Instant::ZERO)).min().unwrap_or_default();
            let life = completion_s.map(|seconds| (began, began + Duration::from_secs_f64(seconds)));
            let (from, to) = life.unwrap_or((spec.measure_from.0, spec.duration.0));
            let again = |level: &FlowLevel, p: usize| level.paths.get(p).map_or(0, |l| l.retransmissions);
            let of_paths =
                reports.iter().flat_map(|r| (0..).zip(&r.sender_paths).map(|(p, stats)| (stats, spi(r, p))));
            let path = |(p, (stats, spi))| {
                PathResult::new(stats, again(after, p).saturating_sub(again(before, p)), spi)
            };
            let paths: Vec<_> = of_paths.enumerate().map(path).collect();
            let stopped = |reason: &CloseReason| flow.stop.is_some() && *reason == CloseReason::Aborted;
            let lost = |r: &FlowReport| r.lost.filter(|r| !stopped(r)).map(|reason| format!("{reason:?}"));
            let failed = |r: &FlowReport| lost(r).or(r.refused.map(|e| e.to_string()));
            FlowResult {
                bytes,
                goodput_bps,
                utilisation: goodput_bps / capacity.mean(from, to),
                completion_s,
                retransmissions: paths.iter().map(|path| path.retransmissions).sum(),
                intact: !reports.iter().any(|report| report.corrupted),
                failed: reports.iter().find_map(failed),
                paths,
                ..result
            }
        }
    }
}

/// The SPI of what leaves on a path of a connection, if it is secure.
fn spi(report: &FlowReport, path: usize) -> Option<u32> {
    Some(report.secure_paths.get(path)?.as_ref()?.outbound)
}

fn write(built: &mut Built, keep: &Keep, id: &str) -> Result<(), RunError> {
    let captured = built.world.finish_capture();
    if keep.capture.is_some() {
        complete(keep, id, "pcapng", captured)?;
    }
    if let Some(trace) = built.world.take_trace() {
        let file = create(keep, id, "arrow")?;
        complete(keep, id, "arrow", trace.write_arrow(io::BufWriter::new(file)))?;
    }
    Ok(())
}
