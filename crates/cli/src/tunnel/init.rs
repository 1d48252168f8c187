//! `polypath init`: a configuration, the key, and what to paste on the other host.

mod draft;
mod questions;

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf, absolute};

use ipnet::{IpNet, Ipv4Net};
use polypath_daemon::config::{ADDRESS_EXAMPLE, TAG_SOURCE, wrong_address, wrong_host};
use polypath_daemon::{Config, ConfigError, IdentityConfig};
use polypath_node::addresses;
use polypath_wire::hip::Hit;

use draft::Draft;

use super::{service, wrong};
use crate::args::{InitArgs, KeyAlgorithm};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;
use crate::keys;
use crate::template;

/// The address of the first host in a tunnel.
const FIRST: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 99, 0, 1), 24));
/// What to do where the key cannot be written.
const ANOTHER_KEY: &str = "run it as root, or name a key file in a directory of yours with --identity";

/// What to write.
struct Plan {
    peer: Option<(Hit, Vec<String>)>,
    /// Whether there is a configuration.
    exists: bool,
    file: PathBuf,
    text: String,
    /// The configuration that there is then.
    config: Config,
}

/// Writes a configuration, or adds a peer to one. Asks for what is not said, on a terminal.
pub fn init(args: &InitArgs) -> Result<(), Failure> {
    if args.schema {
        return printed(write!(io::stdout(), "{}", Config::schema()));
    }
    let args = &questions::complete(args)?;
    let Plan { peer, exists, file, text, config } = plan(args)?;
    // From here on a signal does not end it: what is begun is written whole.
    let _whole = Interrupt::listen_meanwhile()?;
    let draft = Draft::write(&file, &text)?; // first, as it may fail: then no key is made
    let hit = identity(&config.identity.key, !exists)?;
    draft.keep(&file)?;
    let done = if exists { "added the peer to" } else { "wrote" };
    eprintln!("{done} {}", file.display());
    hints(args, &config);
    if exists {
        eprintln!("a daemon that runs takes it with: polypath reload");
    }
    let calls = peer.as_ref().is_some_and(|(_, addresses)| !addresses.is_empty());
    if exists && !calls {
        match service::has_config(&args.config) {
            true => eprintln!(
                "start it here with: systemctl enable --now polypath (its log: journalctl -u polypath); there likewise, or \
                 without the package with: polypath up"
            ),
            false => eprintln!("start it here and there with: polypath up"),
        }
        return Ok(());
    }
    eprintln!("on the other host:");
    printed(writeln!(io::stdout(), "{}", line(&config, hit, args, calls)))
}

/// What `args` say, if it is consistent and the daemon would take it.
fn plan(args: &InitArgs) -> Result<Plan, Failure> {
    let peer = args.peer.as_deref().map(parse).transpose()?;
    let from = peer.as_ref().filter(|_| args.assigned).map(|(hit, _)| *hit);
    let exists = args.config.exists();
    let text = if exists { existing(args, from)? } else { fresh(args, from)? };
    let (file, text, config) = planned(args, text, peer.as_ref())?;
    let key = named_key(args, &config)?;
    let theirs = peer.as_ref().map(|(hit, _)| *hit);
    if let Some(hit) = theirs.filter(|_| key.exists())
        && keys::file::load(key)?.hit() == hit
    {
        return Err(Failure::usage(format!("--peer {hit}: this host's own tag")).help(TAG_SOURCE));
    }
    Ok(Plan { peer, exists, file, text, config })
}

/// What more there is to do for it, or may be a mistake.
fn hints(args: &InitArgs, config: &Config) {
    if !args.only.is_empty() {
        config.doubts(&config.interfaces()).iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    }
    if args.behind.iter().any(|net| net.prefix_len() == 0) {
        eprintln!("the other host has to forward and masquerade: docs/operations.md has the commands");
    }
}

