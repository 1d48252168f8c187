//! `polypath init`, `up` and what asks a running daemon: other programs' connections over all links.

mod ask;
mod check;
mod in_force;
mod init;
pub mod journal;
mod lists;
mod log;
mod notify;
mod own_key;
mod prepared;
mod privileges;
mod service;
mod state;
mod status;
mod testbed;
mod watch;

use std::io::{self, IsTerminal};
use std::path::Path;

use nix::unistd::User;
use polypath_daemon::control::{Answer, Askers, Command, ControlSocket};
use polypath_daemon::{Daemon, DaemonError, LeaseError, Place, kill_switch};
use polypath_node::events::{self, EventFile, Observer};
use polypath_transport::RecordFilter;
use tokio::signal::unix::Signal;
use tracing_subscriber::prelude::*;

use crate::args::{Detail, TunnelCommand, UpArgs};
use crate::failure::{Failure, Status};
use crate::interrupt::Interrupt;
use log::Recent;
use own_key::OwnKey;
use prepared::{Prepared, no_socket, placed, wrong};

/// Does what the command line says.
pub fn run(command: &TunnelCommand) -> Result<(), Failure> {
    match command {
        TunnelCommand::Init(args) => init::init(args),
        TunnelCommand::Check(args) => check::check(args),
        TunnelCommand::Up(args) => up(args),
        TunnelCommand::Down(args) => ask::down(args),
        TunnelCommand::Reload(args) => ask::reload(args),
        TunnelCommand::Paths(args) => lists::paths(args),
        TunnelCommand::Peers(args) => lists::peers(args),
        TunnelCommand::Status(args) => status::status(args),
        TunnelCommand::Log(args) => log::log(args),
        TunnelCommand::Testbed { command } => testbed::run(command),
    }
}

/// Carries connections until it must end.
fn up(args: &UpArgs) -> Result<(), Failure> {
    privileges::leave_no_core()?;
    let Prepared { config, identity, user, group } = Prepared::read(&args.config, args.user.as_deref())?;
    let key = OwnKey::new(&config.identity.key, identity.hit());
    let said = listen_to_ourselves(args.verbose);
    // Closed last, which `polypath down` waits for: the runtime, which is dropped before it, has the UDP sockets and the device.
    let mut asked = None;
    let interrupt = Interrupt::listen_but_for_hangups()?;
    let hangups = interrupt.hangups()?;
    interrupt.block_on(async {
        state::prepare(&config, user.as_ref())
            .map_err(|failure| placed(&args.config, Place::Value(["daemon", "state"]), failure))?;
        let askers = Askers {
            user: user.as_ref().map(|user| user.uid.as_raw()),
            group: group.map(|group| group.gid.as_raw()),
        };
        let bound = ControlSocket::bind(&config.control.socket, askers);
        let socket = asked.insert(bound.map_err(|e| no_socket(&args.config, &e))?);
        if user.is_none() {
            privileges::keep_what_is_needed(config.control.group.is_some())?; // before there are other threads
        }
        let (observer, events) =
            args.events.as_deref().map(|file| observe(file, args.detail)).transpose()?.unzip();
        let daemon = match Daemon::start_observed(&config, identity, observer).await {
            Ok(daemon) => daemon,
            Err(error) => {
                say_what_stays().await;
                return Err(refused(&args.config, &error));
            }
        };
        let ended = carry(&daemon, (socket, hangups), &said, (args, &key), user.as_ref(), &interrupt).await;
        tracing::info!("ending");
        notify::stopping();
        let ended = match ended {
            Ok(()) => {
                daemon.lift_kill_switch().await.map_err(|e| Failure::system("cannot end as it should", e))
            }
            other => other,
        };
        if ended.is_err() {
            say_what_stays().await;
        }
        daemon.stop().await;
        events.map_or(Ok(()), finish)?;
        ended
    })
}

