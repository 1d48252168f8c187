//! `polypath init`: a configuration, the key, and what to paste on the other host.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ipnet::IpNet;
use polypath_daemon::Config;
use polypath_node::addresses;
use polypath_wire::hip::Hit;

use super::template;
use crate::args::{InitArgs, KeyAlgorithm};
use crate::failure::{Failure, printed};
use crate::keys;

/// Writes a configuration, or adds a peer to one.
pub fn init(args: &InitArgs) -> Result<(), Failure> {
    let (hit, exists) = (identity(&args.identity)?, args.config.exists());
    if exists && args.peer.is_none() {
        let help = "--peer adds a peer to it; to begin anew, remove it first";
        return Err(Failure::usage(format!("{} is there already", args.config.display())).help(help));
    }
    let mut text = match exists {
        true => read(&args.config)?,
        false => template::config(&args.identity, args.address),
    };
    let peer = args.peer.as_deref().map(parse).transpose()?;
    if let Some((hit, addresses)) = &peer {
        text += &template::peer(*hit, addresses, &args.behind);
    }
    let name = args.config.display().to_string();
    let config = Config::parse(&name, &text).map_err(|e| Failure::usage(e.to_string()))?;
    write(&args.config, &text)?;
    let done = if exists { "added the peer to" } else { "wrote" };
    eprintln!("{done} {name}");
    let calls = peer.as_ref().is_some_and(|(_, addresses)| !addresses.is_empty());
    if exists && !calls {
        eprintln!("start it here and there with: polypath up");
        return Ok(());
    }
    eprintln!("on the other host:");
    printed(writeln!(io::stdout(), "{}", line(&config, hit, args, calls)))
}

/// The identity in `file`, which is made if it is not there.
fn identity(file: &Path) -> Result<Hit, Failure> {
    if !file.exists() {
        keys::file::store(file, &keys::generate(KeyAlgorithm::EcdsaP384)?, false)?;
        eprintln!("made an identity for this host: {}", file.display());
    }
    Ok(keys::file::load(file)?.hit())
}

/// A tag, and addresses behind an @.
fn parse(peer: &str) -> Result<(Hit, Vec<String>), Failure> {
    let (hit, addresses) = peer.split_once('@').unwrap_or((peer, ""));
    let hit = hit.parse::<Hit>().map_err(|e| {
        Failure::usage(format!("--peer {peer}: {e}")).help("`polypath hit` on that host prints its tag")
    })?;
    Ok((hit, addresses.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect()))
}

/// The command that makes this host known to the other one, which has not called us if we `call` it.
fn line(config: &Config, hit: Hit, args: &InitArgs, call: bool) -> String {
    let Some(ours) = config.tunnel.addresses.first() else { return String::new() };
    let behind = IpNet::from(ours.addr());
    if call {
        return format!("polypath init --peer {hit} --behind {behind}");
    }
    let theirs = ours.hosts().find(|ip| *ip != ours.addr());
    let theirs = theirs.and_then(|ip| IpNet::new(ip, ours.prefix_len()).ok());
    let address = theirs.map(|net| format!(" --address {net}")).unwrap_or_default();
    format!("polypath init{address} --peer {hit}@{} --behind {behind}", places(config, args))
}

/// Where this host is to be found.
fn places(config: &Config, args: &InitArgs) -> String {
    let usable = || {
        let all = addresses::advertised().unwrap_or_default();
        let own = |ip| config.tunnel.addresses.iter().any(|net| net.addr() == ip);
        all.into_iter().map(|a| a.ip).filter(|ip| !ip.is_loopback() && !own(*ip)).collect()
    };
    let all: Vec<std::net::IpAddr> = if args.at.is_empty() { usable() } else { args.at.clone() };
    match all.is_empty() {
        true => "ADDRESS".to_owned(),
        false => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|e| Failure::system(format!("cannot read {}", file.display()), e))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::system(format!("cannot write {}", file.display()), e);
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(file);
    let opened =
        opened.as_mut().map_err(|e| Failure::system(format!("cannot write {}", file.display()), e))?;
    opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all()).map_err(failed)
}