/// The text of the configuration that is there: it gets a peer, and is left alone otherwise.
fn existing(args: &InitArgs, from: Option<Hit>) -> Result<String, Failure> {
    let there =
        |help: String| Failure::usage(format!("{} is there already", args.config.display())).help(help);
    if args.config.is_dir() {
        return Err(Failure::usage(format!("{} is a directory", args.config.display())).help(format!(
            "name a file in it, for example {}",
            args.config.join("polypath.toml").display()
        )));
    }
    if args.peer.is_none() {
        return Err(there(
            "--peer adds a peer to it; `polypath hit FILE` prints the tag of the key that it names; to begin anew, remove it first"
                .into(),
        ));
    }
    let text = Config::text(&args.config).map_err(wrong)?;
    let tunnel = Config::unchecked(&args.config, &text).map_err(wrong)?.tunnel;
    let address = args.address.filter(|address| !tunnel.addresses.contains(address));
    let (line, option) = match (address, args.assign, from) {
        (Some(address), ..) => (format!("addresses = [\"{address}\"]"), "--address"),
        (_, Some(network), _) if tunnel.assign != Some(network) => {
            (format!("assign = \"{network}\""), "--assign")
        }
        (.., Some(from)) if tunnel.addresses_from != Some(from) => {
            (format!("addresses_from = \"{from}\""), "--assigned")
        }
        _ if !args.only.is_empty() => {
            return Err(there("write include under [paths] there, or leave out --only".into()));
        }
        _ => return Ok(text),
    };
    Err(there(format!("write {line} under [tunnel] there, or leave out {option}")))
}

/// Whether this host gives a peer of which nothing is said to be behind it an address.
fn assigns(args: &InitArgs) -> Result<bool, Failure> {
    if !args.config.exists() {
        return Ok(args.assign.is_some());
    }
    let text = Config::text(&args.config).map_err(wrong)?;
    Ok(Config::unchecked(&args.config, &text).map_err(wrong)?.tunnel.assign.is_some())
}

/// The text of a new one, without the peer.
fn fresh(args: &InitArgs, from: Option<Hit>) -> Result<String, Failure> {
    let key = args.identity.clone().unwrap_or_else(|| IdentityConfig::default().key);
    let key = written(&args.config, &key).map_err(|e| Failure::system("no working directory", e))?;
    let address = args.address.or_else(|| other_host(args.assign?, None)).unwrap_or(FIRST);
    if args.address.is_none() && !args.assigned && args.behind.contains(&address.addr().into()) {
        return Err(Failure::usage(format!("--behind {}: this host would have that address", address.addr()))
            .help("write --address and another one, as the line of the other host has it, for example --address 10.99.0.2/24"));
    }
    let is_alone = address.prefix_len() == address.max_prefix_len();
    if is_alone && args.peer.is_none() && args.assign.is_none() {
        return Err(Failure::usage(format!(
            "--address {address}: no other host has an address in that network"
        ))
        .help(format!("write the length of the tunnel's network, for example {FIRST}")));
    }
    Ok(template::config(&key, from.map_or(Ok(address), Err), args.assign, &args.only))
}

/// The first host in a network but `host`, with the length of the prefix.
fn other_host(network: IpNet, host: Option<IpAddr>) -> Option<IpNet> {
    let is_host = |ip: &IpAddr| {
        Some(*ip) != host && wrong_host(&IpNet::new_assert(*ip, network.prefix_len())).is_none()
    };
    let ip = network.hosts().find(is_host)?;
    IpNet::new(ip, network.prefix_len()).ok()
}

