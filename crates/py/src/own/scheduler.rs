//! A scheduler in Python.

use std::fmt;
use std::sync::Arc;

use polypath_transport::SchedulerConfig;
use polypath_transport::facts::{Parcel as Cargo, PathView, Why};
use polypath_transport::sched::{Choice, Scheduler, has_others, is_open, next_opening};
use polypath_wire::{Instant, PathId};
use pyo3::prelude::*;

use super::facts::{Parcel, Path, seconds};
use super::{Failure, refused};

/// An instance of a class.
pub struct Scheduled {
    /// None if it could not be made, or failed.
    object: Option<Py<PyAny>>,
    /// What chooses then, until the run is ended.
    after: Box<dyn Scheduler>,
    failure: Arc<Failure>,
}

impl Scheduled {
    /// An instance of `class`.
    pub fn new(class: &Py<PyAny>, failure: Arc<Failure>) -> Self {
        let made = Python::attach(|py| class.call0(py));
        let object = made.map_err(|error| failure.keep(error)).ok();
        Self { object, after: SchedulerConfig::default().build(), failure }
    }
}

impl Scheduler for Scheduled {
    fn pick(&mut self, now: Instant, parcel: &Cargo, paths: &[PathView]) -> Choice {
        let Some(object) = self.object.take_if(|_| !self.failure.is_there()) else {
            return self.after.pick(now, parcel, paths);
        };
        let picked = Python::attach(|py| {
            let views = Path::all(now, Some(parcel.len), paths);
            let said = object.bind(py).call_method1("pick", (seconds(now), Parcel(*parcel), views))?;
            choice(now, parcel, paths, &said)
        });
        match picked {
            Ok(choice) => {
                self.object = Some(object);
                choice
            }
            Err(error) => {
                self.failure.keep(error);
                self.after.pick(now, parcel, paths)
            }
        }
    }

    fn why(&self, now: Instant, parcel: &Cargo, paths: &[PathView], path: PathId) -> Why {
        if has_others(now, parcel, paths, path) { Why::Best } else { Why::OnlyOpen }
    }
}

/// None waits, a number is a path, several get a copy each.
fn choice(now: Instant, parcel: &Cargo, paths: &[PathView], said: &Bound<'_, PyAny>) -> PyResult<Choice> {
    let open = |id: u16| {
        let path = paths.iter().find(|p| p.id.0 == id && is_open(now, p, parcel.len));
        let known =
            || paths.iter().filter(|p| is_open(now, p, parcel.len)).map(|p| p.id.0).collect::<Vec<_>>();
        path.map(|p| p.id).ok_or_else(|| {
            refused(format!("pick() returned path {id}, which cannot take the parcel now; {:?} can", known()))
        })
    };
    if said.is_none() {
        return Ok(Choice::Wait(next_opening(now, parcel, paths)));
    }
    if let Ok(id) = said.extract::<u16>() {
        return open(id).map(Choice::Send);
    }
    let ids: Vec<u16> = said.extract().map_err(|_| {
        refused(format!("pick() returned {said}: the id of a path, several of them, or None is needed"))
    })?;
    match ids[..] {
        [] => Err(refused("pick() returned no path: return None to wait".to_owned())),
        _ => ids.into_iter().map(open).collect::<PyResult<_>>().map(Choice::Copies),
    }
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scheduled")
    }
}
