//! Two hosts in network namespaces, joined by a link through a router that masquerades and by an IPv6 link.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use polypath_hop::{HopConfig, QueueLimit};
use polypath_node::Clock;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::{Netns, may_create};
use polypath_testbed::tun_end;
use polypath_testing::{installed, skip};
use polypath_wire::{Rate, Seed};
use tempfile::TempDir;

/// Each link where time is needed to do something to it.
fn slow_hop() -> HopConfig {
    HopConfig {
        rate: Rate::from_mbps(20),
        delay: Duration::from_millis(2).into(),
        queue: QueueLimit::Bytes(150_000),
        ..HopConfig::default()
    }
}

/// Two namespaces joined by a slow link.
pub fn emulated(a: (&Netns, &str, &str), b: (&Netns, &str, &str)) -> EmulatedLink {
    let ends =
        [a, b].map(|(ns, device, address)| tun_end(ns, device, address.parse().unwrap(), 1500).unwrap());
    EmulatedLink::start(a.1, ends, [slow_hop(), slow_hop()], Seed(1), Clock::start()).unwrap()
}

/// Two hosts: link 0 leads through a router that masquerades, link 1 is IPv6 and direct.
pub struct Bed {
    pub hosts: [Netns; 2],
    pub router: Netns,
    /// The slow links.
    #[allow(dead_code, reason = "a link carries packets until it is dropped")]
    links: Vec<EmulatedLink>,
    dir: TempDir,
}

/// Runs a tool in a namespace; it must not fail.
pub fn tool(ns: &Netns, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let output = ns.run(|| Command::new(words[0]).args(&words[1..]).output()).unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {}{said}", output.status);
}

/// Makes a router of a namespace, which masquerades what leaves by `device`.
pub fn masquerade(router: &Netns, device: &str) {
    router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
    tool(router, "nft add table ip nat");
    tool(router, "nft add chain ip nat post { type nat hook postrouting priority 100; }");
    tool(router, &format!("nft add rule ip nat post oifname {device} masquerade"));
}

/// A veth pair between two namespaces, by way of the process that holds both.
pub fn join(a: (&Netns, &str, &str), b: (&Netns, &str, &str)) {
    // A namespace has no name for `ip`: the far end is moved to a process that lives in it.
    let mut there = b.0.run(|| Command::new("sleep").arg("60").spawn().unwrap()).unwrap();
    tool(a.0, &format!("ip link add {} type veth peer name {} netns {}", a.1, b.1, there.id()));
    for (ns, device, address) in [a, b] {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        tool(ns, &format!("ip addr add {address} dev {device}{nodad}"));
        tool(ns, &format!("ip link set {device} up"));
    }
    there.kill().unwrap();
    there.wait().unwrap();
}

impl Bed {
    pub fn new() -> Option<Self> {
        Self::with(|[a, b], r| {
            join((a, "a0", "10.0.0.2/24"), (r, "r0", "10.0.0.1/24"));
            join((r, "r1", "192.0.2.1/24"), (b, "b0", "192.0.2.2/24"));
            join((a, "a1", "fd00:1::1/64"), (b, "b1", "fd00:1::2/64"));
            Vec::new()
        })
    }

    fn with(connect: impl FnOnce(&[Netns; 2], &Netns) -> Vec<EmulatedLink>) -> Option<Self> {
        let bed = Self::apart()?;
        let bed = Self { links: connect(&bed.hosts, &bed.router), ..bed };
        bed.route();
        masquerade(&bed.router, "r1");
        Some(bed)
    }

    /// The hosts without a link.
    pub fn apart() -> Option<Self> {
        if !may_create() {
            skip("network namespaces need root");
            return None;
        }
        if !installed(&["ip", "ss", "nft", "setpriv", "script"]) {
            return None;
        }
        let ns = |name| Netns::create(name).unwrap();
        let (hosts, router) = ([ns("a"), ns("b")], ns("r"));
        hosts.iter().chain([&router]).for_each(|ns| tool(ns, "ip link set lo up"));
        Some(Self { hosts, router, links: Vec::new(), dir: TempDir::new().unwrap() })
    }

    pub fn route(&self) {
        tool(&self.hosts[0], "ip route replace 192.0.2.0/24 via 10.0.0.1");
    }

    /// The same with links on which things take time.
    pub fn slow() -> Option<Self> {
        Self::with(|[a, b], r| {
            let links = [
                emulated((a, "a0", "10.0.0.2"), (r, "r0", "10.0.0.1")),
                emulated((a, "a1", "fd00:1::1"), (b, "b1", "fd00:1::2")),
            ];
            join((r, "r1", "192.0.2.1/24"), (b, "b0", "192.0.2.2/24"));
            links.into()
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command of host `side`, whose configuration is its own.
    pub fn polypath(&self, side: usize, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
        command.args(args).env("XDG_CONFIG_HOME", self.path(&format!("config{side}")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        command
    }

    pub fn spawn(&self, side: usize, args: &[&str]) -> Child {
        let mut command = self.polypath(side, args);
        self.hosts[side].run(|| command.spawn().unwrap()).unwrap()
    }

    pub fn hit(&self, side: usize) -> String {
        assert!(self.polypath(side, &["keygen"]).output().unwrap().status.success());
        String::from_utf8(self.polypath(side, &["hit"]).output().unwrap().stdout).unwrap().trim().to_owned()
    }

    /// Both hosts', each with a key of its own from now on.
    pub fn hits(&self) -> [String; 2] {
        [self.hit(0), self.hit(1)]
    }

    /// Whether the receiver has the sender's file of that name.
    pub fn arrived(&self, name: &str) -> bool {
        std::fs::read(self.path(name)).unwrap() == std::fs::read(self.path("in").join(name)).unwrap()
    }

    /// A file of bytes that do not repeat.
    pub fn file(&self, name: &str, len: u64) -> PathBuf {
        let path = self.path(name);
        let pattern = polypath_transport::Pattern { key: 9, offset: 0, len };
        std::fs::write(&path, polypath_transport::Payload::from(pattern).to_bytes()).unwrap();
        path
    }

    pub fn receive(&self, allow: &str) -> Child {
        std::fs::create_dir_all(self.path("in")).unwrap();
        let dir = self.path("in");
        let child = self.spawn(1, &["receive", "--dir", dir.to_str().unwrap(), "--allow", allow, "--once"]);
        std::thread::sleep(Duration::from_millis(500));
        child
    }

    pub fn send(&self, file: &Path, hit: &str) -> Child {
        self.send_to(file, &format!("{hit}@192.0.2.2,fd00:1::2"))
    }

    pub fn send_to(&self, file: &Path, to: &str) -> Child {
        self.spawn(0, &["send", file.to_str().unwrap(), to, "--json"])
    }
}

/// What a command came to; one that hangs is killed.
pub fn end(mut child: Child, within: u64) -> Output {
    let deadline = Instant::now() + Duration::from_secs(within);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

pub fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
