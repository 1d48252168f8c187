//! A controller in Python. After each event it is asked for its windows, which are kept until the next.

use std::fmt;
use std::sync::Arc;

use polypath_transport::cc::{Controller, Phase, Snapshot};
use polypath_transport::facts::{AckSample, Episode, LossEvent, LostSegment, Pace, PathView};
use polypath_transport::path_map::PathMap;
use polypath_wire::{Duration, Instant, PathId, Rate};
use pyo3::prelude::*;

use super::facts::{Ack, Loss, Path, seconds};
use super::{Failure, refused};

/// A quantum of pacing, segments.
const QUANTUM: u64 = 2;

/// An instance of a class.
pub struct Controlled {
    /// None if it could not be made.
    object: Option<Py<PyAny>>,
    has: Has,
    paths: PathMap<(PathId, State)>,
    total: Option<u64>,
    timeout: Option<Instant>,
    failure: Arc<Failure>,
}

/// What it said last of a path.
#[derive(Clone, Copy, Default)]
struct State {
    mss: u32,
    window: u64,
    ssthresh: Option<u64>,
    rate: Option<Rate>,
}

/// Which methods it has of those that it may leave out.
#[derive(Clone, Copy, Default)]
struct Has {
    removed: bool,
    mss: bool,
    sent: bool,
    lost: bool,
    undo: bool,
    limit: bool,
    timeout: bool,
    pacing: bool,
    total: bool,
    ssthresh: bool,
}

impl Has {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let base = object.py().import("polypath._own")?.getattr("Controller")?;
        let class = object.get_type();
        let has = |name: &str| Ok::<_, PyErr>(!class.getattr(name)?.is(&base.getattr(name)?));
        Ok(Self {
            removed: has("on_path_removed")?,
            mss: has("on_mss")?,
            sent: has("on_sent")?,
            lost: has("on_lost")?,
            undo: has("on_undo")?,
            limit: has("limit_window")?,
            timeout: has("next_timeout")?,
            pacing: has("pacing_rate")?,
            total: has("total_window")?,
            ssthresh: has("ssthresh")?,
        })
    }
}

impl Controlled {
    /// An instance of `class`, which may throw dice with `seed`.
    pub fn new(class: &Py<PyAny>, seed: u64, failure: Arc<Failure>) -> Self {
        let made = Python::attach(|py| {
            let object = class.bind(py).call0()?;
            object.setattr("seed", seed)?;
            Ok((Has::of(&object)?, object.unbind()))
        });
        let (has, object) = made.map_or_else(
            |error| {
                failure.keep(error);
                (Has::default(), None)
            },
            |(has, object)| (has, Some(object)),
        );
        Self { object, has, paths: PathMap::default(), total: has.total.then_some(0), timeout: None, failure }
    }

    /// Something happened: `tell` says what. Then it is asked for everything.
    fn event(&mut self, now: Option<Instant>, tell: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = self.object.take_if(|_| !self.failure.is_there()) else { return };
        let told = Python::attach(|py| {
            let object = object.bind(py);
            tell(object)?;
            self.ask(now, object)
        });
        match told {
            Ok(()) => self.object = Some(object),
            Err(error) => self.failure.keep(error),
        }
    }

    fn ask(&mut self, now: Option<Instant>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        for (path, state) in self.paths.iter_mut() {
            state.window = bytes(&object.call_method1("window", (path.0,))?, "window")?;
            if self.has.ssthresh {
                let said = object.call_method1("ssthresh", (path.0,))?;
                state.ssthresh = if said.is_none() { None } else { Some(bytes(&said, "ssthresh")?) };
            }
            if self.has.pacing {
                let said = object.call_method1("pacing_rate", (path.0,))?;
                let rate = if said.is_none() { None } else { Some(bytes(&said, "pacing_rate")?) };
                state.rate = rate.map(|rate| Rate(rate.max(1)));
            }
        }
        if self.has.total {
            self.total = Some(bytes(&object.call_method0("total_window")?, "total_window")?);
        }
        if self.has.timeout {
            self.timeout = due(now, &object.call_method0("next_timeout")?)?;
        }
        Ok(())
    }

    fn state(&self, path: PathId) -> State {
        self.paths.get(path).map_or_else(State::default, |(_, state)| *state)
    }

    fn state_mut(&mut self, path: PathId) -> Option<&mut State> {
        self.paths.get_mut(path).map(|(_, state)| state)
    }
}

