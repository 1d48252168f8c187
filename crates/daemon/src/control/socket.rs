//! The socket itself: who makes it, who may use it, and what if somebody removes it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener as BlockingListener, UnixStream as Blocking};
use std::path::{Path, PathBuf};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::unistd::geteuid;
use rustix::fs::{Mode, OFlags, open};
use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use super::{ControlError, PATIENCE};
use crate::config::SOCKET;

/// Who may ask beside root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Askers {
    /// The user that owns the socket; without one, who makes it.
    pub user: Option<u32>,
    /// A group.
    pub group: Option<u32>,
}

/// The socket of a daemon; it goes when this is dropped, if the directory allows it then.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    askers: Askers,
    /// File system and number of what is at the path.
    made: (u64, u64),
    /// Why it could not be made again, as the log has it.
    said: Option<String>,
}

impl ControlSocket {
    /// Makes the socket; one that a dead daemon left is replaced. The directory of [`SOCKET`] is made, too, and becomes the user's, who may
    /// then make the socket again. Needs a tokio runtime.
    pub fn bind(path: &Path, askers: Askers) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Os { path: path.to_owned(), source };
        own_directory(path, askers).map_err(failed)?;
        match Blocking::connect(path) {
            Ok(_) => return Err(ControlError::Taken(path.to_owned())),
            // That is also said of what is no socket.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                if !fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
                    return Err(ControlError::Occupied(path.to_owned()));
                }
                fs::remove_file(path).map_err(failed)?
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        let listener = listener(path, askers).map_err(failed)?;
        let made = number(path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), askers, made, said: None })
    }

    /// An error if none could be made there for what is in its place, or as its directory is missing.
    pub fn check(path: &Path) -> Result<(), ControlError> {
        let failed = |source| ControlError::Os { path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => Ok(()),
            Ok(_) => Err(ControlError::Occupied(path.to_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound && path == Path::new(SOCKET) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
                fs::metadata(dir).map(drop).map_err(failed)
            }
            Err(e) => Err(failed(e)),
        }
    }

    /// Makes it again if somebody has removed it. The log names each reason why that fails once.
    pub(super) fn look(&mut self) {
        let why = match number(&self.path) {
            Ok(there) if there == self.made => None,
            Ok(_) => Some("something else is in its place".to_owned()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.restore().err().map(|e| e.to_string()),
            Err(e) => Some(e.to_string()),
        };
        if let Some(new) = why.as_ref().filter(|_| self.said != why) {
            let path = self.path.display();
            warn!(
                "control socket {path} is gone, so that nobody can ask: {new}; trying again (SIGHUP reloads, SIGTERM ends)"
            );
        }
        self.said = why;
    }

    fn restore(&mut self) -> io::Result<()> {
        own_directory(&self.path, self.askers)?;
        self.listener = listener(&self.path, self.askers)?;
        self.made = number(&self.path)?;
        warn!("another program deleted the control socket {}; it is restored", self.path.display());
        Ok(())
    }

    /// The next who may ask. After an error it waits: what caused it, as a lack of descriptors, lasts.
    pub(super) async fn accept(&self) -> UnixStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if self.admits(&stream) => return stream,
                Ok(_) => {}
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }

    /// Whether that is a user who may ask. Of a group the kernel knows who is in it: others cannot connect.
    fn admits(&self, stream: &UnixStream) -> bool {
        let is_ours = |uid: u32| uid == 0 || uid == geteuid().as_raw();
        self.askers.group.is_some() || stream.peer_cred().is_ok_and(|asker| is_ours(asker.uid()))
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Somebody else may have removed it, and another daemon have made its own.
        if number(&self.path).is_ok_and(|there| there == self.made) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Nobody can connect before the socket has its mode and its owner.
fn listener(path: &Path, askers: Askers) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    if let Err(error) = admit(path, askers) {
        // It is ours and of no use.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    listen(&socket, Backlog::new(128)?)?;
    UnixListener::from_std(BlockingListener::from(socket))
}

/// Whoever owns the directory may put a link in its place: what is open is changed.
fn admit(path: &Path, askers: Askers) -> io::Result<()> {
    let mode = if askers.group.is_some() { 0o660 } else { 0o600 };
    let (made, at) = pinned(path)?;
    let found = made.metadata()?;
    if !found.file_type().is_socket() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::other("another program has replaced it"));
    }
    fs::set_permissions(&at, Permissions::from_mode(mode))?;
    let is = |wanted: Option<u32>, found| wanted.is_none_or(|wanted| wanted == found);
    match is(askers.user, found.uid()) && is(askers.group, found.gid()) {
        true => Ok(()),
        false => chown(at, askers.user, askers.group),
    }
}

/// The directory of the default socket is there, and the user's; what that user makes there is the group's. Any other is left as it is.
fn own_directory(path: &Path, askers: Askers) -> io::Result<()> {
    let (Some(dir), true) = (path.parent(), path == Path::new(SOCKET)) else { return Ok(()) };
    fs::create_dir_all(dir)?; // not every small system has /run
    let (made, at) = pinned(dir)?;
    let found = made.metadata()?;
    let mode = if askers.group.is_some() { 0o2755 } else { 0o755 };
    let wanted = (askers.user.unwrap_or(0), askers.group.unwrap_or(0), mode);
    if geteuid().is_root() && found.is_dir() && (found.uid(), found.gid(), found.mode() & 0o7777) != wanted {
        chown(&at, Some(0), Some(0))?; // only its owner, in its group, may change the mode without further rights
        fs::set_permissions(&at, Permissions::from_mode(mode))?;
        chown(&at, Some(wanted.0), Some(wanted.1))?;
    }
    Ok(())
}

/// What is at `path`, no link followed, and a name that leads to it and to nothing that is put there later. Not by `OpenOptions`, which
/// drops `O_PATH` where the C library is musl.
fn pinned(path: &Path) -> io::Result<(File, PathBuf)> {
    let file = File::from(open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
    let at = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, at.into()))
}

/// What tells a file from all others.
fn number(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}
