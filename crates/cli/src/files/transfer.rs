//! A transfer with a host that we call, over as many connections as it takes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use polypath_endpoint::PathReport;
use polypath_files::{Entry, Failed, FileError, Step, Transferred};
use polypath_node::{LiveChoice, Node, Stream, StreamError, StreamStats};
use polypath_transport::CloseReason;

use super::bars::Bars;
use super::call::{Call, Way};
use super::progress::Progress;
use super::report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(200);
/// A connection on which nothing has moved for this long is replaced by a new one.
const STALL: Duration = Duration::from_secs(20);
/// The same with a short `--wait`: a peer that works says so every second.
const LEAST_STALL: Duration = Duration::from_secs(3);
/// Default of `--wait` once the transfer has begun.
pub(super) const WAIT: Duration = Duration::from_secs(60);
/// Backup links are used when the others have carried nothing for this long.
const SILENCE: Duration = Duration::from_secs(1);
/// Why an attempt ended, in most cases.
const LOST: &str = "the connection was lost";
/// Pause between two attempts.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A transfer and how far it is.
pub struct Transfer<'a> {
    pub(super) node: &'a Node,
    pub(super) call: Call<'a>,
    /// The peer's addresses.
    pub(super) addresses: Vec<SocketAddr>,
    /// The interfaces, and which of them are for backup.
    choice: LiveChoice,
    outcome: Outcome,
    bars: RefCell<Bars>,
    progress: RefCell<Progress>,
    began: Instant,
    /// When anything last moved.
    pub(super) moved: Instant,
    /// Whether the peer has ever answered.
    pub(super) met: bool,
    /// Why it does not, as found at its addresses.
    pub(super) found: RefCell<Option<Failure>>,
}

/// The files that are stored and those that failed.
#[derive(Debug, Default)]
pub struct Outcome {
    pub done: Vec<Transferred>,
    pub failed: Vec<Failed>,
}

/// What one attempt has achieved.
struct Notes {
    /// When anything last moved.
    moved: Cell<Instant>,
    /// File numbers count from the start of this attempt.
    outcome: RefCell<Outcome>,
}

/// Why an attempt ended.
pub(super) enum End {
    /// Another one may succeed, after a pause and with a new association.
    Again(String),
    /// The association of its connection is over. Another one may be there already.
    Replaced,
    Final(Failure),
}

impl<'a> Transfer<'a> {
    pub fn new(node: &'a Node, call: Call<'a>, addresses: Vec<SocketAddr>, choice: LiveChoice) -> Self {
        let (count, total) = call.way.extent();
        let bars = Bars::new(call.json, count, total);
        let now = Instant::now();
        Self {
            node,
            call,
            addresses,
            choice,
            outcome: Outcome::default(),
            bars: RefCell::new(bars),
            progress: RefCell::new(Progress::new(total)),
            began: now,
            moved: now,
            met: false,
            found: RefCell::default(),
        }
    }

    /// Tries until everything is done, or nothing has moved for longer than `--wait`.
    pub async fn run(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let result = interrupt.or(self.attempts()).await;
        result.map_err(|failure| match failure.status.is_interruption() {
            true => failure.help(self.again()),
            false => failure,
        })
    }

