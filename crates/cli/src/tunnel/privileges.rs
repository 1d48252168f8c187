//! Who the daemon is once it is set up: a user without rights but for the network.

use std::fs;
use std::io;

use nix::sys::prctl::set_dumpable;
use nix::unistd::{Group, User, setgroups, setresgid, setresuid};
use polypath_daemon::config::similar;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
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
        Failure::usage(format!("there is no user {name}")).help(unknown(
            name,
            "/etc/passwd",
            "adduser --system --group --no-create-home",
        ))
    })
}

/// The group of that name.
pub fn group(name: &str) -> Result<Group, Failure> {
    let found = Group::from_name(name).map_err(|e| Failure::system(format!("group {name}"), e))?;
    found.ok_or_else(|| {
        Failure::usage(format!("there is no group {name}")).help(unknown(
            name,
            "/etc/group",
            "addgroup --system",
        ))
    })
}

/// What to do where `file` (passwd(5), group(5)) has no such name, which `make` makes.
fn unknown(name: &str, file: &str, make: &str) -> String {
    let known = fs::read_to_string(file).unwrap_or_default();
    match similar(name, known.lines().filter_map(|line| line.split(':').next())) {
        Some(meant) => format!("did you mean {meant}? Otherwise: {make} {name}"),
        None => format!("{make} {name}"),
    }
}

/// Root reads and replaces files of whoever started it by sudo.
const ROOTS: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Root gives a control socket that it makes again to its group.
const OF_GROUP: CapabilitySet = CapabilitySet::CHOWN;

/// Stays who it is, with the rights that are needed, if it has them, and no way to get others. Threads that there are already keep theirs.
/// `group`: whether the control socket is a group's.
pub fn keep_what_is_needed(group: bool) -> Result<(), Failure> {
    let kept = KEPT | ROOTS | if group { OF_GROUP } else { CapabilitySet::empty() };
    bound(kept).and_then(|()| keep(kept)).map_err(|e| Failure::system("cannot give up capabilities", e))
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
    bound(KEPT)?;
    set_keep_capabilities(true)?;
    setgroups(&[user.gid])?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    keep(KEPT)
}

/// No program that it might start has others than `kept`. Who starts it may have seen to that, and kept from it the right to do so.
fn bound(kept: CapabilitySet) -> io::Result<()> {
    if !capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    let all = (0..u64::BITS).map(|n| CapabilitySet::from_bits_retain(1 << n));
    // The first that the kernel does not know is an error.
    for right in all.take_while(|right| capability_is_in_bounding_set(*right).is_ok()) {
        if !kept.contains(right) {
            remove_capability_from_bounding_set(right)?;
        }
    }
    Ok(())
}

/// Gives up what it has beside `kept`.
fn keep(kept: CapabilitySet) -> io::Result<()> {
    let (kept, none) = (kept & capabilities(None)?.permitted, CapabilitySet::empty());
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?;
    Ok(set_no_new_privs(true)?)
}
