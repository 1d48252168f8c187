//! `polypath init`, `up` and what asks a running daemon: other programs' connections over all links.

mod ask;
mod init;
mod lists;
mod template;
mod watch;

use std::io::{self, IsTerminal};

use polypath_daemon::control::ControlSocket;
use polypath_daemon::{Config, Daemon, DaemonError};
use tracing_subscriber::prelude::*;

use crate::args::{TunnelCommand, UpArgs};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys;

/// Does what the command line says.
pub fn run(command: &TunnelCommand) -> Result<(), Failure> {
    match command {
        TunnelCommand::Init(args) => init::init(args),
        TunnelCommand::Up(args) => up(args),
        TunnelCommand::Down(args) => ask::down(args),
        TunnelCommand::Reload(args) => ask::reload(args),
        TunnelCommand::Paths(args) => lists::paths(args),
        TunnelCommand::Peers(args) => lists::peers(args),
        TunnelCommand::Status(args) => ask::status(args),
    }
}

/// Carries connections until it is told to end.
fn up(args: &UpArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config).map_err(|e| Failure::usage(e.to_string()))?;
    let identity = keys::file::load(&config.identity.key)?;
    listen_to_ourselves(args.verbose);
    let interrupt = Interrupt::listen_meanwhile()?;
    interrupt.block_on(async {
        let socket =
            ControlSocket::bind(&config.control.socket).map_err(|e| Failure::system("cannot start", e))?;
        let daemon = Daemon::start(&config, identity).await.map_err(|e| {
            say_what_stays(&config);
            refused(&e)
        })?;
        tracing::info!(device = config.tunnel.name, hit = %daemon.status().hit, "up");
        let ended = interrupt
            .or(async {
                socket.serve(async |command| daemon.answer(command, &args.config).await).await;
                Ok(())
            })
            .await;
        tracing::info!("ending");
        match ended {
            Ok(()) => daemon.lift_kill_switch().await.unwrap_or_else(|e| tracing::warn!("{e}")),
            Err(_) => say_what_stays(&config),
        }
        daemon.stop().await;
        ended
    })
}

/// What is left of a daemon that ends otherwise than by `polypath down`.
fn say_what_stays(config: &Config) {
    if config.tunnel.kill_switch {
        tracing::warn!(
            "the kill switch stays: nothing leaves for the peers' prefixes (`polypath down --lift-kill-switch`)"
        );
    }
}

/// Has what the daemon says written to standard error.
fn listen_to_ourselves(verbose: bool) {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let ours = |target: &tracing::Metadata<'_>| target.target().starts_with("polypath");
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let lines = lines.with_ansi(io::stderr().is_terminal());
    let filter = tracing_subscriber::filter::filter_fn(move |m| ours(m) && *m.level() <= level);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

fn refused(error: &DaemonError) -> Failure {
    let failure = Failure::system("cannot start", error);
    match error {
        DaemonError::Device(_) => failure.help("it needs root (CAP_NET_ADMIN) and /dev/net/tun"),
        DaemonError::Sockets { .. } => {
            failure.help("another program may use the port: set [listen] port, here and at the peers")
        }
        _ => failure,
    }
}
