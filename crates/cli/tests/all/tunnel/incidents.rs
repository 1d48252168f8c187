//! What happens to daemons in years: they are killed and started again, addresses and clocks change, cables are pulled, disks are full. Connections
//! go on where they can, and are reset and not stuck where they cannot; nothing grows.
//!
//! `POLYPATH_INCIDENTS=300 cargo test -p polypath-cli --test all incidents` has as many happen; `make soak` does.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use polypath_testing::installed;

use super::full::{fill, seen_by};
use super::host::{Host, hosts, plug, shell, wait};

const ADDRESSES: [&str; 2] = ["10.99.0.2", "10.99.0.1"];
const NETS: [&str; 2] = ["192.0.2", "192.0.3"];
/// After this long without a byte the connection is stuck.
const STUCK: Duration = Duration::from_secs(40);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Incident {
    /// The host has another address on a cable: the new one before the old one goes, or after.
    Address {
        side: usize,
        cable: usize,
        before: bool,
    },
    /// The daemon is asked to end, or killed and its clock set back; then it is started again.
    Restart {
        side: usize,
        killed: bool,
    },
    /// Both cables are pulled; for how long, s.
    Dark(u64),
    /// The time of day at a host is another one; by how many seconds.
    Clock {
        side: usize,
        ahead: i64,
    },
    Reload {
        side: usize,
    },
    /// The disk of a host is full when there is something to be written, and then has room again.
    Full {
        side: usize,
    },
}

/// Kinds of them, which take turns.
const KINDS: u64 = 7;
/// Runs a program with a file system of its own, of 64 KiB, where its state is.
const SMALL: [&str; 6] =
    ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none small; exec \"$@\"", "sh"];
/// More than all incidents together carry.
const PLENTY: &str = "quota = { eth0 = \"1000 TB\", eth1 = \"1000 TB\" }";

