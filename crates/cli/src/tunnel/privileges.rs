//! Who the daemon is once it is set up: a user without rights but for the network.

use std::io;

use nix::sys::prctl::set_dumpable;
use nix::unistd::{Group, User, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use crate::failure::Failure;

/// What is needed while it runs: routes, rules and marks; sockets bound to interfaces; ports below 1024.
const KEPT: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW).union(CapabilitySet::NET_BIND_SERVICE);

/// From now on no dump of this process's memory, where the key is, is written when it aborts (core(5)).
pub fn leave_no_core() -> Result<(), Failure> {
    set_dumpable(false).map_err(|e| Failure::system("cannot forbid a dump of its memory", e))
}

/// The user of that name.
pub fn user(name: &str) -> Result<User, Failure> {
    let found = User::from_name(name).map_err(|e| Failure::system(format!("user {name}"), e))?;
    found.ok_or_else(|| {
        Failure::usage(format!("there is no user {name}"))
            .help(format!("adduser --system --group --no-create-home {name}"))
    })
}

/// The group of that name.
pub fn group(name: &str) -> Result<Group, Failure> {
    let found = Group::from_name(name).map_err(|e| Failure::system(format!("group {name}"), e))?;
    found.ok_or_else(|| {
        Failure::usage(format!("there is no group {name}")).help(format!("addgroup --system {name}"))
    })
}

/// Becomes `user`, with the rights that are needed and no way to get others. Of the threads that there are, only the calling
/// one keeps these rights; those that it starts later have them.
pub fn become_user(user: &User) -> Result<(), Failure> {
    change(user).map_err(|e| {
        Failure::system(format!("cannot become the user {}", user.name), e)
            .help("only root may: without [daemon] user it keeps its own user")
    })?;
    leave_no_core() // the system may have allowed it for the new user (proc(5), suid_dumpable)
}

fn change(user: &User) -> io::Result<()> {
    set_keep_capabilities(true)?;
    setgroups(&[user.gid])?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: KEPT, permitted: KEPT, inheritable: none })?;
    Ok(set_no_new_privs(true)?)
}
