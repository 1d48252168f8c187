//! `polypath init`, `up` and what asks a running daemon: other programs' connections over all links.

mod ask;
mod in_force;
mod init;
pub mod journal;
mod lists;
mod log;
mod notify;
mod own_key;
mod privileges;
mod state;
mod status;
mod testbed;
mod watch;

use std::io::{self, IsTerminal};
use std::path::Path;

use nix::unistd::User;
use polypath_daemon::control::{Answer, Askers, Command, ControlError, ControlSocket};
use polypath_daemon::{Config, ConfigError, Daemon, DaemonError, Place, kill_switch};
use polypath_node::events::{self, EventFile, Observer};
use polypath_transport::RecordFilter;
use tokio::signal::unix::Signal;
use tracing_subscriber::prelude::*;

use crate::args::{Detail, TunnelCommand, UpArgs};
use crate::failure::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::keys;
use log::Recent;
use own_key::OwnKey;

/// Does what the command line says.
pub fn run(command: &TunnelCommand) -> Result<(), Failure> {
    match command {
        TunnelCommand::Init(args) => init::init(args),
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
    let key = Config::load(&args.config).map_err(wrong)?.identity.key;
    let place = |keys| move |failure| placed(&args.config, Place::Value(keys), failure);
    let identity = keys::file::load(&key).map_err(place(["identity", "key"]))?;
    let config = Config::load_as(&args.config, identity.hit()).map_err(wrong)?;
    let key = OwnKey::new(&key, identity.hit());
    let user = match (&config.daemon.user, &args.user) {
        (Some(name), _) => Some(privileges::user(name).map_err(place(["daemon", "user"]))?),
        (None, name) => {
            name.as_deref().map(privileges::user).transpose().map_err(|failure| failure.about("--user"))?
        }
    };
    let said = listen_to_ourselves(args.verbose);
    // Closed last, which `polypath down` waits for: the runtime, which is dropped before it, has the UDP sockets and the device.
    let mut asked = None;
    let interrupt = Interrupt::listen_but_for_hangups()?;
    let hangups = interrupt.hangups()?;
    interrupt.block_on(async {
        state::prepare(&config, user.as_ref()).map_err(place(["daemon", "state"]))?;
        let socket = asked.insert(socket(&config, &args.config, user.as_ref())?);
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

/// What is wrong with a configuration, or why it cannot be read.
fn wrong(error: Box<ConfigError>) -> Failure {
    let status = if error.refused { Status::System } else { Status::Usage };
    Failure::with(status, error.to_string())
}

/// The same failure, of a value of the configuration in `file`.
fn placed(file: &Path, place: Place, failure: Failure) -> Failure {
    let (status, help) = (failure.status, failure.remedy().map(str::to_owned));
    Failure::with(status, ConfigError::refused(file, &place, failure.message().to_owned(), help).to_string())
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

/// Where it is asked, by its user and root, or by a group.
fn socket(config: &Config, file: &Path, user: Option<&User>) -> Result<ControlSocket, Failure> {
    let group = config.control.group.as_deref().map(privileges::group).transpose();
    let group = group.map_err(|failure| placed(file, Place::Value(["control", "group"]), failure))?;
    let askers =
        Askers { user: user.map(|user| user.uid.as_raw()), group: group.map(|group| group.gid.as_raw()) };
    ControlSocket::bind(&config.control.socket, askers).map_err(|e| {
        let (failure, written) = match &e {
            ControlError::Taken(_) => (Failure::system("cannot start", &e), false),
            ControlError::Os { path, source } => (Failure::system(path.display(), source), true),
            _ => (Failure::with(Status::System, e.to_string()), true),
        };
        let failure = e.help().into_iter().fold(failure, Failure::help);
        if written { placed(file, Place::Value(["control", "socket"]), failure) } else { failure }
    })
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
    match error.place() {
        Some(place) => placed(
            file,
            place,
            error.help().into_iter().fold(Failure::with(Status::System, error.to_string()), Failure::help),
        ),
        None => error.help().into_iter().fold(Failure::system("cannot start", error), Failure::help),
    }
}