    /// What the same command would do.
    fn again(&self) -> &'static str {
        match &self.call.way {
            Way::Send(left) if left.iter().any(Entry::is_input) => {
                "standard input is not resumed: what is not stored is sent from its beginning"
            }
            _ => "the same command continues where it stopped",
        }
    }

    /// Its duration in seconds, what became of the files, and the bars.
    pub fn end(self) -> (f64, Outcome, Bars) {
        (self.began.elapsed().as_secs_f64(), self.outcome, self.bars.into_inner())
    }

    async fn attempts(&mut self) -> Result<(), Failure> {
        loop {
            let (why, replaced) = match self.attempt().await {
                Ok(()) => return Ok(()),
                Err(End::Final(failure)) => return Err(failure),
                Err(End::Again(why)) => (why, false),
                Err(End::Replaced) => (LOST.to_owned(), true),
            };
            let wait = self.call.wait.unwrap_or(WAIT);
            if self.moved.elapsed() >= wait {
                let gave_up =
                    Failure::system(format!("gave up after {} s", wait.as_secs()), why).help(self.again());
                return Err(self.found.take().unwrap_or(gave_up));
            }
            self.bars.borrow().say(&format!("interrupted ({why}); trying again"));
            if replaced && self.node.is_associated(self.call.to.hit) {
                continue; // the peer, started again, is there
            }
            self.node.dissociate(self.call.to.hit);
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(&mut self) -> Result<(), End> {
        let hit = self.call.to.hit;
        self.meet().await?;
        (self.met, self.moved) = (true, Instant::now());
        self.found.take();
        let stream = self.node.open_peer(self.call.connection.clone(), hit, polypath_files::PORT);
        let stream = stream.map_err(|e| End::Again(e.to_string()))?;
        let notes = Notes { moved: Cell::new(Instant::now()), outcome: RefCell::default() };
        let result = tokio::select! {
            result = self.work(&stream, &notes) => result.map_err(end),
            () = self.stalled(&stream, &notes) => {
                Err(End::Again(format!("nothing moved for {} s", self.patience().as_secs())))
            }
        };
        self.look(&stream.stats());
        self.moved = self.moved.max(notes.moved.get());
        self.take(notes.outcome.into_inner());
        if result.is_err() {
            stream.abort();
        }
        self.read_once(result)
    }

    async fn work(&self, stream: &Stream, notes: &Notes) -> Result<(), FileError> {
        let tell = |step| self.note(stream, notes, step);
        match &self.call.way {
            Way::Send(left) => polypath_files::send(stream, left, tell).await,
            Way::Fetch(store) => polypath_files::fetch(stream, self.call.to.hit, store, tell).await,
        }
    }

    fn note(&self, stream: &Stream, notes: &Notes, step: Step) {
        self.progress.borrow_mut().step(&step);
        match step {
            Step::Done(file) => {
                // Later the peer may have ended the association, and the counts of its paths.
                self.count(&stream.stats());
                notes.outcome.borrow_mut().done.push(file);
            }
            Step::Failed(file) => {
                self.bars.borrow().say(&format!("{}: {}", file.name, file.why));
                notes.outcome.borrow_mut().failed.push(file);
            }
            Step::Bytes { .. } => notes.moved.set(Instant::now()),
            Step::Grew { name, bytes } => self.bars.borrow().say(&report::grew(&name, bytes)),
            Step::Changed { name } => self.bars.borrow().say(&report::changed(&name)),
            Step::Begin { .. } | Step::Working(_) => {}
        }
    }

    /// Draws the bars until nothing has moved for [`patience`](Self::patience).
    async fn stalled(&self, stream: &Stream, notes: &Notes) {
        let (mut ticks, mut before) = (tokio::time::interval(TICK), 0);
        let (mut carried, mut others) = (0, Instant::now());
        loop {
            ticks.tick().await;
            let stats = stream.stats();
            self.look(&stats);
            let moved = movement(&stats);
            if moved != before {
                before = moved;
                notes.moved.set(Instant::now());
            }
            if notes.moved.get().elapsed() > self.patience() {
                return;
            }
            if self.choice.now().has_backups() {
                let now = self.carried_by_others(&stats);
                if now != carried {
                    (carried, others) = (now, Instant::now());
                }
                self.choice.call_up(others.elapsed() > SILENCE);
            }
        }
    }

    fn patience(&self) -> Duration {
        self.call.wait.map_or(STALL, |wait| wait.clamp(LEAST_STALL, STALL))
    }

    /// Bytes over links that are not for backup.
    fn carried_by_others(&self, stats: &StreamStats) -> u64 {
        let backups = self.choice.now().backups().unwrap_or_default();
        let local = |secure: &Option<_>| secure.as_ref().map(|path: &PathReport| path.locators.local.ip());
        let paths = stats.paths.iter().zip(&stats.secure);
        let others = paths.filter(|(_, secure)| local(secure).is_none_or(|ip| !backups.contains(&ip)));
        others.map(|((_, _, path), _)| path.bytes_delivered + path.bytes_received).sum()
    }

    /// Bytes of the connection that the receiving end has.
    fn arrived(&self, stats: &StreamStats) -> u64 {
        match &self.call.way {
            Way::Send(_) => stats.connection.bytes_acked,
            Way::Fetch(_) => stats.connection.bytes_received,
        }
    }

    /// Counts what the paths carried.
    fn count(&self, stats: &StreamStats) {
        self.bars.borrow_mut().count(stats, |path| match &self.call.way {
            Way::Send(_) => path.bytes_delivered,
            Way::Fetch(_) => path.bytes_received,
        });
    }

    /// Draws the bars.
    fn look(&self, stats: &StreamStats) {
        self.count(stats);
        let view = self.progress.borrow_mut().look(self.began.elapsed(), self.arrived(stats));
        self.bars.borrow_mut().show(&view);
    }

    /// Adds the outcome of one attempt. What it stored or gave up is not sent again.
    fn take(&mut self, steps: Outcome) {
        let Way::Send(left) = &mut self.call.way else {
            // What was fetched before is offered again, and is here already.
            for file in steps.done {
                self.outcome.done.retain(|before| before.name != file.name);
                self.outcome.done.push(file);
            }
            self.outcome.failed = steps.failed;
            self.progress.borrow_mut().restart(0, 0);
            return;
        };
        let indices = steps.done.iter().map(|file| file.index);
        let over: BTreeSet<usize> = indices.chain(steps.failed.iter().map(|file| file.index)).collect();
        let mut index = 0;
        left.retain(|_| {
            index += 1;
            !over.contains(&(index - 1))
        });
        self.outcome.done.extend(steps.done);
        self.outcome.failed.extend(steps.failed);
        let done: u64 = self.outcome.done.iter().map(|file| file.bytes).sum();
        self.progress.borrow_mut().restart(done, self.outcome.done.len() + self.outcome.failed.len());
    }

    /// Another attempt is not possible while standard input is left: it cannot be read again.
    fn read_once(&self, result: Result<(), End>) -> Result<(), End> {
        let why = match (result, &self.call.way) {
            (Err(End::Again(why)), Way::Send(left)) if left.iter().any(Entry::is_input) => why,
            (Err(End::Replaced), Way::Send(left)) if left.iter().any(Entry::is_input) => LOST.to_owned(),
            (result, _) => return result,
        };
        Err(End::Final(Failure::system("standard input cannot be read twice", why)))
    }
}

/// Bytes that arrived at either end. They move also while an end works on its disk, as it says so, but not if it is dead.
fn movement(stats: &StreamStats) -> u64 {
    stats.connection.bytes_acked + stats.connection.bytes_received
}

fn end(error: FileError) -> End {
    match error {
        FileError::Stream(refused @ StreamError::Lost(CloseReason::Refused)) => {
            End::Again(refused.to_string())
        }
        FileError::Stream(StreamError::Lost(CloseReason::Aborted)) => End::Replaced,
        error if error.is_interruption() => End::Again(match error {
            FileError::Stream(StreamError::Lost(_)) | FileError::Cut => LOST.to_owned(),
            error => error.to_string(),
        }),
        error @ FileError::Direction { sends: true } => {
            End::Final(Failure::system("cannot send", error).help("fetch from it: polypath receive --from"))
        }
        error @ FileError::Direction { sends: false } => {
            End::Final(Failure::system("cannot fetch", error).help("send to it: polypath send FILE HIT@ADDR"))
        }
        error => End::Final(Failure::system("stopped after an error", error)),
    }
}