/// The file of events, as the user who starts it may write it.
fn observe(file: &Path, detail: Detail) -> Result<(Observer, EventFile), Failure> {
    let filter =
        RecordFilter { events: true, state: detail != Detail::Rare, packets: detail == Detail::Packets };
    events::observe(file, filter).map_err(|e| Failure::system(format!("cannot write {}", file.display()), e))
}

/// The end of the file of events.
fn finish(events: EventFile) -> Result<(), Failure> {
    match events.finish().map_err(|e| Failure::system("--events: the file is incomplete", e))? {
        0 => {}
        lost => tracing::warn!("--events: {lost} lines were dropped, as the disk was too slow for them"),
    }
    Ok(())
}

/// Carries connections and answers, as `user`, until it is asked to end or a signal comes. A hangup asks to read the
/// configuration again.
async fn carry(
    daemon: &Daemon,
    (socket, mut hangups): (&mut ControlSocket, Signal),
    said: &Recent,
    (args, key): (&UpArgs, &OwnKey),
    user: Option<&User>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    user.map_or(Ok(()), privileges::become_user)?;
    notify::ready();
    daemon.look_over_paths();
    tracing::info!(device = %daemon.config().tunnel.name, hit = %daemon.status().hit, "up");
    let answers = async {
        tokio::select! {
            () = socket.serve(async |command| match command {
                Command::Log(after) => Answer::Log(said.after(after)),
                Command::Reload => key.reload(daemon, &args.config).await,
                other => daemon.answer(other, &args.config).await,
            }) => {}
            () = notify::live(daemon) => {}
            () = read_again(daemon, key, &args.config, &mut hangups) => {}
            error = daemon.failed() => {
                tracing::error!("{error}");
                return Err(Failure::system("cannot go on", error));
            }
        }
        Ok(())
    };
    interrupt.or(answers).await.map_err(Failure::unless_told)
}

/// Has the configuration read again at each hangup.
async fn read_again(daemon: &Daemon, key: &OwnKey, config: &Path, hangups: &mut Signal) {
    while hangups.recv().await.is_some() {
        if let Answer::Refused { why, help } = key.reload(daemon, config).await {
            tracing::warn!("SIGHUP: {why}; {help}");
        }
    }
}

/// What is left of a daemon that ends otherwise than by `polypath down`.
async fn say_what_stays() {
    if kill_switch::stands().await {
        tracing::warn!(
            "the kill switch stays: nothing leaves for the peers' prefixes (`polypath down --lift-kill-switch`)"
        );
    }
}

/// Has what the daemon says written to standard error, and the last lines kept.
fn listen_to_ourselves(verbose: bool) -> Recent {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let ours = |target: &tracing::Metadata<'_>| target.target().starts_with("polypath");
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    // A terminal may go while the daemon stays.
    let lines = lines.with_ansi(io::stderr().is_terminal()).log_internal_errors(false);
    let lines = match journal::listens() {
        true => lines.event_format(journal::Line::default()).boxed(),
        false => lines.boxed(),
    };
    let filter = tracing_subscriber::filter::filter_fn(move |m| ours(m) && *m.level() <= level);
    let recent = Recent::default();
    tracing_subscriber::registry().with(lines.and_then(recent.clone()).with_filter(filter)).init();
    recent
}

/// Why the daemon does not start, and where in the configuration in `file` that stands.
fn refused(file: &Path, error: &DaemonError) -> Failure {
    if let DaemonError::Lease(error) = error {
        return no_lease(file, error);
    }
    match error.place() {
        Some(place) => placed(
            file,
            place,
            error.help().into_iter().fold(Failure::with(Status::System, error.to_string()), Failure::help),
        ),
        None => error.help().into_iter().fold(Failure::system("cannot start", error), Failure::help),
    }
}

/// The same where a peer has no address: with a network that is too small, it never will.
fn no_lease(file: &Path, error: &LeaseError) -> Failure {
    let status = match error {
        LeaseError::Exhausted { .. } => Status::Usage,
        LeaseError::Unkept { .. } => Status::System,
    };
    placed(file, error.place(), Failure::with(status, error.to_string()).help(error.help()))
}
