//! A transfer with a host that we call, over as many connections as it takes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polypath_endpoint::{PeerFailure, Reach};
use polypath_files::{Entry, Failed, FileError, Step, Store, Transferred};
use polypath_node::{AssociateError, Node, Stream, StreamError};
use polypath_transport::ConnectionConfig;

use super::Target;
use super::bars::Bars;
use super::diagnose::Diagnosis;
use super::progress::Progress;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(200);
/// A connection on which nothing moves for so long is given up for a new one.
const STALL: Duration = Duration::from_secs(20);
/// How long it is tried if the user does not say.
const WAIT: Duration = Duration::from_secs(60);
/// Without an answer for so long it is asked who is there.
const DOUBT: Duration = Duration::from_millis(1500);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// What is to be done.
pub enum Way {
    /// Sends what is left.
    Send(Vec<Entry>),
    /// Fetches everything.
    Fetch(Arc<Store>),
}

/// A transfer and how far it is.
pub struct Transfer<'a> {
    pub node: &'a Node,
    pub to: &'a Target,
    pub reach: Reach,
    pub connection: ConnectionConfig,
    /// How long it is tried when nothing moves, if the user says so.
    pub wait: Option<Duration>,
    pub way: Way,
    pub outcome: Outcome,
    pub bars: RefCell<Bars>,
    pub progress: RefCell<Progress>,
    began: Instant,
    /// When anything last moved.
    moved: Instant,
    /// Whether the peer has ever answered.
    met: bool,
}

/// What became of the files so far. Their numbers are those of the whole transfer.
#[derive(Debug, Default)]
pub struct Outcome {
    pub done: Vec<Transferred>,
    pub failed: Vec<Failed>,
}

/// Why an attempt ended.
enum End {
    /// Another one may succeed.
    Again(String),
    Final(Failure),
}

impl<'a> Transfer<'a> {
    pub fn new(
        node: &'a Node,
        to: &'a Target,
        reach: Reach,
        connection: ConnectionConfig,
        way: Way,
        bars: Bars,
    ) -> Self {
        let total = match &way {
            Way::Send(entries) => entries.iter().map(|entry| entry.size).sum(),
            Way::Fetch(_) => None,
        };
        let now = Instant::now();
        Self {
            node,
            to,
            reach,
            connection,
            wait: None,
            way,
            outcome: Outcome::default(),
            bars: RefCell::new(bars),
            progress: RefCell::new(Progress::new(total)),
            began: now,
            moved: now,
            met: false,
        }
    }

    /// Tries until it is done, or nothing has moved for longer than it may. The node ends with it.
    pub async fn run(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let result = interrupt.or(self.attempts()).await;
        result.map_err(|failure| match failure.status.is_interruption() {
            true => failure.help("the same command goes on where it stopped"),
            false => failure,
        })
    }

    /// How many seconds it took, what became of the files, and what was shown.
    pub fn end(self) -> (f64, Outcome, Bars) {
        (self.began.elapsed().as_secs_f64(), self.outcome, self.bars.into_inner())
    }

