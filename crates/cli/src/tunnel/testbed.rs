//! `polypath testbed`: two hosts in network namespaces with names, and emulated links between them, to try things.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polypath_daemon::control::{Answer, Askers, Command as Asked, ControlError, ControlSocket, ask};
use polypath_testbed::address;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;

use crate::args::TestbedCommand;
use crate::failure::{Failure, printed};
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::scenarios::{ALL, Scenario};
use crate::table::plain;

/// The namespaces.
const HOSTS: [&str; 2] = ["polypath-a", "polypath-b"];
/// The one between them, if the first host's links lead to one and the same link.
const ROUTER: &str = "polypath-r";
/// Configurations and keys of both daemons, and where it is asked to end.
const DIR: &str = "/run/polypath-testbed";

/// Does what the command line says.
pub fn run(command: &TestbedCommand) -> Result<(), Failure> {
    match command {
        TestbedCommand::List => list(),
        TestbedCommand::Up { scenario } => up(scenario),
        TestbedCommand::Down => down(),
    }
}

fn list() -> Result<(), Failure> {
    let mut table = plain(vec!["scenario", "links, rate and delay one way", "what it shows"], 3);
    for scenario in ALL {
        table.add_row(vec![scenario.name.to_owned(), scenario.words(), scenario.about.to_owned()]);
    }
    printed(writeln!(io::stdout(), "{}", table.trim_fmt()))
}

fn up(scenario: &Scenario) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let (mut control, bed) =
        interrupt.block_on(async { Ok::<_, Failure>((control()?, Bed::build(scenario)?)) })?;
    printed(io::stdout().write_all(commands(scenario).as_bytes()))?;
    let asked = async {
        let does = async |asked| if asked == Asked::Down { Answer::Ending } else { Answer::Unknown };
        control.serve(does).await;
        Ok(())
    };
    let ended = interrupt.block_on(interrupt.or(asked));
    drop(bed);
    match ended {
        Err(failure) if failure.status.is_interruption() => Ok(()),
        other => other,
    }
}

fn socket() -> PathBuf {
    Path::new(DIR).join("control.sock")
}

/// Where `polypath testbed down` asks; only one testbed at a time has it.
fn control() -> Result<ControlSocket, Failure> {
    let failed = |e| Failure::system(format!("cannot make {DIR}"), e).help("it needs root");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(DIR).map_err(failed)?;
    ControlSocket::bind(&socket(), Askers::default()).map_err(|error| match error {
        ControlError::Taken(_) => {
            Failure::usage("a testbed is up already").help("`polypath testbed down` takes it down")
        }
        other => Failure::system("cannot start", other),
    })
}

fn down() -> Result<(), Failure> {
    match ask(&socket(), &Asked::Down) {
        Ok(_) => wait_for_the_end(),
        Err(ControlError::Nobody(_)) if are_there() => {}
        Err(ControlError::Nobody(_)) => return Err(Failure::usage("no testbed is up")),
        Err(other) => return Err(Failure::refused(other).help("it needs root")),
    }
    drop(Names);
    Ok(())
}

