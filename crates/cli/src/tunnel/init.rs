//! `polypath init`: a configuration, the key, and what to paste on the other host.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf, absolute};

use ipnet::IpNet;
use polypath_daemon::{Config, ConfigError, IdentityConfig};
use polypath_node::addresses;
use polypath_wire::hip::Hit;

use crate::args::{InitArgs, KeyAlgorithm};
use crate::failure::{Failure, printed};
use crate::keys;
use crate::template;

/// Writes a configuration, or adds a peer to one.
pub fn init(args: &InitArgs) -> Result<(), Failure> {
    let exists = args.config.exists();
    let peer = args.peer.as_deref().map(parse).transpose()?;
    let from = peer.as_ref().filter(|_| args.assigned).map(|(hit, _)| *hit);
    let instead = match (from, args.assign) {
        _ if args.peer.is_none() => {
            Some("--peer adds a peer to it; to begin anew, remove it first".to_owned())
        }
        (Some(from), _) => {
            Some(format!("write addresses_from = \"{from}\" under [tunnel] there, and leave out --assigned"))
        }
        (_, Some(_)) => Some("write assign under [tunnel] there, and leave out --assign".to_owned()),
        _ => None,
    };
    if let Some(help) = instead.filter(|_| exists) {
        return Err(Failure::usage(format!("{} is there already", args.config.display())).help(help));
    }
    let text = match exists {
        true => Config::text(&args.config).map_err(wrong)?,
        false => {
            let key = args.identity.clone().unwrap_or_else(|| IdentityConfig::default().key);
            let key = written(&args.config, &key).map_err(|e| Failure::system("no working directory", e))?;
            template::config(&key, from.map_or(Ok(args.address), Err), args.assign)
        }
    };
    let hit = identity(args, &text)?;
    if peer.as_ref().is_some_and(|(theirs, _)| *theirs == hit) {
        return Err(Failure::usage(format!("--peer {hit}: this host's own tag"))
            .help("`polypath hit` on the other host prints its tag"));
    }
    let (file, text, config) = planned(args, text, peer.as_ref())?;
    write(&file, &text)?;
    let done = if exists { "added the peer to" } else { "wrote" };
    eprintln!("{done} {}", file.display());
    let calls = peer.as_ref().is_some_and(|(_, addresses)| !addresses.is_empty());
    if exists && !calls {
        eprintln!("start it here and there with: polypath up");
        return Ok(());
    }
    eprintln!("on the other host:");
    printed(writeln!(io::stdout(), "{}", line(&config, hit, args, calls)))
}

/// The file to write, its text, and the configuration that there is then. `text` is what the configuration has without the peer.
fn planned(
    args: &InitArgs,
    text: String,
    peer: Option<&(Hit, Vec<String>)>,
) -> Result<(PathBuf, String, Config), Failure> {
    let added =
        peer.map(|(hit, addresses)| template::peer(*hit, addresses, &args.behind)).unwrap_or_default();
    let own = peer.map_or(Ok(None), |(hit, _)| own_file(args, &text, *hit))?;
    let Some(own) = own else {
        let text = text + &added;
        let config = Config::load_with(&args.config, &text, None).map_err(wrong)?;
        return Ok((args.config.clone(), text, config));
    };
    let added = added.trim_start().to_owned();
    let config = Config::load_with(&args.config, &text, Some((&own, &added))).map_err(wrong)?;
    Ok((own, added, config))
}

/// The file that a new peer gets, where the configuration has a directory of peers.
fn own_file(args: &InitArgs, text: &str, hit: Hit) -> Result<Option<PathBuf>, Failure> {
    let name = format!("{}.toml", hit.to_string().replace(':', "-"));
    let directory = Config::unchecked(&args.config, text).map_err(wrong)?.peer_files.directory;
    let own = directory.map(|directory| directory.join(name));
    match own.as_ref().filter(|own| own.exists()) {
        Some(own) => Err(Failure::usage(format!("{} is there already", own.display()))
            .help("change it, or remove it first")),
        None => Ok(own),
    }
}

fn wrong(error: Box<ConfigError>) -> Failure {
    Failure::usage(error.to_string())
}

/// `identity` as it is written in the configuration `file`, at which relative paths begin.
fn written(file: &Path, identity: &Path) -> io::Result<PathBuf> {
    let dir = file.parent().unwrap_or(Path::new(""));
    match identity.strip_prefix(dir) {
        Ok(inside) if dir.is_relative() => Ok(inside.to_owned()),
        _ => absolute(identity),
    }
}

/// The identity that the configuration `text` names, which is made if it is not there.
fn identity(args: &InitArgs, text: &str) -> Result<Hit, Failure> {
    let file = &Config::unchecked(&args.config, text).map_err(wrong)?.identity.key;
    let is_it = |other: &PathBuf| absolute(other).ok() == absolute(file).ok();
    if let Some(other) = args.identity.as_ref().filter(|other| !is_it(other)) {
        let (config, other) = (args.config.display(), other.display());
        return Err(Failure::usage(format!("--identity {other}: {config} names {}", file.display()))
            .help("leave out --identity, or change [identity] key there"));
    }
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
    let ours = config.tunnel.addresses.first();
    let behind = ours.map(|ours| format!(" --behind {}", IpNet::from(ours.addr()))).unwrap_or_default();
    if call {
        return format!("polypath init --peer {hit}{behind}");
    }
    if let Some(network) = config.tunnel.assign {
        return format!("polypath init --assigned --peer {hit}@{} --behind {network}", places(config, args));
    }
    let theirs = ours.and_then(|ours| {
        let other = ours.hosts().find(|ip| *ip != ours.addr())?;
        IpNet::new(other, ours.prefix_len()).ok()
    });
    let address = theirs.map(|net| format!(" --address {net}")).unwrap_or_default();
    format!("polypath init{address} --peer {hit}@{}{behind}", places(config, args))
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

/// Writes `file` whole, or leaves it as it is. What a link leads to is replaced, not the link.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::system(format!("cannot write {}", file.display()), e);
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        // The daemon refuses a directory that others may change, whatever the umask.
        DirBuilder::new().recursive(true).mode(0o750).create(dir).map_err(failed)?;
    }
    replace(file, text).map_err(failed)
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let before = file.metadata().ok();
    let file = if before.is_some() { file.canonicalize()? } else { absolute(file)? };
    let dir = file.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().permissions(Permissions::from_mode(0o640)).tempfile_in(dir)?;
    if let Some(before) = before {
        let made = new.as_file().metadata()?;
        if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
            fchown(new.as_file(), Some(before.uid()), Some(before.gid()))?;
        }
        new.as_file().set_permissions(before.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(&file)?;
    File::open(dir)?.sync_all()
}
