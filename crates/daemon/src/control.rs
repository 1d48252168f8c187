//! How a running daemon is asked: one line of JSON on a Unix socket that only its owner, root and one group may use, answered by
//! another one.

mod socket;

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::paths::PathsChange;
use crate::status::Status;
pub use socket::{Askers, ControlSocket};

/// What a daemon is asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// How it is.
    Status,
    /// To end.
    Down,
    /// To read its configuration again.
    Reload,
    /// To change which interfaces carry paths.
    Paths(PathsChange),
    /// What it said after that time, µs since 1970 ([`LogLine::at_us`]).
    Log(u64),
}

/// A line of what a daemon says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogLine {
    /// When, µs since 1970; later lines have larger ones.
    pub at_us: u64,
    /// `ERROR`, `WARN`, `INFO` or `DEBUG`.
    pub level: String,
    /// What.
    pub text: String,
}

/// What it answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How it is.
    Status(Box<Status>),
    /// What it said, the oldest first.
    Log(Vec<LogLine>),
    /// It ends now.
    Ending,
    /// What it was asked for is done.
    Done,
    /// It is done, and something in the configuration may be a mistake.
    DoneBut(Vec<String>),
    /// It is not.
    Refused {
        /// Why.
        why: String,
        /// What to do about it.
        help: String,
    },
    /// It does not know what it was asked.
    Unknown,
}

impl Answer {
    /// It is done, with these warnings.
    pub fn done(warnings: Vec<String>) -> Self {
        if warnings.is_empty() { Self::Done } else { Self::DoneBut(warnings) }
    }
}

/// Why there is no socket, or no answer.
#[derive(Debug, Error)]
pub enum ControlError {
    /// A daemon answers there already.
    #[error("a daemon is running already: it answers on {}", .0.display())]
    Taken(PathBuf),
    /// Nobody answers there.
    #[error("no daemon answers on {}", .0.display())]
    Nobody(PathBuf),
    /// What is there is something else than a socket, and stays.
    #[error("{} is there, and is no socket", .0.display())]
    Occupied(PathBuf),
    /// The system refused it.
    #[error("control socket {}: {source}", path.display())]
    Os {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ended before it answered.
    #[error("the daemon on {} ended before it answered", .0.display())]
    Ended(PathBuf),
    /// It is there and does not answer.
    #[error("the daemon on {} did not answer within {} s", .0.display(), PATIENCE.as_secs())]
    Silent(PathBuf),
    /// It said that it ends, and is still there.
    #[error("the daemon on {} has not ended within {} s", path.display(), waited.as_secs_f64())]
    Remains {
        /// Its path.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// What came is no answer.
    #[error("the daemon sent a reply that this version cannot parse: is it of another version?")]
    Language,
}

impl ControlError {
    /// What to do about a socket that cannot be made.
    pub fn help(&self) -> Option<&'static str> {
        let Self::Os { source, .. } = self else {
            return match self {
                Self::Taken(_) => {
                    Some("`polypath down` ends it; another daemon needs another [control] socket")
                }
                Self::Occupied(_) => Some("name another path, or remove it yourself"),
                _ => None,
            };
        };
        match source.kind() {
            io::ErrorKind::PermissionDenied => Some("run it as root, or name a path in a directory of yours"),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Some("make its directory, or name a path in one that is there")
            }
            _ => None,
        }
    }
}

/// How long a question or an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the socket is still there.
const LOOK: Duration = Duration::from_secs(2);
/// How long a daemon that ends waits for those who read an answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// Most who have connected and not asked yet. Whoever has been silent for longest makes room for the next, but has some time.
const SILENT: usize = 64;
const GRACE: Duration = Duration::from_millis(50);
/// Most who read an answer.
const READERS: usize = 16;
/// Longest question, bytes.
const LONGEST: u64 = 16 << 10;

