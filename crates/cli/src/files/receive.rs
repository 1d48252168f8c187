//! `polypath receive`: files from hosts that call, or from one that we call.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polypath_files::Store;
use polypath_node::{Sha256, hex};

use super::call::{Call, Way};
use super::connection;
use super::serve::{Serve, Work};
use crate::args::ReceiveArgs;
use crate::failure::Failure;
use crate::keys;

/// Receives files until it is interrupted, or has those of one sender if that is all that is asked.
pub fn receive(args: &ReceiveArgs) -> Result<(), Failure> {
    let store = Store::open(&args.dir, args.hidden);
    let store = store.map_err(|e| Failure::system(format!("cannot use {}", args.dir.display()), e))?;
    let identity = args.identity.as_deref();
    let key = keys::ensure(identity)?;
    let store = Arc::new(store.remembering(&ledger(&key, &args.dir)));
    if let Some(from) = &args.from {
        return Call {
            to: from,
            identity,
            native: args.native,
            links: &args.links,
            wait: args.wait.map(Duration::from_secs),
            json: args.json,
            connection: connection(&args.links),
            way: Way::Fetch(store),
        }
        .run();
    }
    Serve {
        allow: &args.allow,
        identity,
        port: args.port,
        native: args.native,
        links: &args.links,
        once: args.once,
        json: args.json,
        connection: connection(&args.links),
        work: Work::Receive(store),
    }
    .run()
}

/// Where receivers with that key keep what they stored in `dir`.
fn ledger(key: &Path, dir: &Path) -> PathBuf {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    key.with_file_name("received").join(hex(&Sha256::digest(dir.as_os_str().as_bytes())[..8]))
}
