//! The paths of a flow of packets come, change and go.

use std::collections::BTreeMap;

use polypath_wire::shim::Shim;
use polypath_wire::{Duration, Instant, PathId};

use super::receipts::Receipts;
use super::reports::Sent;
use super::{PacketFlow, Path};
use crate::engine::config::PathConfig;
use crate::facts::PathState;

impl PacketFlow {
    /// `path`, an id that no path had before, may be used: its frames have up to [`segment_size`](PathConfig::segment_size) bytes.
    /// Its transmissions are numbered from `first` on: 0, or where an earlier path between the same ends [ended](Self::remove_path).
    pub fn add_path(&mut self, now: Instant, path: PathId, config: &PathConfig, first: u32) {
        let new = Path {
            path,
            first,
            sent: Sent::default(),
            kept: BTreeMap::new(),
            receipts: Receipts::default(),
            lost_of: None,
            ask: false,
        };
        self.paths.insert(new);
        self.engine.add_path(now, path, config, config.segment_size());
    }

    /// `path` is gone. Returns the number that its next transmission would have had.
    pub fn remove_path(&mut self, now: Instant, path: PathId) -> Option<u32> {
        let gone = self.paths.remove(path)?;
        gone.kept.into_values().for_each(|kept| self.send_again(kept));
        let used = self.engine.lanes().get(path).map_or(0, |lane| lane.flight.next_number());
        self.engine.remove_path(now, path);
        self.resequencer.remove_path(path);
        self.take_facts();
        self.engine.retry_failed(now);
        Some(gone.first.wrapping_add(used as u32))
    }

    /// Frames of `path` have up to `bytes` from now on.
    pub fn path_carries(&mut self, now: Instant, path: PathId, bytes: u32) {
        if self.paths.contains(path) {
            self.engine.set_mss(now, path, bytes, bytes);
            self.take_facts();
        }
    }

    /// From now on `path` spills, or no longer: it carries what the others have no room for.
    pub fn path_spills(&mut self, path: PathId, spill: bool) {
        if self.paths.contains(path) {
            self.engine.set_spill(path, spill);
        }
    }

    /// Something that is no frame took `rtt` on `path` and back: a path that had failed works again.
    pub fn path_answered(&mut self, now: Instant, path: PathId, rtt: Duration) {
        if !self.paths.contains(path) {
            return;
        }
        if self.engine.is_sign_of_life(path, now - rtt) {
            self.engine.works_again(now, path);
        }
        if self.engine.flight_size(path) == 0 {
            self.engine.measured(now, path, rtt);
        }
    }

    /// Largest packet that some path carries which works, bytes; none without paths.
    pub fn largest(&self) -> Option<u32> {
        let views = self.engine.views();
        let working = views.iter().filter(|view| view.state == PathState::Active).map(|view| view.mss);
        let frame = working.max().or(views.iter().map(|view| view.mss).max())?;
        Some(frame.saturating_sub(Shim::LEN as u32))
    }
}
