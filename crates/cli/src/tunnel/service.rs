//! The service of the package: where it is installed, hints name it.

use std::path::Path;

use polypath_daemon::SOCKET;

use crate::args::CONFIG;

/// Where systemd looks for units, as far as packages and administrators put some there (systemd.unit(5)).
const UNITS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Whether systemd runs here and has the service.
fn is_installed() -> bool {
    let has = |dir: &str| Path::new(dir).join("polypath.service").exists();
    Path::new("/run/systemd/system").is_dir() && UNITS.iter().any(|dir| has(dir))
}

/// Whether it is the service that has, or would have, that configuration.
pub fn has_config(config: &Path) -> bool {
    config == Path::new(CONFIG) && is_installed()
}

/// Whether it is the service that would answer there.
pub fn answers(socket: &Path) -> bool {
    socket == Path::new(SOCKET) && is_installed()
}