fn wait_for_the_end() {
    for _ in 0..50 {
        if !Path::new(DIR).exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Two hosts and their links; dropping it takes them down.
struct Bed {
    _links: Vec<EmulatedLink>,
    _names: Names,
}

/// The names of the namespaces and the files; dropping it removes them.
struct Names;

impl Drop for Names {
    fn drop(&mut self) {
        remove_hosts();
        let _ = fs::remove_dir_all(DIR);
    }
}

fn remove_hosts() {
    let hosts = [HOSTS[0], HOSTS[1], ROUTER];
    end_programs(&hosts);
    for host in hosts {
        let _ = ip(&["netns", "del", host]);
    }
}

/// Whether there are hosts, such as those that a killed testbed left.
fn are_there() -> bool {
    Path::new("/run/netns").join(HOSTS[0]).exists()
}

/// Ends the programs on `hosts`, such as the daemons that were tried there: they would go on in namespaces without a name.
fn end_programs(hosts: &[&str]) {
    let programs = || hosts.iter().flat_map(|host| programs(host)).collect::<Vec<_>>();
    for pid in programs() {
        let _ = kill(pid, Signal::SIGTERM);
    }
    let mut waits = (0..20).map(|_| std::thread::sleep(std::time::Duration::from_millis(100)));
    while !programs().is_empty() && waits.next().is_some() {}
}

fn programs(host: &str) -> Vec<Pid> {
    let listed = ip(&["netns", "pids", host]).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

impl Bed {
    fn build(scenario: &Scenario) -> Result<Self, Failure> {
        if are_there() {
            remove_hosts();
        }
        let names = Names;
        let hosts = [host(HOSTS[0])?, host(HOSTS[1])?];
        hosts::configure(Path::new(DIR), scenario.hops().len())?;
        let links = match scenario.shared() {
            Some(lines) => behind_a_router(&hosts[1], lines, scenario)?,
            None => side_by_side(&hosts, scenario)?,
        };
        Ok(Self { _links: links, _names: names })
    }
}

/// The links between both hosts.
fn side_by_side(hosts: &[Netns; 2], scenario: &Scenario) -> Result<Vec<EmulatedLink>, Failure> {
    let links = hosts::connect(hosts, scenario.hops())?;
    // So that hosts send what a link with a smaller MTU drops silently.
    for (path, host) in (0..links.len()).flat_map(|path| HOSTS.map(|host| (path, host))) {
        set(&["-n", host, "link", "set", &format!("path{path}"), "mtu", "1500"])?;
    }
    Ok(links)
}

/// One link to the second host, from a router to which the first host has `lines` links.
fn behind_a_router(second: &Netns, lines: usize, scenario: &Scenario) -> Result<Vec<EmulatedLink>, Failure> {
    let links = hosts::connect(&[router(lines)?, second.clone()], scenario.hops())?;
    set(&["-n", HOSTS[1], "route", "add", "default", "via", &address(0, 0).to_string()])?;
    Ok(links)
}

/// A router with `lines` links to the first host.
fn router(lines: usize) -> Result<Netns, Failure> {
    let router = host(ROUTER)?;
    let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1");
    let forwards = router.run(forward).map_err(io::Error::other).flatten();
    forwards.map_err(|e| Failure::system("the router cannot forward", e))?;
    for line in 0..lines {
        let (near, far) = (format!("path{line}"), format!("line{line}"));
        let [at, via] = [2, 1].map(|end| format!("10.78.{line}.{end}"));
        set(&["-n", HOSTS[0], "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", ROUTER])?;
        for (host, device, address) in [(HOSTS[0], &near, &at), (ROUTER, &far, &via)] {
            set(&["-n", host, "addr", "add", &format!("{address}/24"), "dev", device])?;
            set(&["-n", host, "link", "set", device, "up"])?;
        }
        let metric = (line + 1).to_string();
        set(&["-n", HOSTS[0], "route", "add", "default", "via", &via, "dev", &near, "metric", &metric])?;
    }
    Ok(router)
}

/// Runs ip(8) as part of the set-up.
fn set(words: &[&str]) -> Result<(), Failure> {
    let done = ip(words).map_err(|e| Failure::system(format!("`ip {}` failed", words.join(" ")), e));
    done.map(drop)
}

/// A namespace with a name, its loopback up.
fn host(name: &str) -> Result<Netns, Failure> {
    let failed = |e: &dyn std::fmt::Display| {
        Failure::system(format!("namespace {name}"), e).help("it needs root and ip(8)")
    };
    ip(&["netns", "add", name]).map_err(|e| failed(&e))?;
    ip(&["-n", name, "link", "set", "lo", "up"]).map_err(|e| failed(&e))?;
    let host = Netns::open(name).map_err(|e| failed(&e))?;
    hosts::prepare(&host)?;
    Ok(host)
}

/// Runs ip(8), and returns what it prints.
fn ip(words: &[&str]) -> io::Result<String> {
    let done = Command::new("ip").args(words).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output()?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// What can be tried.
fn commands(scenario: &Scenario) -> String {
    let [a, b] = HOSTS.map(|host| format!("ip netns exec {host}"));
    format!(
        "{}: {}
up until Ctrl-C or `polypath testbed down`; in other terminals, as root:

{b} polypath up {DIR}/b.toml
{a} polypath up {DIR}/a.toml
{b} iperf3 -s
{a} iperf3 -c 10.99.0.2                     one TCP connection over all links, {} Mbit/s together
{a} iperf3 -c 10.77.0.2                     the same over the first link alone
{a} ping 10.99.0.2
{a} polypath status --watch --socket {DIR}/a.sock
",
        scenario.name,
        scenario.words(),
        scenario.sum()
    )
}