/// The file to write, its text, and the configuration that there is then. `text` is what the configuration has without the peer.
fn planned(
    args: &InitArgs,
    text: String,
    peer: Option<&(Hit, Vec<String>)>,
) -> Result<(PathBuf, String, Config), Failure> {
    let refused = |e: Box<ConfigError>| {
        let lines = fs::read_to_string(&e.file).map_or(0, |text| text.lines().count());
        wrong(e.without_line_after(lines)).about("the daemon would refuse it")
    };
    if peer.is_some()
        && args.behind.is_empty()
        && Config::unchecked(&args.config, &text).map_err(wrong)?.tunnel.assign.is_none()
    {
        return Err(Failure::usage("--peer: nothing is behind it")
            .help("write --behind and its address in the tunnel, for example --behind 10.99.0.2/32"));
    }
    let added =
        peer.map(|(hit, addresses)| template::peer(*hit, addresses, &args.behind)).unwrap_or_default();
    let own = peer.map_or(Ok(None), |(hit, _)| own_file(args, &text, *hit))?;
    let Some(own) = own else {
        let text = text + &added;
        let config = Config::load_with(&args.config, &text, None).map_err(refused)?;
        return Ok((args.config.clone(), text, config));
    };
    let added = added.trim_start().to_owned();
    let config = Config::load_with(&args.config, &text, Some((&own, &added))).map_err(refused)?;
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

/// `identity` as it is written in the configuration `file`, at which relative paths begin.
fn written(file: &Path, identity: &Path) -> io::Result<PathBuf> {
    let dir = file.parent().unwrap_or(Path::new(""));
    match identity.strip_prefix(dir) {
        Ok(inside) if dir.is_relative() => Ok(inside.to_owned()),
        _ => absolute(identity),
    }
}

/// The key that the configuration names, if `args` name no other one.
fn named_key<'a>(args: &InitArgs, config: &'a Config) -> Result<&'a Path, Failure> {
    let file = &config.identity.key;
    let is_it = |other: &PathBuf| absolute(other).ok() == absolute(file).ok();
    if let Some(other) = args.identity.as_ref().filter(|other| !is_it(other)) {
        let (config, other) = (args.config.display(), other.display());
        return Err(Failure::usage(format!("--identity {other}: {config} names {}", file.display()))
            .help("leave out --identity, or change [identity] key there"));
    }
    Ok(file)
}

/// The identity that the configuration names, which is made if it is not there; it `may_move` to where another option says.
fn identity(file: &Path, may_move: bool) -> Result<Hit, Failure> {
    if !file.exists() {
        let stored = keys::file::store(file, &keys::generate(KeyAlgorithm::EcdsaP384)?, false);
        stored.map_err(|failure| if may_move { failure.help_instead(ANOTHER_KEY) } else { failure })?;
        eprintln!("made an identity for this host: {}", file.display());
    }
    Ok(keys::file::load(file)?.hit())
}

/// A tag, and addresses behind an @.
fn parse(peer: &str) -> Result<(Hit, Vec<String>), Failure> {
    let (hit, addresses) = peer.split_once('@').map_or((peer, None), |(hit, at)| (hit, Some(at)));
    let hit =
        hit.parse::<Hit>().map_err(|e| Failure::usage(format!("--peer {peer}: {e}")).help(TAG_SOURCE))?;
    let addresses: Vec<String> =
        addresses.into_iter().flat_map(|all| all.split(',')).map(|one| one.trim().to_owned()).collect();
    match addresses.iter().find_map(|address| wrong_address(address)) {
        Some(why) => Err(Failure::usage(format!("--peer {peer}: {why}")).help(ADDRESS_EXAMPLE)),
        None => Ok((hit, addresses)),
    }
}

/// The command that makes this host known to the other one, which has not called us if we `call` it.
fn line(config: &Config, hit: Hit, args: &InitArgs, call: bool) -> String {
    let ours = config.tunnel.addresses.first();
    let behind = ours.map(|ours| format!(" --behind {}", IpNet::from(ours.addr()))).unwrap_or_default();
    if call {
        return format!("polypath init --peer {hit}{behind}");
    }
    if let Some(network) = config.tunnel.assign {
        let network = network.trunc();
        let outside = ours.is_some_and(|ours| !network.contains(&ours.addr()));
        let behind = if outside { behind } else { String::new() };
        return format!(
            "polypath init --assigned --peer {hit}@{} --behind {network}{behind}",
            places(config, args)
        );
    }
    let theirs = ours.and_then(|ours| other_host(*ours, Some(ours.addr())));
    let address = theirs.map(|net| format!(" --address {net}")).unwrap_or_default();
    format!("polypath init{address} --peer {hit}@{}{behind}", places(config, args))
}

/// Where this host can be reached.
fn places(config: &Config, args: &InitArgs) -> String {
    let usable = || -> Vec<String> {
        let all = addresses::advertised().unwrap_or_default();
        let own = |ip| config.tunnel.addresses.iter().any(|net| net.addr() == ip);
        all.into_iter()
            .map(|a| a.ip)
            .filter(|ip| !ip.is_loopback() && !own(*ip))
            .map(|ip| ip.to_string())
            .collect()
    };
    let all = if args.at.is_empty() { usable() } else { args.at.clone() };
    match all.is_empty() {
        true => "ADDRESS".to_owned(),
        false => all.join(","),
    }
}
