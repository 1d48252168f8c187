//! What controllers and schedulers get: times in seconds, sizes in bytes, rates in bit/s.

use polypath_transport::facts::{AckSample, LossEvent, Parcel as Cargo, PathState, PathView};
use polypath_transport::sched::is_open;
use polypath_wire::{Duration, Instant};
use pyo3::prelude::*;

/// Seconds since the run began.
pub fn seconds(at: Instant) -> f64 {
    Duration(at.0).as_secs_f64()
}

fn length(duration: Option<Duration>) -> Option<f64> {
    duration.map(|d| d.as_secs_f64())
}

/// A path.
#[pyclass(frozen, module = "polypath._native")]
pub struct Path {
    view: PathView,
    open: bool,
}

impl Path {
    /// `paths` as they are now, for `len` bytes.
    pub fn all(now: Instant, len: Option<u32>, paths: &[PathView]) -> Vec<Self> {
        let of = |view: &PathView| Self { view: *view, open: is_open(now, view, len.unwrap_or(view.mss)) };
        paths.iter().map(of).collect()
    }
}

#[pymethods]
impl Path {
    #[getter]
    fn id(&self) -> u16 {
        self.view.id.0
    }
    #[getter]
    fn open(&self) -> bool {
        self.open
    }
    #[getter]
    fn active(&self) -> bool {
        self.view.state == PathState::Active
    }
    #[getter]
    fn mss(&self) -> u32 {
        self.view.mss
    }
    #[getter]
    fn room(&self) -> i64 {
        self.view.room
    }
    #[getter]
    fn window(&self) -> u64 {
        self.view.window
    }
    #[getter]
    fn in_flight(&self) -> u64 {
        self.view.in_flight
    }
    #[getter]
    fn earliest_send(&self) -> f64 {
        seconds(self.view.earliest_send)
    }
    #[getter]
    fn idle_at(&self) -> f64 {
        seconds(self.view.idle_at)
    }
    #[getter]
    fn srtt(&self) -> Option<f64> {
        length(self.view.srtt)
    }
    #[getter]
    fn rttvar(&self) -> Option<f64> {
        length(self.view.rttvar)
    }
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        length(self.view.min_rtt)
    }
    #[getter]
    fn one_way(&self) -> Option<f64> {
        length(self.view.one_way)
    }
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.view.rate.map(|r| r.0)
    }
    #[getter]
    fn overhead(&self) -> u32 {
        self.view.overhead
    }
    fn __repr__(&self) -> String {
        let PathView { id, window, in_flight, room, srtt, .. } = self.view;
        let srtt = length(srtt).map_or("None".to_owned(), |s| format!("{s:.4}"));
        format!("<Path {} window={window} in_flight={in_flight} room={room} srtt={srtt}>", id.0)
    }
}

/// What an acknowledgment says of a path.
#[pyclass(frozen, module = "polypath._native")]
pub struct Ack(pub AckSample);

#[pymethods]
impl Ack {
    #[getter]
    fn newly_acked(&self) -> u64 {
        self.0.newly_acked
    }
    #[getter]
    fn newly_acked_segments(&self) -> u32 {
        self.0.newly_acked_segments
    }
    #[getter]
    fn rtt(&self) -> Option<f64> {
        length(self.0.rtt)
    }
    #[getter]
    fn srtt(&self) -> Option<f64> {
        length(self.0.srtt)
    }
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        length(self.0.min_rtt)
    }
    #[getter]
    fn one_way_queueing(&self) -> Option<f64> {
        length(self.0.one_way_queueing)
    }
    #[getter]
    fn delivery_rate(&self) -> Option<u64> {
        self.0.delivery_rate.map(|r| r.0)
    }
    #[getter]
    fn sent_at(&self) -> Option<f64> {
        self.0.sent_at.map(seconds)
    }
    #[getter]
    fn prior_in_flight(&self) -> u64 {
        self.0.prior_in_flight
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    #[getter]
    fn window_limited(&self) -> bool {
        self.0.window_limited
    }
    #[getter]
    fn in_recovery(&self) -> bool {
        self.0.in_recovery
    }
    fn __repr__(&self) -> String {
        format!("<Ack of {} bytes, rtt={:?}>", self.0.newly_acked, length(self.0.rtt))
    }
}

/// A loss episode begins.
#[pyclass(frozen, module = "polypath._native")]
pub struct Loss(pub LossEvent);

#[pymethods]
impl Loss {
    #[getter]
    fn cause(&self) -> String {
        let name = serde_json::to_value(self.0.cause).ok();
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
    #[getter]
    fn episode(&self) -> u32 {
        self.0.episode.0
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
    #[getter]
    fn flight_size(&self) -> u64 {
        self.0.flight_size
    }
    #[getter]
    fn oldest_sent(&self) -> f64 {
        seconds(self.0.oldest_sent)
    }
    fn __repr__(&self) -> String {
        format!("<Loss {} episode={} bytes={}>", self.cause(), self.0.episode.0, self.0.bytes)
    }
}

/// Something to send.
#[pyclass(frozen, module = "polypath._native")]
pub struct Parcel(pub Cargo);

#[pymethods]
impl Parcel {
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }
    #[getter]
    fn len(&self) -> u32 {
        self.0.len
    }
    #[getter]
    fn retransmission(&self) -> bool {
        self.0.retransmission
    }
    #[getter]
    fn timed_out(&self) -> Option<u16> {
        self.0.timed_out.map(|path| path.0)
    }
    #[getter]
    fn waiting(&self) -> Option<u64> {
        Some(self.0.waiting).filter(|bytes| *bytes < u64::MAX)
    }
    #[getter]
    fn window(&self) -> u64 {
        self.0.window
    }
    fn __repr__(&self) -> String {
        format!("<Parcel of {} bytes at {}>", self.0.len, self.0.offset)
    }
}