impl ControlSocket {
    /// Answers questions until it is asked to end. What is asked for is done to its end, one after another; whoever asks or reads slowly
    /// holds up nobody, and is waited for no longer than 5 s; whoever asks nothing, no longer than there is room.
    pub async fn serve(&mut self, does: impl AsyncFn(Command) -> Answer) {
        let (mut asking, mut answered) = (JoinSet::new(), JoinSet::new());
        let mut silent: VecDeque<(Instant, AbortHandle)> = VecDeque::new();
        let mut look = interval(LOOK);
        loop {
            silent.retain(|(_, asker)| !asker.is_finished());
            let until = silent.front().filter(|_| silent.len() >= SILENT).map(|(since, _)| *since + GRACE);
            tokio::select! {
                stream = self.accept(), if silent.len() < SILENT && answered.len() < READERS => {
                    silent.push_back((Instant::now(), asking.spawn(question(stream))));
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    silent.pop_front().into_iter().for_each(|(_, oldest)| oldest.abort());
                }
                Some(asked) = asking.join_next() => {
                    let Ok(Ok((stream, question))) = asked else { continue };
                    let answer = match serde_json::from_str(&question) {
                        Ok(command) => does(command).await,
                        Err(_) => Answer::Unknown,
                    };
                    if answer == Answer::Ending {
                        answered.spawn(reply(stream, answer));
                        let all = async { while answered.join_next().await.is_some() {} };
                        // Who still reads has had its time.
                        let _ = timeout(FAREWELL, all).await;
                        return;
                    }
                    answered.spawn(reply(stream, answer));
                }
                Some(_) = answered.join_next() => {}
                _ = look.tick() => self.look(),
            }
        }
    }
}

async fn question(stream: UnixStream) -> io::Result<(UnixStream, String)> {
    let (mut question, mut reader) = (String::new(), tokio::io::BufReader::new(stream.take(LONGEST)));
    timeout(PATIENCE, reader.read_line(&mut question)).await??;
    Ok((reader.into_inner().into_inner(), question))
}

async fn reply(mut stream: UnixStream, answer: Answer) -> io::Result<()> {
    let line = serde_json::to_string(&answer)? + "\n";
    timeout(PATIENCE, stream.write_all(line.as_bytes())).await?
}

/// Asks the daemon that answers at `path`.
pub fn ask(path: &Path, command: &Command) -> Result<Answer, ControlError> {
    let is_file = || fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket());
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::ConnectionRefused if is_file() => ControlError::Occupied(path.to_owned()),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::Nobody(path.to_owned()),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ControlError::Ended(path.to_owned()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ControlError::Silent(path.to_owned()),
        _ => ControlError::Os { path: path.to_owned(), source },
    };
    let mut stream = Blocking::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let asked = serde_json::to_string(command).map_err(|_| ControlError::Language)?;
    writeln!(stream, "{asked}").map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream.take(1 << 24)).read_line(&mut line).map_err(failed)?;
    if line.is_empty() {
        return Err(ControlError::Ended(path.to_owned()));
    }
    serde_json::from_str(&line).map_err(|_| ControlError::Language)
}