/// A number of bytes, or of bits in a second.
fn bytes(said: &Bound<'_, PyAny>, method: &str) -> PyResult<u64> {
    let number: f64 = said.extract()?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number as u64),
        false => Err(refused(format!("{method}() returned {number}: a finite number from 0 is needed"))),
    }
}

/// When it wants to be asked again.
fn due(now: Option<Instant>, said: &Bound<'_, PyAny>) -> PyResult<Option<Instant>> {
    let Some(at) = said.extract::<Option<f64>>()? else { return Ok(None) };
    let instant = Instant((at * 1e9).round() as u64);
    match at.is_nan() || now.is_some_and(|now| instant <= now) {
        true => Err(refused(format!(
            "next_timeout() returned {at}: a time that is still to come, or None, is needed"
        ))),
        false => Ok(Some(instant)),
    }
}

impl Controller for Controlled {
    fn heeds_marks(&self) -> bool {
        false // nothing tells it of them
    }

    fn on_path_added(&mut self, now: Instant, path: PathId, mss: u32) {
        self.paths.insert((path, State { mss, window: u64::from(mss), ..State::default() }));
        self.event(Some(now), |o| o.call_method1("on_path_added", (seconds(now), path.0, mss)).map(drop));
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.paths.remove(path);
        if self.has.removed {
            self.event(None, |o| o.call_method1("on_path_removed", (path.0,)).map(drop));
        }
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        if let Some(state) = self.state_mut(path) {
            state.mss = mss;
        }
        if self.has.mss {
            self.event(None, |o| o.call_method1("on_mss", (path.0, mss)).map(drop));
        }
    }

    fn window_only(&self) -> bool {
        let Has { sent, timeout, pacing, .. } = self.has;
        !(sent || timeout || pacing)
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: u64) {
        if self.has.sent {
            self.event(Some(now), |o| o.call_method1("on_sent", (seconds(now), path.0, bytes)).map(drop));
        }
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        if self.has.limit {
            self.event(None, |o| o.call_method1("limit_window", (path.0, bytes)).map(drop));
        }
        if let Some(state) = self.state_mut(path) {
            state.window = state.window.min(bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, paths: &[PathView]) {
        self.event(Some(now), |o| {
            let paths = Path::all(now, None, paths);
            o.call_method1("on_ack", (seconds(now), path.0, Ack(*sample), paths)).map(drop)
        });
    }

    fn on_lost(&mut self, now: Instant, path: PathId, segment: &LostSegment) {
        if self.has.lost {
            let LostSegment { offset, bytes, sent_at } = *segment;
            let told = (seconds(now), path.0, offset, bytes, seconds(sent_at));
            self.event(Some(now), |o| o.call_method1("on_lost", told).map(drop));
        }
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, paths: &[PathView]) {
        self.event(Some(now), |o| {
            let paths = Path::all(now, None, paths);
            o.call_method1("on_loss", (seconds(now), path.0, Loss(*loss), paths)).map(drop)
        });
    }

    fn on_undo(&mut self, now: Instant, path: PathId, episode: Episode) {
        if self.has.undo {
            self.event(Some(now), |o| o.call_method1("on_undo", (seconds(now), path.0, episode.0)).map(drop));
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.timeout.filter(|_| self.object.is_some())
    }

    fn on_timeout(&mut self, now: Instant, paths: &[PathView]) {
        self.event(Some(now), |o| {
            o.call_method1("on_timeout", (seconds(now), Path::all(now, None, paths))).map(drop)
        });
    }

    fn window(&self, path: PathId) -> u64 {
        self.state(path).window
    }

    fn total_window(&self) -> Option<u64> {
        self.total
    }

    fn pace(&self, path: PathId) -> Option<Pace> {
        let State { rate, mss, .. } = self.state(path);
        rate.map(|rate| Pace {
            rate,
            quantum: QUANTUM * u64::from(mss),
            credit: Duration::ZERO,
            together: 0,
            spreads_window: false,
        })
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        let State { window, ssthresh, rate, .. } = self.state(path);
        let starts = ssthresh.is_none_or(|ssthresh| window < ssthresh);
        let phase = if starts { Phase::SlowStart } else { Phase::CongestionAvoidance };
        Snapshot { window, ssthresh, rate, phase }
    }
}

impl fmt::Debug for Controlled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths.iter().map(|(path, state)| (path, state.window))).finish()
    }
}
