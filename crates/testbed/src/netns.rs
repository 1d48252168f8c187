//! Network namespaces that cannot be left behind.
//!
//! A [`Netns`] has no name and no process in it: it is held by a file descriptor. The kernel
//! removes it, with every device in it, when the last descriptor, socket and process that holds
//! it is gone, be it by `drop`, a panic, Ctrl-C or `kill -9`. So nothing here handles signals, and
//! there are no leftovers for a later start to find.
//!
//! A namespace belongs to a *thread*, a socket to the namespace of the thread that opened it.
//! [`Netns::run`] runs a closure on a thread of its own inside the namespace; sockets, devices and
//! child processes made there stay there, and the sockets can be used from anywhere.
//!
//! Namespaces need `CAP_SYS_ADMIN`. Without root, [`gain_privileges`] enters a user namespace in
//! which this process is root (user_namespaces(7)).

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

/// Why there is no network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// The kernel refused a new namespace, mostly for want of privileges.
    #[error("no new network namespace: {0} (needs root, or a kernel that lets users make user namespaces)")]
    Create(#[source] io::Error),
    /// The kernel refused to enter a namespace that exists.
    #[error("cannot enter network namespace `{name}`: {source}")]
    Enter {
        /// The namespace's label.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No user namespace to be root in.
    #[error("no user namespace: {0} (run as root, or allow unprivileged user namespaces)")]
    User(#[source] io::Error),
}

/// A network namespace, held open by this value and its clones.
#[derive(Clone, Debug)]
pub struct Netns {
    name: Arc<str>,
    file: Arc<File>,
}

impl Netns {
    /// A new, empty namespace; `name` only labels it in messages. Its loopback device is down.
    pub fn create(name: &str) -> Result<Self, NetnsError> {
        let open = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        };
        let file = on_own_thread(open).map_err(NetnsError::Create)?;
        Ok(Self { name: name.into(), file: Arc::new(file) })
    }

    /// The namespace that `ip netns add NAME` made.
    pub fn open(name: &str) -> Result<Self, NetnsError> {
        let file = File::open(Path::new("/run/netns").join(name));
        let file = file.map_err(|source| NetnsError::Enter { name: name.to_owned(), source })?;
        Ok(Self { name: name.into(), file: Arc::new(file) })
    }

    /// Runs `f` on a thread inside the namespace and waits for it. A panic of `f` goes on here.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R, NetnsError> {
        on_own_thread(|| setns(&self.file, CloneFlags::CLONE_NEWNET).map(|()| f()))
            .map_err(|e| NetnsError::Enter { name: self.name.to_string(), source: e.into() })
    }

    /// Its label.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Makes this process able to create namespaces: nothing to do for root; any other user becomes
/// root of a new user namespace. Call it first in `main`: the kernel refuses a process that
/// already has a second thread (EINVAL). Files keep their owner: the process is no more powerful
/// outside its namespaces than before.
pub fn gain_privileges() -> Result<(), NetnsError> {
    if may_create() {
        return Ok(());
    }
    let (uid, gid) = (geteuid(), getegid());
    let enter = || {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        // user_namespaces(7): setgroups(2) must be given up before an unprivileged gid_map.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
    };
    enter().map_err(NetnsError::User)
}

/// Whether this process has `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` (capabilities(7)).
pub fn may_create() -> bool {
    const NEEDED: u64 = 1 << 21 | 1 << 12;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & NEEDED == NEEDED)
}

/// Runs `f` on a thread of its own: what it does to its namespaces ends with it.
fn on_own_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|s| s.spawn(f).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::process::Command;

    fn skip() {
        polypath_testing::skip("network namespaces need root, or run this under `unshare -Ur`");
    }

    /// Network interfaces of the calling thread's namespace.
    fn interfaces() -> Vec<String> {
        let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        table.lines().skip(2).filter_map(|l| Some(l.split_once(':')?.0.trim().to_owned())).collect()
    }

    #[test]
    fn a_namespace_is_apart_and_leaves_the_caller_where_it_was() {
        if !may_create() {
            return skip();
        }
        let before = interfaces();
        let ns = Netns::create("test").unwrap();
        assert_eq!(ns.run(interfaces).unwrap(), ["lo"]);
        assert_eq!(interfaces(), before);
        let here = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        ns.run(|| UdpSocket::bind(("127.0.0.1", here.port())).unwrap()).unwrap();
    }

    #[test]
    fn a_child_is_born_in_the_namespace() {
        if !may_create() {
            return skip();
        }
        let ns = Netns::create("test").unwrap();
        let link = || fs::read_link("/proc/thread-self/ns/net").unwrap();
        let inside = ns.run(link).unwrap();
        let child = ns.run(|| Command::new("readlink").arg("/proc/self/ns/net").output().unwrap()).unwrap();
        assert_eq!(String::from_utf8_lossy(&child.stdout).trim(), inside.to_string_lossy());
        assert_ne!(inside, link());
    }
}