/// Waits until the daemon that [ends](Answer::Ending) has let go of its socket, which it does last.
pub fn ended(path: &Path, patience: Duration) -> Result<(), ControlError> {
    // It accepts nobody any more: this waits in its queue until that is gone.
    let Ok(mut stream) = Blocking::connect(path) else { return Ok(()) };
    let waited = stream.set_read_timeout(Some(patience)).and_then(|()| stream.read(&mut [0]));
    match waited.map_err(|e| e.kind()) {
        Err(io::ErrorKind::WouldBlock) => {
            Err(ControlError::Remains { path: path.to_owned(), waited: patience })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::packets::PacketStatus;
    use crate::status::{LaneStatus, OutsideStatus};
    use polypath_wire::hip::Hit;

    fn status() -> Status {
        let lane = LaneStatus { open: 3, ..LaneStatus::default() };
        let hit = "2001:22::1".parse::<Hit>().unwrap();
        Status {
            hit,
            device: "t".into(),
            lane,
            packets: PacketStatus::default(),
            outside: OutsideStatus::default(),
            interfaces: Vec::new(),
            peers: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_daemon_answers_its_owner_until_it_is_told_to_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        assert!(matches!(ask(&path, &Command::Status), Err(ControlError::Nobody(_))));
        let mut socket = ControlSocket::bind(&path, Askers::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(ControlSocket::bind(&path, Askers::default()), Err(ControlError::Taken(_))));
        let asking = tokio::task::spawn_blocking({
            let path = path.clone();
            move || [Command::Status, Command::Down].map(|command| ask(&path, &command).unwrap())
        });
        let does = async |command| match command {
            Command::Status => Answer::Status(Box::new(status())),
            _ => Answer::Ending,
        };
        socket.serve(does).await;
        assert_eq!(asking.await.unwrap(), [Answer::Status(Box::new(status())), Answer::Ending]);
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn those_who_ask_or_read_slowly_hold_up_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let mut socket = ControlSocket::bind(&path, Askers::default()).unwrap();
        let silent = Blocking::connect(&path).unwrap();
        let mut reads_nothing = Blocking::connect(&path).unwrap();
        writeln!(reads_nothing, "{}", serde_json::to_string(&Command::Log(0)).unwrap()).unwrap();
        let asking = tokio::task::spawn_blocking(move || ask(&path, &Command::Down).unwrap());
        let does = async |command| match command {
            Command::Log(_) => {
                let text = "x".repeat(1 << 20);
                Answer::Log(vec![LogLine { at_us: 1, level: "INFO".into(), text }])
            }
            _ => Answer::Ending,
        };
        timeout(PATIENCE / 2, socket.serve(does)).await.unwrap();
        assert_eq!(asking.await.unwrap(), Answer::Ending);
        drop((silent, reads_nothing));
    }

    /// As many as fit in the queue of the socket, and more than have room at the daemon.
    #[tokio::test]
    async fn those_who_connect_and_ask_nothing_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let mut socket = ControlSocket::bind(&path, Askers::default()).unwrap();
        let (connected, all) = tokio::sync::oneshot::channel();
        let asking = tokio::task::spawn_blocking(move || {
            let silent: Vec<_> = (0..300).map(|_| Blocking::connect(&path).unwrap()).collect();
            connected.send(()).unwrap();
            let answer = ask(&path, &Command::Down).unwrap();
            drop(silent);
            answer
        });
        let serve = async {
            socket.serve(async |_| Answer::Ending).await;
        };
        let timed = async {
            all.await.unwrap();
            tokio::time::sleep(PATIENCE / 2).await;
        };
        tokio::select! {
            () = serve => {}
            () = timed => panic!("no answer"),
        }
        assert_eq!(asking.await.unwrap(), Answer::Ending);
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_daemon_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        ControlSocket::bind(&path, Askers::default()).unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_is_deleted_is_made_again_and_that_of_another_daemon_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/control.sock");
        fs::create_dir(dir.path().join("run")).unwrap();
        let mut socket = ControlSocket::bind(&path, Askers::default()).unwrap();
        let serve = async |socket: &mut ControlSocket| {
            let asking = tokio::task::spawn_blocking({
                let path = path.clone();
                move || {
                    let mut tries = (0..100).map(|_| std::thread::sleep(Duration::from_millis(100)));
                    tries.find_map(|()| ask(&path, &Command::Down).ok())
                }
            });
            socket.serve(async |_| Answer::Ending).await;
            assert_eq!(asking.await.unwrap(), Some(Answer::Ending));
        };
        fs::remove_file(&path).unwrap();
        serve(&mut socket).await;
        fs::remove_dir_all(dir.path().join("run")).unwrap();
        let again = async {
            tokio::time::sleep(LOOK * 2).await;
            fs::create_dir(dir.path().join("run")).unwrap();
        };
        tokio::join!(serve(&mut socket), again);
        fs::remove_file(&path).unwrap();
        let other = ControlSocket::bind(&path, Askers::default()).unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("polypath.toml"), dir.path().join("link"));
        fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link, &dir.path().to_owned()] {
            let refused = ControlSocket::bind(path, Askers::default()).err().unwrap();
            let told = refused.to_string();
            assert!(matches!(ask(path, &Command::Status), Err(ControlError::Occupied(_))), "{told}");
            assert!(matches!(refused, ControlError::Occupied(_)) && refused.help().is_some(), "{told}");
            assert!(told.contains(path.to_str().unwrap()), "{told}");
        }
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_is_told_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none/control.sock");
        let refused = ControlSocket::bind(&path, Askers::default()).err().unwrap();
        assert!(refused.help().unwrap().contains("make its directory"), "{refused}");
    }

    #[tokio::test]
    async fn a_daemon_has_ended_when_its_socket_is_gone_and_not_when_it_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let socket = ControlSocket::bind(&path, Askers::default()).unwrap();
        let remains = ended(&path, Duration::from_millis(10));
        assert!(matches!(remains, Err(ControlError::Remains { .. })), "{remains:?}");
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || ended(&path, Duration::from_secs(3600))
        });
        drop(socket);
        waiting.join().unwrap().unwrap();
        ended(&path, Duration::ZERO).unwrap();
    }
}
