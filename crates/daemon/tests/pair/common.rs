//! Two hosts with daemons in namespaces, and links between them.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command as Tool;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use polypath_daemon::control::{Answer, Command};
use polypath_daemon::{Config, Daemon, Status};
use polypath_hip::{Identity, KeyKind, Random};
use polypath_hop::HopConfig;
use polypath_node::Clock;
use polypath_testbed::Testbed;
use polypath_testbed::netns::{self, Netns};
use polypath_testing::skip;
use polypath_wire::{Rate, Seed};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::mpsc as asynchronous;

/// The hosts' addresses in the tunnel.
pub const INNER: [&str; 2] = ["10.99.0.1", "10.99.0.2"];
/// The testbed itself has sockets on the usual one.
const PORT: u16 = 10_501;

/// Two hosts; dropping them ends everything.
pub struct Pair {
    pub hosts: [Host; 2],
    pub bed: Testbed,
}

/// A host with a daemon.
pub struct Host {
    pub ns: Netns,
    /// Its configuration, in a file of its own.
    text: String,
    dir: TempDir,
    ask: asynchronous::UnboundedSender<Question>,
    identity: Identity,
    /// What it has for /etc/hosts, if not the machine's.
    names: Option<PathBuf>,
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
}

type Question = (Command, mpsc::Sender<Answer>);

const FILE: &str = "polypath.toml";

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A link of `mbps` Mbit/s and `ms` ms, both ways.
pub fn link(mbps: u64, ms: u64) -> [HopConfig; 2] {
    let (rate, delay) = (Rate::from_mbps(mbps), polypath_wire::Duration::from_millis(ms));
    [(); 2].map(|()| HopConfig { rate, delay, ..HopConfig::default() })
}

/// Changes the text of host `side` alone.
pub fn on(side: usize, change: impl Fn(String) -> String) -> impl Fn(usize, String) -> String {
    move |of, text| if of == side { change(text) } else { text }
}

/// Both hosts have addresses of IPv6 in the tunnel, too.
pub fn with_ipv6(side: usize, text: String) -> String {
    let (ours, theirs) = (side + 1, 2 - side);
    let text = text.replace("/24\"]", &format!("/24\", \"fd99::{ours}/64\"]"));
    text.replace("/32\"]", &format!("/32\", \"fd99::{theirs}/128\"]"))
}

/// Whether namespaces can be made; if not, says so where a captured test is heard.
pub fn ready() -> bool {
    if !netns::may_create() {
        skip("network namespaces need root: run it as root, or whole under `unshare -Ur`");
    }
    netns::may_create()
}

