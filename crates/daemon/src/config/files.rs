//! Reads the configuration file and the files in its directory of peers.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use nix::libc::{O_NOCTTY, O_NONBLOCK};
use polypath_lab::document;
use polypath_node::owner;
use polypath_wire::hip::Hit;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::error::{ConfigError, Problem};
use super::{Config, Peer, routed};

/// A file of peers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default, rename = "peer")]
    peers: Vec<Peer>,
}

/// What a file says, and how many peers are in it.
struct Source {
    file: String,
    text: String,
    peers: usize,
}

/// Where the peers of a configuration stand; the configuration itself comes first.
pub(super) struct Sources(Vec<Source>);

/// Longer files are no configurations, bytes: tens of thousands of peers need less.
const LONGEST: u64 = 16 << 20;

impl Config {
    /// Reads and checks the configuration and its directory of peers. A file that others than its owner may write is refused.
    pub fn load(file: &Path) -> Result<Self, Box<ConfigError>> {
        Self::load_with(file, &Self::text(file)?, None)
    }

    /// What is in a regular file of somebody [trusted](owner::is_trusted) that nobody but its owner may change. Never waits, as opening a FIFO would.
    pub fn text(file: &Path) -> Result<String, Box<ConfigError>> {
        let name = file.display().to_string();
        let unreadable = |source| ConfigError::unreadable(&name, &source);
        let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(file);
        let opened = opened.map_err(unreadable)?;
        let found = opened.metadata().map_err(unreadable)?;
        let mode = found.permissions().mode();
        if !found.is_file() {
            return Err(ConfigError::no_file(&name));
        }
        if mode & 0o022 != 0 {
            return Err(ConfigError::loose(&name, mode & 0o777));
        }
        if !owner::is_trusted(&found) {
            return Err(ConfigError::of_another(&name));
        }
        let directory = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mode = fs::metadata(directory).map_err(unreadable)?.permissions().mode();
        // Who may write there may put another file in its place, unless the directory is sticky as /tmp is.
        if mode & 0o1002 == 0o002 {
            return Err(ConfigError::loose(&directory.display().to_string(), mode & 0o777));
        }
        let mut text = String::new();
        opened.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            return Err(ConfigError::long(&name, LONGEST));
        }
        Ok(text)
    }

    /// The same of the host `own`, which is no peer of its own.
    pub fn load_as(file: &Path, own: Hit) -> Result<Self, Box<ConfigError>> {
        let (config, sources) = Self::gather(file, &Self::text(file)?, None)?;
        config.check_own(own).map_err(|problem| sources.locate(problem))?;
        Ok(config)
    }

    /// Reads and checks what there would be if `file` held `text`, and its directory of peers the file `added` with that text,
    /// for which the directory need not be there.
    pub fn load_with(
        file: &Path,
        text: &str,
        added: Option<(&Path, &str)>,
    ) -> Result<Self, Box<ConfigError>> {
        Ok(Self::gather(file, text, added)?.0)
    }

    fn gather(
        file: &Path,
        text: &str,
        added: Option<(&Path, &str)>,
    ) -> Result<(Self, Sources), Box<ConfigError>> {
        let name = file.display().to_string();
        let mut config = Self::unchecked(file, text)?;
        let mut sources = Sources::new(&name, text, config.peers.len());
        let mut files = Vec::new();
        if let Some(directory) = &config.peer_files.directory {
            let listed = listed(directory, added.is_some()).map_err(|problem| problem.locate(&name, text))?;
            for file in listed {
                files.push((file.display().to_string(), Self::text(&file)?));
            }
        }
        files.extend(added.map(|(file, text)| (file.display().to_string(), text.to_owned())));
        for (name, text) in files {
            let Listed { peers } = read(&name, &text)?;
            sources.add(name, text, peers.len());
            config.peers.extend(peers);
        }
        config.check(&sources).map_err(|problem| sources.locate(problem))?;
        Ok((config, sources))
    }

    /// Where in `text` or in the files of peers the prefix stands to which `to` is a route.
    pub(super) fn prefix(file: &Path, text: &str, to: &IpNet) -> Option<(Problem, Sources)> {
        let (config, sources) = Self::gather(file, text, None).ok()?;
        config
            .peers
            .iter()
            .enumerate()
            .find_map(|(n, peer)| {
                let m = peer.prefixes.iter().position(|prefix| routed(prefix).contains(to))?;
                Some(Problem::at(&["peer"], n, "prefixes").nth(m))
            })
            .map(|problem| (problem, sources))
    }

    /// Reads and checks `text`, which messages call `file`, without further peers.
    pub fn parse(file: &str, text: &str) -> Result<Self, Box<ConfigError>> {
        let config: Self = read(file, text)?;
        let sources = Sources::new(file, text, config.peers.len());
        config.check(&sources).map_err(|problem| sources.locate(problem))?;
        Ok(config)
    }

    /// What `text` says in the configuration `file`, where relative paths begin; only the types of its values are checked.
    pub fn unchecked(file: &Path, text: &str) -> Result<Self, Box<ConfigError>> {
        let mut config: Self = read(&file.display().to_string(), text)?;
        let dir = file.parent().unwrap_or(Path::new(""));
        let paths = [&mut config.identity.key, &mut config.control.socket, &mut config.daemon.state];
        for path in paths.into_iter().chain(&mut config.peer_files.directory) {
            *path = dir.join(&*path);
        }
        Ok(config)
    }
}

