//! `polypath send` and `receive` between network namespaces: two links, one of them behind a NAT and
//! one IPv6; a link that is cut and restored; strangers; a transfer that goes on.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use polypath_node::netns::{Netns, may_create};
use tempfile::TempDir;

/// Rate of each link in the cut test, so that there is time to cut.
const RATE: &str = "20mbit";

/// Two hosts: link 0 leads through a router that masquerades, link 1 is IPv6 and direct.
struct Bed {
    hosts: [Netns; 2],
    router: Netns,
    dir: TempDir,
}

fn skip(why: &str) {
    // Written past the capture of test output.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED: {why}\n").as_bytes());
}

fn tool(ns: &Netns, line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let run = || Command::new(words[0]).args(&words[1..]).output();
    match ns.run(run).unwrap() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("{line}: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("{line}: {error}");
            false
        }
    }
}

/// A veth pair between two namespaces, by way of the process that holds both.
fn join(a: (&Netns, &str, &str), b: (&Netns, &str, &str)) -> bool {
    // A namespace has no name for `ip`: the far end is moved to a process that lives in it.
    let mut there = b.0.run(|| Command::new("sleep").arg("60").spawn().unwrap()).unwrap();
    let made = tool(a.0, &format!("ip link add {} type veth peer name {} netns {}", a.1, b.1, there.id()));
    let ready = made
        && [a, b].into_iter().all(|(ns, device, address)| {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            tool(ns, &format!("ip addr add {address} dev {device}{nodad}"))
                && tool(ns, &format!("ip link set {device} up"))
        });
    there.kill().unwrap();
    there.wait().unwrap();
    ready
}

impl Bed {
    fn new() -> Option<Self> {
        if !may_create() {
            skip("network namespaces need root");
            return None;
        }
        let ns = |name| Netns::create(name).unwrap();
        let bed = Self { hosts: [ns("a"), ns("b")], router: ns("r"), dir: TempDir::new().unwrap() };
        let [a, b] = &bed.hosts;
        let r = &bed.router;
        let built = [a, b, r].into_iter().all(|ns| tool(ns, "ip link set lo up"))
            && join((a, "a0", "10.0.0.2/24"), (r, "r0", "10.0.0.1/24"))
            && join((r, "r1", "192.0.2.1/24"), (b, "b0", "192.0.2.2/24"))
            && join((a, "a1", "fd00:1::1/64"), (b, "b1", "fd00:1::2/64"))
            && bed.route()
            && r.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").is_ok()).unwrap()
            && tool(r, "nft add table ip nat")
            && tool(r, "nft add chain ip nat post { type nat hook postrouting priority 100; }")
            && tool(r, "nft add rule ip nat post oifname r1 masquerade");
        if !built {
            skip("needs ip (iproute2) and nft (nftables)");
            return None;
        }
        Some(bed)
    }

    fn route(&self) -> bool {
        tool(&self.hosts[0], "ip route replace 192.0.2.0/24 via 10.0.0.1")
    }