/// Runs ip(8) on a host.
pub fn ip(host: &Host, words: &[&str]) {
    let done = host
        .ns
        .run(|| Tool::new("ip").args(words).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").status().unwrap());
    assert!(done.unwrap().success(), "{words:?}");
}

/// Runs a line as a shell of the namespace would.
pub fn sh(ns: &Netns, line: &str) {
    let quoted = line.replace("{ ", "'{ ").replace(" }", " }'");
    let tool = || Tool::new("sh").args(["-c", &quoted]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output();
    let output = ns.run(tool).unwrap().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// This thread, and those that it begins, have `names` for /etc/hosts.
fn name_hosts(names: &Path) {
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let names = names.to_str().unwrap();
    for words in [&["--make-rprivate", "/"][..], &["--bind", names, "/etc/hosts"]] {
        assert!(Tool::new("mount").args(words).status().unwrap().success(), "{words:?}");
    }
}

impl Pair {
    /// Both daemons up, the second host called by the first over `links`, and every link a path. `change` may add to the text
    /// of either configuration.
    pub fn start(links: &[[HopConfig; 2]], change: impl Fn(usize, String) -> String) -> Self {
        Self::start_with_names(links, change, None)
    }

    /// The same; the first host has `names` for its /etc/hosts.
    pub fn start_with_names(
        links: &[[HopConfig; 2]],
        change: impl Fn(usize, String) -> String,
        names: Option<&Path>,
    ) -> Self {
        let bed = Testbed::namespaces(links, Seed(1), Clock::start()).unwrap();
        let first = bed.hosts[0].clone();
        Self::start_in(bed, first, links.len(), change, names)
    }

    /// The first host is behind another one, which is at its end of the link and masquerades with ports that it draws: from
    /// outside comes only what answers. The first host has `names` for its /etc/hosts.
    pub fn start_behind_a_nat(
        link: [HopConfig; 2],
        change: impl Fn(usize, String) -> String,
        names: Option<&Path>,
    ) -> Self {
        let bed = Testbed::namespaces(&[link], Seed(1), Clock::start()).unwrap();
        let (inside, router) = (Netns::create("inside").unwrap(), bed.hosts[0].clone());
        // A namespace has no name for `ip`: the far end is moved to a process that lives in it.
        let mut there = router.run(|| Tool::new("sleep").arg("60").spawn().unwrap()).unwrap();
        sh(&inside, &format!("ip link add eth0 type veth peer name lan netns {}", there.id()));
        for (ns, device, address) in [(&inside, "eth0", "10.0.0.2"), (&router, "lan", "10.0.0.1")] {
            sh(ns, &format!("ip addr add {address}/24 dev {device} && ip link set {device} up"));
        }
        there.kill().and_then(|()| there.wait()).unwrap();
        sh(&inside, "ip route add default via 10.0.0.1");
        sh(&router, "sysctl -q net.ipv4.ip_forward=1");
        sh(&router, "nft add table ip nat");
        sh(&router, "nft add chain ip nat post { type nat hook postrouting priority srcnat; }");
        sh(&router, "nft add rule ip nat post oifname path0 masquerade random");
        Self::start_in(bed, inside, 1, change, names)
    }

    fn start_in(
        bed: Testbed,
        first: Netns,
        links: usize,
        change: impl Fn(usize, String) -> String,
        names: Option<&Path>,
    ) -> Self {
        let at = [first, bed.hosts[1].clone()];
        let identities =
            [3, 4].map(|n| Identity::generate(KeyKind::P256, &mut Random::from_seed([n; 32])).unwrap());
        let remote = |n: usize| format!("\"10.77.{n}.2:{PORT}\"");
        let addresses: Vec<String> = (0..links).map(remote).collect();
        let config = |side: usize| {
            let (peer, theirs) = (identities[1 - side].hit(), INNER[1 - side]);
            let addresses = if side == 0 { addresses.join(", ") } else { String::new() };
            let text = format!(
                "[tunnel]\naddresses = [\"{}/24\"]\n[listen]\nport = {PORT}\n[[peer]]\nhit = \"{peer}\"\n\
                 addresses = [{addresses}]\nprefixes = [\"{theirs}/32\"]\n",
                INNER[side]
            );
            change(side, text)
        };
        let names = |side: usize| names.filter(|_| side == 0).map(Path::to_owned);
        let host =
            |side: usize| Host::start(at[side].clone(), config(side), identities[side].clone(), names(side));
        let hosts = [host(0), host(1)];
        let pair = Self { hosts, bed };
        pair.wait(|pair| {
            let up = |host: &Host| host.status().peers[0].paths.iter().filter(|path| path.up).count();
            pair.hosts.iter().all(|host| up(host) >= links)
        });
        pair
    }

    /// Waits until `reached`, but not for ever.
    pub fn wait(&self, reached: impl Fn(&Self) -> bool) {
        for _ in 0..300 {
            if reached(self) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("never: {:#?}", self.hosts.each_ref().map(Host::status));
    }

    /// The address of a port of a host in the tunnel.
    pub fn at(side: usize, port: u16) -> SocketAddr {
        SocketAddr::new(INNER[side].parse::<IpAddr>().unwrap(), port)
    }
}

impl Host {
    fn start(ns: Netns, text: String, identity: Identity, names: Option<PathBuf>) -> Self {
        let (ask, mut asked) = asynchronous::unbounded_channel::<Question>();
        let dir = tempfile::tempdir().unwrap();
        let (inside, file) = (ns.clone(), dir.path().join(FILE));
        write(&file, &text);
        let config = Config::load(&file).unwrap();
        let (tell, told) = mpsc::channel();
        let (own, own_names) = (identity.clone(), names.clone());
        let run = move || {
            names.iter().for_each(|names| name_hosts(names));
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let runtime = runtime.unwrap();
            tell.send(runtime.handle().clone()).unwrap();
            runtime.block_on(async {
                let daemon = Daemon::start(&config, identity).await.unwrap();
                while let Some((command, answer)) = asked.recv().await {
                    // Nobody listens any more if a test failed.
                    let _ = answer.send(daemon.answer(command, &file).await);
                }
                daemon.stop().await;
            });
        };
        let thread = Some(thread::spawn(move || inside.run(run).unwrap()));
        let runtime = told.recv().unwrap();
        Self { ns, text, dir, ask, identity: own, names: own_names, runtime, thread }
    }

    /// Tasks of its daemon that have not ended.
    pub fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// What its daemon answers.
    pub fn ask(&self, command: Command) -> Answer {
        let (answer, answered) = mpsc::channel();
        self.ask.send((command, answer)).unwrap();
        answered.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    /// What its daemon says of itself.
    pub fn status(&self) -> Status {
        match self.ask(Command::Status) {
            Answer::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// Changes its configuration and has it read again.
    pub fn reload(&mut self, change: impl Fn(&str) -> String) -> Answer {
        let text = change(&self.text);
        write(&self.dir.path().join(FILE), &text);
        let answer = self.ask(Command::Reload);
        if answer == Answer::Done {
            self.text = text;
        }
        answer
    }

    /// Starts its daemon again, after it was [ended](Self::stop).
    pub fn restart(&mut self) {
        let (ns, names) = (self.ns.clone(), self.names.clone());
        *self = Self::start(ns, self.text.clone(), self.identity.clone(), names);
    }

    /// Ends its daemon.
    pub fn stop(&mut self) {
        let (closed, _) = asynchronous::unbounded_channel();
        self.ask = closed;
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let (closed, _) = asynchronous::unbounded_channel();
        self.ask = closed;
        // A panic of the daemon is the test's own failure by now.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}
