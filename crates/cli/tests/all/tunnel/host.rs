//! Two hosts with a cable between them, each in a namespace of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use polypath_daemon::SOCKET;
use polypath_node::addresses::usable;
use polypath_testbed::netns::{Netns, may_create};
use polypath_testing::{installed, skip};
use serde_json::Value;
use tempfile::TempDir;

/// A host: its namespace, a process that holds it, its files, and its daemon.
pub struct Host {
    pub ns: Netns,
    holder: Child,
    pub dir: TempDir,
    pub daemon: Option<Child>,
}

impl Drop for Host {
    fn drop(&mut self) {
        for child in self.daemon.iter_mut().chain([&mut self.holder]) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Host {
    pub fn new(name: &str) -> Self {
        let ns = Netns::create(name).unwrap();
        let mut hold = Command::new("sleep");
        let holder = ns.run(|| hold.arg("120").spawn().unwrap()).unwrap();
        Self { ns, holder, dir: tempfile::tempdir().unwrap(), daemon: None }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.command_under(&[], args)
    }

    /// The same under a program that runs it.
    pub fn command_under(&self, under: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal").args(under).arg(env!("CARGO_BIN_EXE_polypath")).args(args);
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, mut command: Command) -> Output {
        self.ns.run(|| command.output().unwrap()).unwrap()
    }

    /// Runs the line that another host printed, with our files.
    pub fn obey(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        self.init(&words[1..])
    }

    /// What `polypath init` prints.
    pub fn init(&self, args: &[&str]) -> String {
        let files = ["init", "polypath.toml", "--identity", "identity.pem"];
        let done = self.run(self.command(&[&files, args].concat()));
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    /// Changes its configuration.
    pub fn edit(&self, change: impl Fn(&str) -> String) {
        let config = self.dir.path().join("polypath.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, change(&text)).unwrap();
    }

    /// Starts the daemon, which writes its events.
    pub fn up(&mut self) {
        self.start(&[], &["up", "polypath.toml", "--events", "events"], &[]);
    }

    /// The same with variables of its environment.
    pub fn up_with(&mut self, variables: &[(&str, &str)]) {
        self.up_under(&[], variables);
    }

    /// The same under a program that runs it.
    pub fn up_under(&mut self, under: &[&str], variables: &[(&str, &str)]) {
        self.start(under, &["up", "polypath.toml"], variables);
    }

    pub fn start(&mut self, under: &[&str], up: &[&str], variables: &[(&str, &str)]) {
        self.own_socket();
        let mut up = self.command_under(under, up);
        up.envs(variables.iter().copied());
        self.daemon = Some(self.ns.run(|| up.spawn().unwrap()).unwrap());
    }

    /// Writes the socket of this host, instead of the default one, into its configuration, and returns it.
    pub fn own_socket(&self) -> PathBuf {
        let socket = self.socket();
        self.edit(|text| text.replace(SOCKET, socket.to_str().unwrap()));
        socket
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("control.sock")
    }

    /// Runs a command that asks the daemon.
    pub fn ask(&self, args: &[&str]) -> Output {
        let socket = self.socket();
        self.run(self.command(&[args, &["--socket", socket.to_str().unwrap()]].concat()))
    }

    pub fn status(&self, args: &[&str]) -> Output {
        self.ask(&[&["status"], args].concat())
    }

    /// Ends the daemon by a signal.
    pub fn end(&mut self, signal: &str) {
        let mut daemon = self.daemon.take().unwrap();
        let sent = Command::new("kill").args([signal, &daemon.id().to_string()]).status().unwrap();
        assert!(sent.success());
        daemon.wait().unwrap();
    }

    pub fn is_associated(&self) -> bool {
        let said = self.status(&["--json"]).stdout;
        serde_json::from_slice::<Value>(&said).is_ok_and(|json| json["peers"][0]["associated"] == true)
    }
}

/// Two hosts with a cable between them.
pub fn hosts() -> Option<[Host; 2]> {
    if !may_create() {
        skip("network namespaces need root");
        return None;
    }
    if !installed(&["ip", "env"]) {
        return None;
    }
    let hosts = ["a", "b"].map(Host::new);
    plug([&hosts[0], &hosts[1]], "eth0", "192.0.2");
    // The kernel notices a cable a moment after both ends are up.
    wait("a cable", || hosts.iter().all(|host| has_cables(host, 1)));
    Some(hosts)
}

/// Each host gets the other one as its peer; `options` are of the server's `polypath init`.
pub fn introduce(router: &Host, server: &Host, options: &[&str]) {
    let back = router.obey(&server.init(options));
    server.obey(&back);
}

/// Starts both daemons, and waits until they have met.
pub fn up_both(router: &mut Host, server: &mut Host) {
    server.up();
    router.up();
    meet(router, server);
}

/// Waits for an association of both.
pub fn meet(router: &Host, server: &Host) {
    wait("an association", || router.is_associated() && server.is_associated());
}

/// Whether as many addresses can be used.
pub fn has_cables(host: &Host, cables: usize) -> bool {
    let usable = || usable().unwrap().iter().filter(|a| !a.ip.is_loopback()).count();
    host.ns.run(usable).unwrap() >= cables
}

/// A cable between both, in the network `net`.0/24.
pub fn plug(hosts: [&Host; 2], name: &str, net: &str) {
    let cable = format!("ip link add {name} type veth peer name {name} netns {}", hosts[1].holder.id());
    hosts[0].ns.run(|| shell(&cable)).unwrap();
    for (n, host) in hosts.iter().enumerate() {
        let up = format!("ip address add {net}.{}/24 dev {name}; ip link set {name} up", n + 1);
        host.ns.run(|| shell(&up)).unwrap();
    }
}

/// Whether `ip WHAT` lists a line with `words`.
pub fn lists(host: &Host, what: &str, words: &str) -> bool {
    ip(host, &[what]).contains(words)
}

/// What `ip` prints on this host.
pub fn ip(host: &Host, words: &[&str]) -> String {
    let mut ip = Command::new("ip");
    ip.args(words).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    String::from_utf8(host.run(ip).stdout).unwrap()
}

/// A program on the router says hello to one on the server.
pub fn reaches(router: &Host, server: &Host) {
    reaches_as("10.99.0.2", router, server);
}

/// The same on a client that has this address.
pub fn reaches_as(address: &str, router: &Host, server: &Host) {
    // A port of its own: a child that another test begins holds the last listener for a moment.
    let listener = server.ns.run(|| TcpListener::bind("10.99.0.1:0").unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    let mut client = router.ns.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let (mut accepted, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), address);
    client.write_all(b"hello").unwrap();
    drop(client);
    let mut said = String::new();
    accepted.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello");
}

pub fn shell(script: &str) {
    let status =
        Command::new("sh").args(["-ec", script]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").status();
    assert!(status.unwrap().success(), "{script}");
}

pub fn wait(what: &str, reached: impl Fn() -> bool) {
    let mut tries = (0..300).map(|_| thread::sleep(Duration::from_millis(100)));
    assert!(tries.any(|()| reached()), "never: {what}");
}