impl Sources {
    fn new(file: &str, text: &str, peers: usize) -> Self {
        Self(vec![Source { file: file.to_owned(), text: text.to_owned(), peers }])
    }

    fn add(&mut self, file: String, text: String, peers: usize) {
        self.0.push(Source { file, text, peers });
    }

    /// Finds the place of a problem in the file that has it.
    pub fn locate(&self, mut problem: Problem) -> Box<ConfigError> {
        let mut source = &self.0[0];
        if let Some(peer) = problem.peer() {
            let mut rest = self.0.iter().skip(1);
            while *peer >= source.peers
                && let Some(next) = rest.next()
            {
                *peer -= source.peers;
                source = next;
            }
        }
        problem.locate(&source.file, &source.text)
    }

    /// File and line of a peer.
    pub fn place(&self, peer: usize) -> String {
        let found = self.locate(Problem::at(&["peer"], peer, ""));
        let line = found.place.map_or(1, |place| place.line);
        format!("{}:{line}", found.file)
    }
}

/// The files of peers in a directory that only its owner may change, in the order of their names; none if it is not there, but
/// may be `missing`.
fn listed(directory: &Path, missing: bool) -> Result<Vec<PathBuf>, Problem> {
    let shown = directory.display();
    let problem = |message: String| Problem::new(&["peers", "directory"], message);
    let unreadable = |error: io::Error| {
        let problem = problem(format!("cannot read {shown}: {error}"));
        match error.kind() {
            io::ErrorKind::NotFound => problem.help(format!("mkdir -m 750 {shown}")),
            io::ErrorKind::NotADirectory => {
                problem.help("name a directory of files *.toml, each with tables [[peer]]")
            }
            _ => problem
                .help(format!("let the group of the daemon's user read it: chgrp, chmod g+rx {shown}"))
                .refused(),
        }
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if missing && error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mode = fs::metadata(directory).map_err(unreadable)?.permissions().mode();
    if mode & 0o022 != 0 {
        let message = format!("{shown} can be changed by others (mode {:04o})", mode & 0o777);
        return Err(problem(message).help(format!("chmod go-w {shown}")));
    }
    let files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut files = files.map_err(unreadable)?;
    files.retain(|file| is_listed(file));
    files.sort();
    Ok(files)
}

/// Whether the name belongs to a file of peers: `*.toml`, and not hidden as an editor's files are.
fn is_listed(file: &Path) -> bool {
    let hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && file.extension().is_some_and(|extension| extension == "toml")
}

/// What `text` says, with errors that name `file`.
fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<ConfigError>> {
    let document = DeTable::parse(text).map_err(|e| ConfigError::syntax(file, text, &e))?;
    document::read(document.get_ref().into())
        .map_err(|wrong| ConfigError::of_serde(file, text, &document, &wrong))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::super::tests::GOOD;
    use super::*;

    const OTHER: &str = "2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9c8";

    fn peer(hit: &str, prefix: &str) -> String {
        format!("[[peer]]\nhit = \"{hit}\"\nprefixes = [\"{prefix}\"]\n")
    }

    fn mode(file: &Path, mode: u32) {
        fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    }

    fn put(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        mode(file, 0o644);
    }

    /// A configuration with a directory of peers, and that directory.
    fn bed() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (file, peers) = (dir.path().join("polypath.toml"), dir.path().join("peers.d"));
        put(&file, &format!("[peers]\ndirectory = \"peers.d\"\n{GOOD}"));
        fs::create_dir(&peers).unwrap();
        mode(&peers, 0o755);
        (dir, file, peers)
    }

    fn error(file: &Path) -> String {
        Config::load(file).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_no_text_is_named_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("polypath.toml");
        fs::write(&file, b"# M\xfcnchen").unwrap();
        mode(&file, 0o644);
        assert!(
            error(&file).contains("polypath.toml: stream did not contain valid UTF-8\nhelp: it is no text")
        );
    }

    #[test]
    fn a_file_that_others_may_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("polypath.toml");
        assert!(error(&file).contains("polypath init"));
        put(&file, GOOD);
        mode(&file, 0o664);
        assert!(error(&file).contains("chmod go-w"));
        mode(&file, 0o644);
        assert!(Config::load(&file).is_ok());
        mode(dir.path(), 0o777);
        let said = error(&file);
        assert!(
            said.contains("can be changed by others (mode 0777)") && said.contains("chmod go-w"),
            "{said}"
        );
        mode(dir.path(), 0o1777);
        assert!(Config::load(&file).is_ok());
    }

    #[test]
    fn a_file_that_another_user_owns_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            return polypath_testing::skip("only root gives files away");
        }
        let (_dir, file, peers) = bed();
        let one = peers.join("one.toml");
        put(&one, "");
        for given in [&one, &file] {
            std::os::unix::fs::chown(given, Some(65_534), None).unwrap();
            let said = error(&file);
            let help = format!("help: chown root {}", given.display());
            assert!(said.contains("belongs to another user") && said.contains(&help), "{said}");
            std::os::unix::fs::chown(given, Some(0), None).unwrap();
            assert!(Config::load(&file).is_ok());
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let (_dir, file, peers) = bed();
        let one = peers.join("one.toml");
        let pipe = || assert!(std::process::Command::new("mkfifo").arg(&one).status().unwrap().success());
        let device = || std::os::unix::fs::symlink("/dev/zero", &one).unwrap();
        let directory = || fs::create_dir(&one).unwrap();
        for make in [&pipe as &dyn Fn(), &device, &directory] {
            make();
            for said in [error(&file), error(&one)] {
                assert!(said.contains("one.toml is no regular file") && said.contains("help: "), "{said}");
            }
            fs::remove_file(&one).or_else(|_| fs::remove_dir(&one)).unwrap();
        }
    }

    #[test]
    fn what_is_too_long_is_refused_without_being_read() {
        let (_dir, file, peers) = bed();
        let one = peers.join("one.toml");
        put(&one, "");
        // It has no blocks, and more bytes than any memory.
        fs::OpenOptions::new().write(true).open(&one).unwrap().set_len(1 << 42).unwrap();
        let said = error(&file);
        assert!(said.contains("one.toml is longer than 16 MiB") && said.contains("help: "), "{said}");
    }

    #[test]
    fn the_peers_of_a_directory_follow_those_of_the_configuration() {
        let (_dir, file, peers) = bed();
        let hit = |n: u8| format!("2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9{n:02x}");
        put(&peers.join("b.toml"), &peer(&hit(2), "10.99.0.4/32"));
        put(&peers.join("a.toml"), &(peer(&hit(0), "10.99.0.5/32") + &peer(&hit(1), "10.99.0.6/32")));
        put(&peers.join("none.toml"), "");
        put(&peers.join(".#b.toml"), "what an editor keeps");
        put(&peers.join("b.toml~"), "what an editor keeps");
        let peers = Config::load(&file).unwrap().peers;
        let last: Vec<u8> = peers.iter().map(|peer| peer.hit.0[15]).collect();
        assert_eq!(last, [0x19, 0, 1, 2]);
    }

    #[test]
    fn relative_paths_begin_at_the_configuration() {
        let (dir, file, _peers) = bed();
        let text = fs::read_to_string(&file).unwrap();
        let keys = "[identity]\nkey = \"a.pem\"\n[control]\nsocket = \"a.sock\"\n[daemon]\nstate = \"/a\"\n";
        let config = Config::load_with(&file, &(keys.to_owned() + &text), None).unwrap();
        assert_eq!(config.identity.key, dir.path().join("a.pem"));
        assert_eq!(config.control.socket, dir.path().join("a.sock"));
        assert_eq!(config.daemon.state, Path::new("/a"));
    }

    #[test]
    fn the_own_tag_is_refused_where_it_is_written() {
        let (_dir, file, peers) = bed();
        put(&peers.join("one.toml"), &peer(OTHER, "10.99.0.4/32"));
        let said = Config::load_as(&file, OTHER.parse().unwrap()).unwrap_err().to_string();
        let parts = ["one.toml:2:", "peer[0].hit", "this host's own tag", "help: "];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(Config::load_as(&file, Hit::NULL).is_ok());
    }

    #[test]
    fn an_error_in_a_further_file_names_its_line_and_key() {
        let (_dir, file, peers) = bed();
        let one = peers.join("one.toml");
        for (text, parts) in [
            (peer(OTHER, "10.99.0.4/320"), ["one.toml:3:", "peer[0].prefixes[0]", "help: write an address"]),
            (peer(OTHER, "10.99.0.4/32").replace("hit", "hti"), ["one.toml:2:", "peer[0].hti", "`hit`"]),
            ("[tunnel]\n".into(), ["one.toml:1:", "unknown key `tunnel`", "one of: peer"]),
            (peer(OTHER, "10.99.0.1/32"), ["one.toml:3:", "peer[0].prefixes", "own address"]),
        ] {
            put(&one, &text);
            let said = error(&file);
            assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
        }
        put(&one, "");
        mode(&one, 0o622);
        assert!(error(&file).contains("chmod go-w") && error(&file).contains("one.toml"));
    }

    #[test]
    fn what_two_files_have_is_refused_with_both_places() {
        let (_dir, file, peers) = bed();
        let ours = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
        for (first, second, parts) in [
            (
                "",
                peer(ours, "10.99.0.4/32"),
                ["two.toml:2:", "peer[0].hit", "polypath.toml:7 has the same tag"],
            ),
            (
                "",
                peer(OTHER, "192.168.7.0/24"),
                ["two.toml:3:", "192.168.7.0/24 is behind", "polypath.toml:7 too"],
            ),
            (
                OTHER,
                peer(OTHER, "10.99.0.4/32"),
                ["two.toml:2:", "peer[0].hit", "one.toml:1 has the same tag"],
            ),
        ] {
            let first = if first.is_empty() { String::new() } else { peer(first, "10.99.0.3/32") };
            put(&peers.join("one.toml"), &first);
            put(&peers.join("two.toml"), &second);
            let said = error(&file);
            assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_or_that_others_may_change_is_refused() {
        let (_dir, file, peers) = bed();
        mode(&peers, 0o777);
        let said = error(&file);
        let parts = ["polypath.toml:2:", "peers.directory", "(mode 0777)", "help: chmod go-w"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        fs::remove_dir(&peers).unwrap();
        put(&peers, "");
        assert!(error(&file).contains("help: name a directory of files *.toml"));
        fs::remove_file(&peers).unwrap();
        let refused = |file: &Path| Config::load(file).unwrap_err().refused;
        assert!(!refused(&file) && refused(&peers), "no directory that is named, and no configuration");
        let said = error(&file);
        assert!(said.contains("polypath.toml:2:") && said.contains("help: mkdir"), "{said}");
        // Whoever is about to write the first file of it makes it.
        let (text, one) = (fs::read_to_string(&file).unwrap(), peers.join("one.toml"));
        let added = peer(OTHER, "10.99.0.4/32");
        assert_eq!(Config::load_with(&file, &text, Some((&one, &added))).unwrap().peers.len(), 2);
    }
}
