//! A daemon in a network namespace, on a thread of this process: it ends with it, whatever ends it.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use polypath_daemon::{Config, Daemon};
use polypath_testbed::netns::Netns;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::failure::Failure;
use crate::keys;

/// How often it looks at its paths.
const LOOK: Duration = Duration::from_millis(20);
/// For how long it may be without them.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon; dropping it ends it.
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    /// The number of paths on which its peer answers.
    paths: watch::Receiver<usize>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    /// Starts one in `host`.
    pub fn start(host: &Netns, config: PathBuf) -> Self {
        let ((stop, stopped), (tell, paths)) = (oneshot::channel(), watch::channel(0));
        let host = host.clone();
        let thread = thread::spawn(move || {
            let done = host.run(|| carry(&config, stopped, &tell));
            done.map_err(|e| Failure::system("no daemon", e)).flatten()
        });
        Self { stop: Some(stop), paths, thread: Some(thread) }
    }

    /// Waits until its peer answers on this number of paths, or more.
    pub async fn has_paths(&mut self, paths: usize) -> Result<(), Failure> {
        let there = self.paths.wait_for(|up| *up >= paths);
        let there = tokio::time::timeout(PATIENCE, there).await.map(|there| there.is_ok());
        match there {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.end().err().unwrap_or_else(|| Failure::system("no daemon", "it ended"))),
            Err(_) => Err(Failure::system("a daemon finds no path to the other", "is the machine too busy?")),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stop = None;
        let joined = self.thread.take().map(JoinHandle::join);
        joined.map_or(Ok(()), |ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it could not do at its end matters to nobody.
        let _ = self.end();
    }
}

/// Carries connections until it must stop.
fn carry(file: &Path, stopped: oneshot::Receiver<()>, tell: &watch::Sender<usize>) -> Result<(), Failure> {
    let config = Config::load(file).map_err(|e| Failure::usage(e.to_string()))?;
    let identity = keys::file::load(&config.identity.key)?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::system("no runtime", e))?;
    runtime.block_on(async {
        let daemon = Daemon::start(&config, identity).await;
        let daemon = daemon.map_err(|e| Failure::system("cannot start a daemon", e))?;
        let look = async {
            loop {
                let status = daemon.status();
                let answers = |path: &&polypath_daemon::PathStatus| path.up && path.answers;
                tell.send_replace(status.peers.iter().flat_map(|peer| &peer.paths).filter(answers).count());
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            _ = stopped => {}
            () = look => {}
        }
        daemon.stop().await;
        Ok(())
    })
}
