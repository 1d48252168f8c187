//! `polypath send`: files to a host that we call, or for hosts that fetch them.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polypath_files::name::{SafePath, shown};
use polypath_files::{Entry, FileError, Plan};
use polypath_lab::registry;
use polypath_transport::{CcConfig, ConnectionConfig};

use super::call::{Call, Way};
use super::connection;
use super::serve::{Serve, Work};
use crate::args::SendArgs;
use crate::failure::Failure;
use crate::target::Target;

/// Sends the files; goes on where it stopped when all links were gone for a while.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    if !args.allow.is_empty() {
        return offer(args);
    }
    let (to, what) = target(args)?;
    let plan = plan(what, args.name.as_deref())?;
    Call {
        to: &to,
        identity: args.identity.as_deref(),
        native: args.native,
        links: &args.links,
        wait: args.wait.map(Duration::from_secs),
        json: args.json,
        connection: tuned(args),
        way: Way::Send(plan.entries),
    }
    .run()
}

/// Waits for hosts that fetch the files.
fn offer(args: &SendArgs) -> Result<(), Failure> {
    let plan = plan(&args.what, args.name.as_deref())?;
    if plan.entries.iter().any(Entry::is_input) {
        return Err(Failure::usage("standard input cannot be fetched: it may be read once only"));
    }
    Serve {
        allow: &args.allow,
        identity: args.identity.as_deref(),
        port: args.port,
        native: args.native,
        links: &args.links,
        once: args.once,
        json: args.json,
        connection: tuned(args),
        work: Work::Send(Arc::new(plan.entries)),
    }
    .run()
}

/// Whom to send to, and what is before that.
fn target(args: &SendArgs) -> Result<(Target, &[std::ffi::OsString]), Failure> {
    let to_fetch = "or let a host fetch it: --allow HIT";
    let (last, what) = args.what.split_last().ok_or_else(|| Failure::usage("nothing to send"))?;
    let to = last.to_str().ok_or("is not UTF-8".to_owned()).and_then(str::parse::<Target>);
    let to = to.map_err(|e| {
        Failure::usage(format!(
            "the last argument names the receiver, and {} does not: {e}",
            shown(&last.to_string_lossy())
        ))
        .help(format!(
            "polypath send FILE HIT@ADDRESS, which `polypath receive` on that host prints; {to_fetch}"
        ))
    })?;
    if what.is_empty() {
        return Err(Failure::usage("nothing to send").help("polypath send FILE HIT@ADDRESS"));
    }
    Ok((to, what))
}

/// Everything that is sent; says what is left out.
fn plan(what: &[impl AsRef<OsStr>], name: Option<&str>) -> Result<Plan, Failure> {
    if name.is_some() && !what.iter().any(|one| one.as_ref() == "-") {
        return Err(Failure::usage("--name is for standard input, and none is sent")
            .help("polypath send - --name NAME HIT@ADDRESS; files keep their names"));
    }
    let name = name.unwrap_or("stdin");
    let mut plan = Plan::default();
    for one in what {
        match one.as_ref() {
            input if input == "-" => {
                let bad = |e| Failure::usage(format!("--name {name}: {e}"));
                SafePath::new(name, true).map_err(bad)?;
                plan.add_input(name);
            }
            path => plan.add(Path::new(path)).map_err(|e| unreadable(Path::new(path), &e))?,
        }
    }
    let inputs = plan.entries.iter().filter(|entry| entry.is_input()).count();
    if inputs > 1 {
        return Err(Failure::usage("standard input can be read once only"));
    }
    for skipped in &plan.skipped {
        let path = shown(&skipped.path.to_string_lossy());
        eprintln!("left out: {path}: {}", skipped.why);
    }
    Ok(plan)
}

fn unreadable(path: &Path, error: &FileError) -> Failure {
    let why = format!("cannot send {error}");
    let is_receiver = || path.to_str().is_some_and(|text| text.parse::<Target>().is_ok());
    match error {
        FileError::File { source, .. } => match source.kind() {
            io::ErrorKind::NotFound if is_receiver() => {
                Failure::usage(why).help("the receiver comes last, and only once")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Failure::usage(why),
            _ => Failure::refused(why),
        },
        _ => Failure::usage(why),
    }
}

/// The connection that the arguments ask for.
fn tuned(args: &SendArgs) -> ConnectionConfig {
    let known = "clap admits only names of the registry";
    ConnectionConfig {
        cc: registry::by_name(&args.cc).map(CcConfig::of_today).expect(known),
        scheduler: registry::by_name(&args.scheduler).expect(known),
        ..connection(&args.links)
    }
}
