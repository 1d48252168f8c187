//! Requests to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that goes.

use std::fs;
use std::future::Future;
use std::io;
#[cfg(feature = "lab")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "lab")]
use polypath_lab::stop::Stop;
use tokio::runtime::{Builder, Runtime};
#[cfg(feature = "daemon")]
use tokio::signal::unix::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Status};

/// What ends a program.
const ENDS: [(SignalKind, Status); 3] = [
    (SignalKind::interrupt(), Status::Interrupted),
    (SignalKind::terminate(), Status::Terminated),
    (SignalKind::hangup(), Status::HungUp),
];

/// Ends by itself what has to be taken down or removed. Until there is one, such a signal ends the program at once.
pub struct Interrupt {
    /// Taken when it ends.
    runtime: Option<Runtime>,
    came: watch::Receiver<Option<Status>>,
}

impl Interrupt {
    /// Listens from now on, also while nothing waits in [`block_on`](Self::block_on).
    pub fn listen() -> Result<Self, Failure> {
        Self::on(Builder::new_multi_thread(), &ENDS)
    }

    /// For work that waits in [`block_on`](Self::block_on) from first to last: this thread does all of it but for what
    /// blocks, so that none has to wake another for each packet.
    pub fn listen_meanwhile() -> Result<Self, Failure> {
        Self::on(Builder::new_current_thread(), &ENDS)
    }

    /// The same for a daemon, to which SIGHUP means [something else](Self::hangups).
    #[cfg(feature = "daemon")]
    pub fn listen_but_for_hangups() -> Result<Self, Failure> {
        Self::on(Builder::new_current_thread(), &ENDS[..2])
    }

    /// Each SIGHUP from now on: it does not end this program any more.
    #[cfg(feature = "daemon")]
    pub fn hangups(&self) -> Result<Signal, Failure> {
        let hangups = self.block_on(async { signal(SignalKind::hangup()) });
        hangups.map_err(|e| Failure::system("cannot listen for signals", e))
    }

    fn on(mut runtime: Builder, signals: &[(SignalKind, Status)]) -> Result<Self, Failure> {
        let runtime = runtime.enable_all().build();
        let runtime = runtime.map_err(|e| Failure::system("no runtime", e))?;
        let (tell, came) = watch::channel(None);
        for &(kind, status) in signals {
            if kind == SignalKind::hangup() && is_ignored(kind) {
                continue;
            }
            let end = notice(&runtime, kind, status, tell.clone());
            end.map_err(|e| Failure::system("cannot listen for signals", e))?;
        }
        Ok(Self { runtime: Some(runtime), came })
    }

    /// Runs `work` to its end, whatever comes.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it is taken at the end only").block_on(work)
    }

    /// `work`, unless a signal comes first or has come already.
    pub async fn or<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let mut came = self.came.clone();
        tokio::select! {
            biased;
            Ok(status) = came.wait_for(Option::is_some) => {
                Err(Failure::interrupted(status.expect("it was waited for")))
            }
            done = work => done,
        }
    }

    #[cfg(feature = "lab")]
    /// For runs of experiments: asked to stop as soon as a signal comes.
    pub fn stop(&self) -> Arc<Stop> {
        let (stop, mut came) = (Arc::new(Stop::default()), self.came.clone());
        let asked = stop.clone();
        let runtime = self.runtime.as_ref().expect("it is taken at the end only");
        runtime.spawn(async move {
            if came.wait_for(Option::is_some).await.is_ok() {
                asked.ask();
            }
        });
        stop
    }

    /// For work that does not wait: whether to go on.
    pub fn check(&self) -> Result<(), Failure> {
        self.came.borrow().map_or(Ok(()), |status| Err(Failure::interrupted(status)))
    }
}

/// How long files may take to be written at the end. Who reads standard input may never end.
const GRACE: Duration = Duration::from_secs(1);

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(GRACE);
        }
    }
}

/// Reports the first signal of a kind. Listening begins here, not when the task first runs.
fn notice(
    runtime: &Runtime,
    kind: SignalKind,
    status: Status,
    tell: watch::Sender<Option<Status>>,
) -> io::Result<()> {
    let _entered = runtime.enter();
    let mut signals = signal(kind)?;
    runtime.spawn(async move {
        signals.recv().await;
        tell.send_replace(Some(status));
    });
    Ok(())
}

/// Whether whoever started this program lets it ignore the signal, as nohup(1) does (proc_pid_status(5)).
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> (kind.as_raw_value() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_signal_before_the_work_counts() {
        let interrupt = Interrupt::listen().unwrap();
        assert_eq!(interrupt.check(), Ok(()));
        let kill = Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
        assert!(kill.unwrap().success());
        let came = || {
            std::thread::sleep(Duration::from_millis(10));
            interrupt.check().is_err()
        };
        assert!((0..1000).any(|_| came()), "it never came");
        let done = interrupt.block_on(interrupt.or(async { Ok(()) }));
        assert_eq!(done.map_err(|failure| failure.status), Err(Status::Terminated));
    }
}