    fn slow(&self) -> bool {
        let shape = |ns, device| {
            tool(ns, &format!("tc qdisc add dev {device} root tbf rate {RATE} burst 32kb latency 60ms"))
        };
        let [a, b] = &self.hosts;
        shape(a, "a0") && shape(a, "a1") && shape(b, "b0") && shape(b, "b1")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command of host `side`, whose configuration is its own.
    fn polypath(&self, side: usize, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
        command.args(args).env("XDG_CONFIG_HOME", self.path(&format!("config{side}")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        command
    }

    fn spawn(&self, side: usize, args: &[&str]) -> Child {
        let mut command = self.polypath(side, args);
        self.hosts[side].run(|| command.spawn().unwrap()).unwrap()
    }

    fn hit(&self, side: usize) -> String {
        assert!(self.polypath(side, &["keygen"]).output().unwrap().status.success());
        String::from_utf8(self.polypath(side, &["hit"]).output().unwrap().stdout).unwrap().trim().to_owned()
    }

    /// A file of bytes that do not repeat.
    fn file(&self, name: &str, len: u64) -> PathBuf {
        let path = self.path(name);
        let pattern = polypath_transport::Pattern { key: 9, offset: 0, len };
        std::fs::write(&path, polypath_transport::Payload::from(pattern).to_bytes()).unwrap();
        path
    }

    fn receive(&self, allow: &str) -> Child {
        std::fs::create_dir_all(self.path("in")).unwrap();
        let dir = self.path("in");
        let child = self.spawn(1, &["receive", "--dir", dir.to_str().unwrap(), "--allow", allow, "--once"]);
        std::thread::sleep(Duration::from_millis(500));
        child
    }

    fn send(&self, file: &Path, hit: &str) -> Child {
        let to = format!("{hit}@192.0.2.2,fd00:1::2");
        self.spawn(0, &["send", file.to_str().unwrap(), &to, "--json"])
    }
}

/// What a command came to; one that hangs is killed.
fn end(mut child: Child, within: u64) -> Output {
    let deadline = Instant::now() + Duration::from_secs(within);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_link_is_cut_and_restored_behind_a_nat_and_beside_ipv6() {
    let Some(bed) = Bed::new() else { return };
    if !bed.slow() {
        return skip("needs the token bucket filter of the kernel (sch_tbf)");
    }
    let hits = [bed.hit(0), bed.hit(1)];
    let file = bed.file("big", 30_000_000);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(tool(&bed.hosts[0], "ip link set a0 down"));
    std::thread::sleep(Duration::from_secs(2));
    assert!(tool(&bed.hosts[0], "ip link set a0 up") && bed.route());
    let (sent, received) = (end(sender, 120), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    assert!(std::fs::read(&file).unwrap() == std::fs::read(bed.path("in/big")).unwrap());
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report:#}");
    assert!(paths.iter().all(|p| p["bytes"].as_u64() > Some(1_000_000)), "{report:#}");
    assert!(paths.iter().all(|p| p["esp_suite"] == "AES-128-GCM-16"), "{report:#}");
    let told = String::from_utf8_lossy(&received.stderr);
    assert!(told.contains("is gone"), "the cut was noticed: {told}");
    assert!(told.contains("192.0.2.1:"), "the NAT's address: {told}");
    assert!(!told.contains("10.0.0.2"), "{told}");
}

#[test]
fn an_interrupted_transfer_goes_on_where_it_stopped() {
    let Some(bed) = Bed::new() else { return };
    if !bed.slow() {
        return skip("needs the token bucket filter of the kernel (sch_tbf)");
    }
    let hits = [bed.hit(0), bed.hit(1)];
    let file = bed.file("big", 20_000_000);
    let mut receiver = bed.receive(&hits[0]);
    let mut sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(3));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let report = json(&end(bed.send(&file, &hits[1]), 120));
    let resumed = report["files"][0]["resumed_at"].as_u64().unwrap();
    assert!((1_000_000..20_000_000).contains(&resumed), "{report:#}");
    assert!(std::fs::read(&file).unwrap() == std::fs::read(bed.path("in/big")).unwrap());
    if receiver.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_secs(2));
    }
    assert!(end(receiver, 10).status.success());
}

#[test]
fn a_stranger_is_refused_and_told_what_to_do() {
    let Some(bed) = Bed::new() else { return };
    let hits = [bed.hit(0), bed.hit(1)];
    let file = bed.file("small", 1000);
    let mut receiver = bed.receive(&hits[1]);
    let refused = end(bed.send(&file, &hits[1]), 30);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("does not let us in") && said.contains(&format!("--allow {}", hits[0])), "{said}");
    receiver.kill().unwrap();
    let told = receiver.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains(&format!("refused {}", hits[0])), "{told}");
    assert!(!bed.path("in/small").exists());
}

#[test]
fn a_receiver_who_is_not_there_is_said_to_be_missing() {
    let Some(bed) = Bed::new() else { return };
    let hit = bed.hit(1);
    bed.hit(0);
    let file = bed.file("small", 1000);
    let output = end(bed.send(&file, &hit), 60);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no answer"), "{output:?}");
}