    async fn attempts(&mut self) -> Result<(), Failure> {
        loop {
            let why = match self.attempt().await {
                Ok(()) => return Ok(()),
                Err(End::Final(failure)) => return Err(failure),
                Err(End::Again(why)) => why,
            };
            let wait = self.wait.unwrap_or(WAIT);
            if self.moved.elapsed() >= wait {
                return Err(Failure::system(format!("gave up after {} s", wait.as_secs()), why)
                    .help("the same command goes on where it stopped"));
            }
            self.bars.borrow().say(&format!("interrupted ({why}); trying again"));
            self.node.dissociate(self.to.hit);
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(&mut self) -> Result<(), End> {
        let hit = self.to.hit;
        self.meet().await?;
        (self.met, self.moved) = (true, Instant::now());
        let stream = self.node.connect_peer(self.connection.clone(), hit, polypath_files::PORT).await;
        let stream = stream.map_err(|e| End::Again(e.to_string()))?;
        let moved = RefCell::new(Instant::now());
        let steps = RefCell::new(Outcome::default());
        let tell = |step: Step| {
            self.progress.borrow_mut().step(&step);
            match step {
                Step::Done(file) => {
                    // Later the peer may have ended the association, and the counts of its paths.
                    self.look(&stream);
                    steps.borrow_mut().done.push(file);
                }
                Step::Failed(file) => {
                    self.bars.borrow().say(&format!("{}: {}", file.name, file.why));
                    steps.borrow_mut().failed.push(file);
                }
                Step::Bytes { .. } => *moved.borrow_mut() = Instant::now(),
                Step::Begin { .. } => {}
            }
        };
        let work = async {
            match &self.way {
                Way::Send(left) => polypath_files::send(&stream, left, tell).await,
                Way::Fetch(store) => polypath_files::fetch(&stream, hit, store, tell).await,
            }
        };
        let result = tokio::select! {
            result = work => result.map_err(end),
            () = self.stalled(&stream, &moved) => {
                Err(End::Again(format!("nothing moved for {} s", STALL.as_secs())))
            }
        };
        self.look(&stream);
        self.moved = self.moved.max(moved.into_inner());
        self.take(steps.into_inner());
        if result.is_err() {
            stream.abort();
        }
        self.read_once(result)
    }

    /// Shows how far it is until nothing has moved for long.
    async fn stalled(&self, stream: &Stream, moved: &RefCell<Instant>) {
        let (mut ticks, mut before) = (tokio::time::interval(TICK), 0);
        loop {
            ticks.tick().await;
            self.look(stream);
            let acked = self.arrived(stream);
            if acked != before {
                before = acked;
                *moved.borrow_mut() = Instant::now();
            }
            if moved.borrow().elapsed() > STALL {
                return;
            }
        }
    }

    /// Bytes of the connection that are at their goal.
    fn arrived(&self, stream: &Stream) -> u64 {
        let stats = stream.stats().connection;
        match &self.way {
            Way::Send(_) => stats.bytes_acked,
            Way::Fetch(_) => stats.bytes_received,
        }
    }

    fn look(&self, stream: &Stream) {
        let mut bars = self.bars.borrow_mut();
        match &self.way {
            Way::Send(_) => bars.look(&stream.stats(), |path| path.bytes_delivered),
            Way::Fetch(_) => bars.look(&stream.stats(), |path| path.bytes_received),
        }
        bars.show(&self.progress.borrow_mut().look(self.began.elapsed(), self.arrived(stream)));
    }

    /// What became of files in one attempt counts for all: those are not sent again.
    fn take(&mut self, steps: Outcome) {
        let Way::Send(left) = &mut self.way else {
            // What was fetched before is offered again, and is here already.
            for file in steps.done {
                self.outcome.done.retain(|before| before.name != file.name);
                self.outcome.done.push(file);
            }
            self.outcome.failed = steps.failed;
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

    /// Standard input that was read in part cannot be read again.
    fn read_once(&self, result: Result<(), End>) -> Result<(), End> {
        match (result, &self.way) {
            (Err(End::Again(why)), Way::Send(left)) if left.iter().any(Entry::is_input) => {
                Err(End::Final(Failure::system("standard input cannot be read twice", why)))
            }
            (result, _) => result,
        }
    }

    /// Associates with the peer, no longer than the user has patience.
    async fn meet(&self) -> Result<(), End> {
        let wait = self.wait.map_or(WAIT, |wait| wait.saturating_sub(self.moved.elapsed()));
        match tokio::time::timeout(wait, self.associate()).await {
            Ok(met) => met,
            Err(_) if self.met => Err(End::Again("no answer".into())),
            Err(_) => {
                Err(End::Final(Diagnosis::silence(self.to.hit, self.addresses()).failure(&self.there())))
            }
        }
    }

    /// The same; meanwhile, if nobody answers at first, finds out why.
    async fn associate(&self) -> Result<(), End> {
        let mut associate = std::pin::pin!(self.node.associate(self.to.hit, self.reach.clone()));
        let diagnose = async {
            tokio::time::sleep(DOUBT).await;
            let ours = self.node.hit().unwrap_or(polypath_wire::hip::Hit::NULL);
            Diagnosis::make(ours, self.to.hit, self.addresses()).await
        };
        let diagnosis = tokio::select! {
            met = &mut associate => return met.map_err(|error| self.no_association(error, None)),
            diagnosis = diagnose, if !self.met => diagnosis,
        };
        if diagnosis.is_certain() {
            return Err(self.nobody(&diagnosis));
        }
        associate.await.map_err(|error| self.no_association(error, Some(diagnosis)))
    }

    fn addresses(&self) -> &[SocketAddr] {
        match &self.reach {
            Reach::Addresses(addresses) => addresses,
            Reach::Pairs(_) => &[],
        }
    }

    /// What should run on the other host.
    fn there(&self) -> String {
        let ours = self.node.hit().map(|hit| hit.to_string()).unwrap_or_default();
        match self.way {
            Way::Send(_) => format!("polypath receive --allow {ours}"),
            Way::Fetch(_) => format!("polypath send FILE --allow {ours}"),
        }
    }

    /// Nobody has ever answered. That is the end unless the user said how long to try.
    fn nobody(&self, diagnosis: &Diagnosis) -> End {
        let failure = diagnosis.failure(&self.there());
        match self.wait {
            Some(wait) if self.moved.elapsed() + PAUSE < wait => End::Again(failure.to_string()),
            _ => End::Final(failure),
        }
    }

    fn no_association(&self, error: AssociateError, diagnosis: Option<Diagnosis>) -> End {
        let hit = self.to.hit;
        match error {
            AssociateError::Failed(PeerFailure::Refused) => End::Final(
                Failure::system(format!("{hit} does not let us in"), "we are strangers to it")
                    .help(format!("on that host: {}", self.there())),
            ),
            AssociateError::Failed(PeerFailure::Timeout) if !self.met => {
                self.nobody(&diagnosis.unwrap_or_else(|| Diagnosis::silence(hit, self.addresses())))
            }
            AssociateError::Begin(polypath_hip::ConnectError::NoRoute) if !self.met => End::Final(
                Failure::system("no way to that address", "no local address of its family is usable")
                    .help("see `ip address`"),
            ),
            error @ AssociateError::Begin(polypath_hip::ConnectError::Hit(_)) => {
                End::Final(Failure::usage(error.to_string()))
            }
            error => End::Again(error.to_string()),
        }
    }
}

fn end(error: FileError) -> End {
    match error {
        error if error.is_interruption() => End::Again(match error {
            FileError::Stream(StreamError::Lost(_)) | FileError::Cut => "the connection was lost".into(),
            error => error.to_string(),
        }),
        error @ FileError::Direction { sends: true } => {
            End::Final(Failure::system("cannot send", error).help("fetch from it: polypath receive --from"))
        }
        error @ FileError::Direction { sends: false } => {
            End::Final(Failure::system("cannot fetch", error).help("send to it: polypath send FILE HIT@ADDR"))
        }
        error => End::Final(Failure::system("cannot go on", error)),
    }
}
