//! Reports the daemon's state to the service manager (sd_notify(3)), if there is one.

use polypath_daemon::Daemon;
use sd_notify::NotifyState;
use tokio::time::{Duration, sleep};

/// Everything is set up.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// It ends on purpose.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says that it is alive, twice as often as the service manager wants to hear it, for ever.
pub async fn live(daemon: &Daemon) {
    let every = sd_notify::watchdog_enabled().map(|within| within / 2);
    loop {
        sleep(every.unwrap_or(Duration::MAX)).await;
        // Whoever cannot say how it is hangs.
        let status = daemon.status();
        let up = status.peers.iter().filter(|peer| peer.associated).count();
        let said = format!("{up} of {} peers, {} connections", status.peers.len(), status.lane.open);
        tell(&[NotifyState::Watchdog, NotifyState::Status(&said)]);
    }
}

fn tell(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager hears nothing: {error}");
    }
}