impl Incident {
    /// Number `n` of `rounds`, drawn from a sequence that repeats itself. In either half only one host is restarted, so that it shows what grows
    /// at the other.
    fn number(n: u64, rounds: u64) -> Self {
        let chance = ((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let (side, other, restarted) = (chance >> 4 & 1, chance >> 8, usize::from(n >= rounds / 2));
        match n % KINDS {
            // The server keeps an address that the router's configuration names.
            0 => Self::Address { side, cable: side | other & 1, before: other & 2 > 0 },
            1 => Self::Restart { side: restarted, killed: true },
            2 => Self::Clock { side, ahead: [-3_000_000_000, -86_400, 3600, 90 * 86_400][other % 4] },
            3 => Self::Restart { side: restarted, killed: false },
            4 => Self::Dark(1 + other as u64 % 7),
            5 => Self::Reload { side },
            _ => Self::Full { side },
        }
    }
}

/// Router and server with two cables, both daemons up.
struct Bed {
    hosts: [Host; 2],
    /// The last bytes of the addresses on the cables.
    last: [[u8; 2]; 2],
    /// What has a program's clock be another one.
    clock: Option<PathBuf>,
}

impl Bed {
    fn new() -> Option<Self> {
        let hosts = hosts()?;
        if !installed(&["unshare", "mount"]) {
            return None;
        }
        plug([&hosts[0], &hosts[1]], "eth1", NETS[1]);
        let promote = || fs::write("/proc/sys/net/ipv4/conf/all/promote_secondaries", "1").unwrap();
        hosts.iter().for_each(|host| host.ns.run(promote).unwrap());
        let there = hosts[1].init(&["--at", "192.0.2.2", "--at", "192.0.3.2"]);
        let back = hosts[0].obey(&there);
        hosts[1].obey(&back);
        for host in &hosts {
            host.edit(|text| {
                text.replace("# state = \"/var/lib/polypath\"", "state = \"small\"")
                    .replace("quota = {}", PLENTY)
            });
            fs::create_dir(host.dir.path().join("small")).unwrap();
        }
        let clock = clock(&hosts[0]);
        let mut bed = Self { hosts, last: [[1, 1], [2, 2]], clock };
        (0..2).for_each(|side| bed.up(side));
        bed.wait();
        Some(bed)
    }

    fn up(&mut self, side: usize) {
        let ahead = self.hosts[side].dir.path().join("ahead").display().to_string();
        let clock = self.clock.as_ref().map(|clock| clock.display().to_string());
        let preload = clock.as_ref().map(|clock| [("LD_PRELOAD", clock.as_str()), ("CLOCK_AHEAD", &ahead)]);
        self.hosts[side].up_under(&SMALL, preload.as_ref().map_or(&[], |preload| preload));
    }

    fn set_clock(&self, side: usize, ahead: i64) {
        fs::write(self.hosts[side].dir.path().join("ahead"), ahead.to_string()).unwrap();
    }

    /// Until all is up.
    fn wait(&self) {
        wait("both paths", || self.hosts.iter().all(|host| paths_up(host) == 2));
    }

    fn happen(&mut self, incident: Incident) {
        match incident {
            Incident::Address { side, cable, before } => {
                let old = self.last[side][cable];
                let new = if old < 100 { old + 100 } else { old - 100 };
                self.last[side][cable] = new;
                let step =
                    |what: &str, last| format!("ip address {what} {}.{last}/24 dev eth{cable}", NETS[cable]);
                let mut steps = [step("del", old), step("add", new)];
                if before {
                    steps.reverse();
                }
                self.hosts[side].ns.run(|| shell(&steps.join("; "))).unwrap();
            }
            Incident::Restart { side, killed } => {
                self.hosts[side].end(if killed { "-KILL" } else { "-TERM" });
                if killed {
                    self.set_clock(side, -1_000_000_000);
                }
                self.up(side);
            }
            Incident::Dark(secs) => {
                let all = |state: &str| format!("ip link set eth0 {state}; ip link set eth1 {state}");
                self.hosts[1].ns.run(|| shell(&all("down"))).unwrap();
                thread::sleep(Duration::from_secs(secs));
                self.hosts[1].ns.run(|| shell(&all("up"))).unwrap();
            }
            Incident::Clock { side, ahead } => self.set_clock(side, ahead),
            Incident::Reload { side } => {
                let done = self.hosts[side].ask(&["reload"]);
                assert!(done.status.success(), "{done:?}");
            }
            Incident::Full { side } => full(&self.hosts[side]),
        }
    }
}

/// What was kept stays as it was while the disk is full, and is replaced once there is room.
fn full(host: &Host) {
    let small = seen_by(host, "small");
    let kept = || fs::read_to_string(small.join("quota.json")).unwrap_or_default();
    let names = || fs::read_dir(&small).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let log = || String::from_utf8(host.ask(&["log", "-n", "400"]).stdout).unwrap();
    let says = |what: &str| {
        log().lines().rfind(|line| line.contains("quota.json")).is_some_and(|last| last.contains(what))
    };
    let there = names().len();
    // What the daemon writes meanwhile may leave room for once more.
    let before = (0..3).find_map(|_| {
        fill(&small);
        let before = kept();
        use_up_quota(host);
        says(": No space left on device").then_some(before)
    });
    let before = before.unwrap_or_else(|| panic!("no warning: {}", log()));
    assert_eq!((kept(), names().len()), (before.clone(), there + 1), "{:?}", names());
    fs::remove_file(small.join("filler")).unwrap();
    use_up_quota(host);
    wait("what is kept again", || {
        let is_whole = serde_json::from_str::<serde_json::Value>(&kept()).is_ok();
        kept() != before && is_whole && says(" is written again")
    });
}

/// Has the daemon write what interfaces carried, as it does when a quota is used up; then there is no quota any more.
fn use_up_quota(host: &Host) {
    let cables = || {
        let said = host.ask(&["paths", "--json"]).stdout;
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        let cables = said["interfaces"].as_array().unwrap().iter();
        cables.filter(|one| one["name"].as_str().unwrap().starts_with("eth")).cloned().collect::<Vec<_>>()
    };
    let set = |quotas: &str| {
        host.edit(|text| {
            let line =
                |line: &str| if line.starts_with("quota = ") { quotas.to_owned() } else { line.to_owned() };
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        });
        let done = host.ask(&["reload"]);
        assert!(done.status.success(), "{done:?}");
    };
    // They are looked at every 2 s. Either cable may have all the data.
    let most = |cable: &serde_json::Value| {
        let used = cable["quota"]["used"].as_u64().unwrap();
        format!("{} = \"{} kB\"", cable["name"].as_str().unwrap(), used / 1000 + 12_000)
    };
    let most: Vec<String> = cables().iter().map(most).collect();
    set(&format!("quota = {{ {} }}", most.join(", ")));
    wait("a quota that is used up", || cables().iter().any(|cable| cable["used"] == "backup"));
    set(PLENTY);
}

/// The library that sets a program's clock, where it can be compiled.
fn clock(host: &Host) -> Option<PathBuf> {
    let (source, library) = (host.dir.path().join("clock.c"), host.dir.path().join("clock.so"));
    fs::write(&source, include_str!("clock.c")).unwrap();
    let compiled =
        || Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    (installed(&["cc"]) && compiled().success()).then_some(library)
}

fn paths_up(host: &Host) -> usize {
    let said = host.status(&["--json"]).stdout;
    let status: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
    let paths = status["peers"][0]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().filter(|path| path["up"] == true && path["answers"] == true).count()
}

/// A connection that a program of the host `from` opens to one of the other.
fn connected(bed: &Bed, from: usize) -> [TcpStream; 2] {
    let at = format!("{}:80", ADDRESSES[1 - from]);
    let listener = bed.hosts[1 - from].ns.run(|| TcpListener::bind(&at).unwrap()).unwrap();
    let client = bed.hosts[from].ns.run(|| TcpStream::connect(&at).unwrap()).unwrap();
    let ends = [client, listener.accept().unwrap().0];
    for end in &ends {
        end.set_read_timeout(Some(STUCK)).unwrap();
        end.set_write_timeout(Some(STUCK)).unwrap();
    }
    ends
}

/// Bytes that leave each end and come at the other, until told to stop.
struct Flow {
    stop: Arc<AtomicBool>,
    ends: Vec<JoinHandle<io::Result<u64>>>,
}

impl Flow {
    fn begin(ends: [TcpStream; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for end in ends {
            let (mut out, stop) = (end.try_clone().unwrap(), stop.clone());
            threads.push(thread::spawn(move || {
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    out.write_all(&block(sent))?;
                    sent += BLOCK as u64;
                    thread::sleep(Duration::from_millis(2));
                }
                out.shutdown(Shutdown::Write).map(|()| sent)
            }));
            threads.push(thread::spawn(move || take(end)));
        }
        Self { stop, ends: threads }
    }

    /// How it ended: bytes sent and taken at either end, or errors.
    fn end(self) -> Vec<io::Result<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.ends.into_iter().map(|end| end.join().unwrap()).collect()
    }

    /// The same once both ends have seen that it is over, without being told.
    fn ended(self) -> Vec<io::Result<u64>> {
        self.ends.into_iter().map(|end| end.join().unwrap()).collect()
    }
}

const BLOCK: usize = 1 << 13;

/// What leaves after `sent` bytes.
fn block(sent: u64) -> Vec<u8> {
    sent.to_be_bytes().repeat(BLOCK / 8)
}

/// Takes what comes until the end; each block is the one that should come.
fn take(mut end: TcpStream) -> io::Result<u64> {
    let (mut got, mut next) = (0, vec![0; BLOCK]);
    while end.peek(&mut [0])? > 0 {
        end.read_exact(&mut next)?;
        assert!(next == block(got), "other bytes after {got}");
        got += BLOCK as u64;
    }
    Ok(got)
}

/// Both ends heard that it is over; one of their threads had an error, which is reported once.
fn assert_reset(ended: &[io::Result<u64>], context: &str) {
    let stuck = |end: &io::Result<u64>| {
        let kind = end.as_ref().err().map(io::Error::kind);
        matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    };
    let heard = ended.chunks(2).all(|threads| threads.iter().any(Result::is_err));
    assert!(heard && !ended.iter().any(stuck), "{context}: {ended:?}");
}

/// All arrived.
fn assert_whole(ended: Vec<io::Result<u64>>, context: &str) {
    let ended: Result<Vec<u64>, _> = ended.into_iter().collect();
    let ended = ended.unwrap_or_else(|error| panic!("{context}: {error:?}"));
    assert!(ended[0] > 0 && ended[0] == ended[3] && ended[1] == ended[2], "{context}: {ended:?}");
}

/// Open files of a daemon, and the memory that it has, KiB.
fn weigh(host: &Host) -> (usize, u64) {
    let pid = host.daemon.as_ref().unwrap().id();
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (files, line.trim().trim_end_matches(" kB").parse().unwrap())
}

/// What a daemon held after each incident since it was started.
#[derive(Default)]
struct Weights(Vec<(usize, u64)>);

impl Weights {
    /// Nothing grows in the second half of a long run.
    fn check(&self, context: &str) {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        let most = |part: &[(usize, u64)]| (part.iter().map(|w| w.0).max(), part.iter().map(|w| w.1).max());
        let ((files, memory), (then, later)) = (most(first), most(second));
        let grew =
            then > files.map(|files| files + 2) || later > memory.map(|memory| memory * 11 / 10 + 2048);
        assert!(self.0.len() < LONG || !grew, "{context}: files and KiB of memory: {:?}", self.0);
    }
}

/// The number of incidents from which open files and memory are compared. Before, both peak whenever the cables are out for longer than ever.
const LONG: usize = 60;

fn rounds() -> u64 {
    std::env::var("POLYPATH_INCIDENTS").map_or(2 * KINDS, |rounds| rounds.parse().unwrap())
}

#[test]
fn incidents_end_only_connections_that_cannot_be_kept_and_leave_nothing() {
    let Some(mut bed) = Bed::new() else { return };
    let (mut weights, mut longest) = ([Weights::default(), Weights::default()], Duration::ZERO);
    for n in 0..rounds() {
        let (incident, from) = (Incident::number(n, rounds()), (n / KINDS) as usize % 2);
        let context = format!("{n}: {incident:?}, opened by {from}");
        let flow = Flow::begin(connected(&bed, from));
        thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        bed.happen(incident);
        if let Incident::Restart { side, .. } = incident {
            assert_reset(&flow.ended(), &context);
            longest = longest.max(began.elapsed());
            weights[side].0.clear();
        } else {
            bed.wait();
            assert_whole(flow.end(), &context);
        }
        bed.wait();
        let again = Flow::begin(connected(&bed, 1 - from));
        thread::sleep(Duration::from_millis(100));
        assert_whole(again.end(), &context);
        wait("an end of all connections", || bed.hosts.iter().all(|host| open(host) == 0));
        for (weights, host) in weights.iter_mut().zip(&bed.hosts) {
            weights.0.push(weigh(host));
            weights.check(&context);
        }
    }
    let held = weights.each_ref().map(|weights| (weights.0.first(), weights.0.last()));
    println!("{} incidents: resets within {longest:?}; files and KiB held: {held:?}", rounds());
}

/// Connections that a daemon has open.
fn open(host: &Host) -> u64 {
    let said = host.status(&["--json"]).stdout;
    let status: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
    status["lane"]["open"].as_u64().unwrap_or(1)
}
