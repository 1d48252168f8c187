//! What an endpoint observes, as lines of JSON in a file, written beside its work: what the disk is too slow for is dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use polypath_endpoint::{ConnectionHandle, HipRecord};
use polypath_transport::{Observation, Record, RecordFilter};
use polypath_wire::hip::Hit;
use serde::Serialize;
use tracing::warn;

/// Lines that wait to be written, at most.
const WAITING: usize = 1 << 16;
/// Lines that are written at once, at most.
const BATCH: usize = 1 << 10;
/// A file that took nothing is tried again after that.
const AGAIN: Duration = Duration::from_secs(1);

/// Takes observations. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct Observer {
    filter: RecordFilter,
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
    /// What the endpoint's clock lacks to the time since 1970, s.
    epoch: f64,
}

/// The file of an [`Observer`].
#[derive(Debug)]
pub struct EventFile {
    writer: JoinHandle<io::Result<()>>,
    lost: Arc<AtomicU64>,
}

/// A line.
#[derive(Debug, Serialize)]
struct Line {
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum What {
    OfConnection {
        connection: ConnectionHandle,
        path: Option<u16>,
        #[serde(flatten)]
        what: Observation,
    },
    OfPeer {
        event: &'static str,
        peer: Hit,
        state: String,
    },
}

/// Appends to `file`, which only its owner may read, what `filter` admits.
pub fn observe(file: &Path, filter: RecordFilter) -> io::Result<(Observer, EventFile)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    let (lines, taken) = mpsc::sync_channel(WAITING);
    let lost = Arc::new(AtomicU64::new(0));
    let dropped = lost.clone();
    let writer = thread::Builder::new().name("events".to_owned());
    let writer = writer.spawn(move || write(&file, &taken, &dropped))?;
    Ok((Observer { filter, lines, lost: lost.clone(), epoch: 0.0 }, EventFile { writer, lost }))
}

impl Observer {
    /// What the endpoint is to record.
    pub fn filter(&self) -> RecordFilter {
        self.filter
    }

    /// The same for an endpoint whose clock showed 0 at `epoch`, in seconds since 1970.
    pub(crate) fn since(self, epoch: f64) -> Self {
        Self { epoch, ..self }
    }

    pub(crate) fn connection(&self, connection: ConnectionHandle, record: Record) {
        let path = record.path.map(|path| path.0);
        self.tell(record.at, What::OfConnection { connection, path, what: record.what });
    }

    pub(crate) fn association(&self, record: HipRecord) {
        let state = format!("{:?}", record.state);
        self.tell(record.at, What::OfPeer { event: "association", peer: record.peer, state });
    }

    fn tell(&self, at: polypath_wire::Instant, what: What) {
        let line = Line { time: self.epoch + at.0 as f64 / 1e9, what };
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EventFile {
    /// Waits until all is written, which is once every [`Observer`] is gone. Returns the number of lines that were dropped for want of time; that
    /// the file did not take some is an error.
    pub fn finish(self) -> io::Result<u64> {
        match self.writer.join() {
            Ok(written) => written?,
            Err(_) => return Err(io::Error::other("the writer has failed")),
        }
        Ok(self.lost.load(Ordering::Relaxed))
    }
}

/// Writes until nobody observes any more. What the file does not take is dropped and counted, and is an error at the end; that
/// it takes nothing, or takes lines again, is said once.
fn write(file: &File, lines: &Receiver<Line>, lost: &AtomicU64) -> io::Result<()> {
    let (mut kept, mut failed, mut missing) = (Ok(()), None::<Instant>, 0);
    while let Ok(first) = lines.recv() {
        let (mut text, mut count) = (Vec::new(), 0);
        for line in iter::once(first).chain(lines.try_iter()).take(BATCH) {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
            count += 1;
        }
        let appended = match failed {
            Some(at) if at.elapsed() < AGAIN || !has_room(file, text.len()) => Err(None),
            _ => append(file, &text).map_err(Some),
        };
        match appended {
            Ok(()) if failed.take().is_some() => {
                warn!("the file of events is written again: {missing} lines are missing in it");
                missing = 0;
            }
            Ok(()) => {}
            Err(error) => {
                missing += count;
                lost.fetch_add(count, Ordering::Relaxed);
                let Some(error) = error else { continue };
                if failed.replace(Instant::now()).is_none() {
                    warn!("the file of events takes no more: {error}; trying again");
                }
                kept = kept.and(Err(error));
            }
        }
    }
    kept
}

/// Whether there is more room than in the file's last block, which takes a line now and then on a disk that is full.
fn has_room(file: &File, bytes: usize) -> bool {
    rustix::fs::fstatvfs(file)
        .map_or(true, |fs| fs.f_bavail.saturating_mul(fs.f_frsize) > bytes as u64 + 2 * fs.f_frsize)
}

/// Appends all of `text`, or nothing: no line is written in part.
fn append(mut file: &File, text: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(text).inspect_err(|_| {
        // A device has no length.
        let _ = file.set_len(before);
    })
}

#[cfg(test)]
mod tests {
    use polypath_transport::facts::{LossCause, PathState};
    use polypath_wire::{Instant, PathId}; // not the system's

    use super::*;

    fn connection() -> ConnectionHandle {
        serde_json::from_str(r#"{"index":7,"generation":0}"#).unwrap()
    }

    #[test]
    fn each_observation_is_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        let (observer, file) = observe(&path, RecordFilter::default()).unwrap();
        let observer = observer.since(1000.0);
        let states = [PathState::Failed, PathState::Active];
        for (state, ms) in states.into_iter().zip(1..) {
            let what = Observation::PathState { state };
            let at = Instant(ms * 1_000_000);
            observer.connection(connection(), Record { at, path: Some(PathId(3)), what });
        }
        let state = polypath_hip::State::Established;
        observer.association(HipRecord { at: Instant(0), peer: Hit([1; 16]), state });
        drop(observer);
        assert_eq!(file.finish().unwrap(), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["time"], &lines[0]["path"]), (&1000.001.into(), &3.into()));
        assert_eq!(lines[0]["connection"]["index"], 7);
        assert_eq!((&lines[0]["event"], &lines[1]["state"]), (&"path_state".into(), &"active".into()));
        assert_eq!((&lines[2]["event"], &lines[2]["state"]), (&"association".into(), &"Established".into()));
    }

    #[test]
    fn what_the_disk_does_not_take_is_counted_and_holds_up_nobody() {
        let (observer, file) = observe(Path::new("/dev/full"), RecordFilter::default()).unwrap();
        let lost = || {
            let what = Observation::Lost {
                offset: 0,
                len: 1,
                cause: LossCause::DupAck,
                episode: Default::default(),
            };
            Record { at: Instant(0), path: None, what }
        };
        while observer.lost.load(Ordering::Relaxed) == 0 {
            observer.connection(connection(), lost());
        }
        drop(observer);
        assert!(file.finish().is_err());
    }
}
