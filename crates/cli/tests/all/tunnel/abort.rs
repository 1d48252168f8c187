//! Daemons that end otherwise than they should: a defect aborts one, and whoever supervises it starts it again; or a part of it is gone.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polypath_testing::{excuse, installed};

use super::host::{Host, hosts, ip, lists, meet, shell, wait};
use super::kill_switch::{asks, rules, through_the_server};

/// Starts it again a second after each failure, as packaging/polypath.service has it done, and takes it along.
const SUPERVISED: [&str; 4] = [
    "sh",
    "-c",
    "until setpriv --pdeathsig KILL \"$@\"; do echo \"ended with status $?\" >> ends; sleep 1; done",
    "sh",
];
/// Long after the reset that is expected.
const STUCK: Duration = Duration::from_secs(20);

/// The supervised daemon's process, if there is one now.
fn supervised(host: &Host) -> Option<u32> {
    let shell = host.daemon.as_ref().unwrap().id();
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).find(|pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "polypath")
    })
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_daemon_that_aborts_is_started_again_and_keeps_what_it_promised() {
    let Some([mut router, mut server]) = through_the_server(true) else { return };
    if !installed(&["setpriv"]) {
        return;
    }
    server.up();
    router.up_under(&SUPERVISED, &[]);
    meet(&router, &server);
    assert_eq!(asks(&router, &server).as_deref(), Ok("10.99.0.2"));
    let routes = |host: &Host| ip(host, &["-4", "route", "show", "table", "all", "dev", "polypath0"]);
    let before = (rules(&router), routes(&router));
    let listener = server.ns.run(|| TcpListener::bind("10.99.0.1:80").unwrap()).unwrap();
    let mut reader = router.ns.run(|| TcpStream::connect("10.99.0.1:80").unwrap()).unwrap();
    let mut other = listener.accept().unwrap().0;
    [&reader, &other].iter().for_each(|end| end.set_read_timeout(Some(STUCK)).unwrap());
    other.write_all(b"x").unwrap();
    reader.read_exact(&mut [0]).unwrap();

    let first = supervised(&router).unwrap();
    signal("-ABRT", first);
    let aborted = Instant::now();
    wait("the end of the device", || !lists(&router, "link", "polypath0"));
    let refused = asks(&router, &server).unwrap_err();
    assert!(matches!(refused, ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable), "{refused}");
    assert_eq!(rules(&router), before.0, "the kill switch stands meanwhile");
    wait("another daemon", || supervised(&router).is_some_and(|pid| pid != first));
    meet(&router, &server);
    println!("associated again {:?} after the abort", aborted.elapsed());
    assert_eq!(asks(&router, &server).as_deref(), Ok("10.99.0.2"));
    assert_eq!((rules(&router), routes(&router)), before);
    for end in [&mut reader, &mut other] {
        assert_eq!(end.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let ends = || fs::read_to_string(router.dir.path().join("ends")).unwrap();
    assert_eq!(ends(), "ended with status 134\n");

    assert!(router.ask(&["down"]).status.success());
    assert!(router.daemon.take().unwrap().wait().unwrap().success(), "it is not started again: {}", ends());
    assert!(!rules(&router).contains("unreachable"));
}

/// Whether a program that may leave a core does, when it aborts here.
fn dumps(host: &Host) -> bool {
    let mut aborts = Command::new("sh");
    aborts.args(["-c", "ulimit -c unlimited; kill -ABRT $$"]).current_dir(host.dir.path());
    host.run(aborts).status.core_dumped()
}

#[test]
fn an_abort_leaves_no_core_with_the_key_in_it() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    if !dumps(&router) {
        return excuse("an aborted daemon leaves no core: no program does here");
    }
    router.up_under(&["sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"], &[]);
    wait("an answer", || router.status(&[]).status.success());
    let mut daemon = router.daemon.take().unwrap();
    signal("-ABRT", daemon.id());
    let end = daemon.wait().unwrap();
    assert_eq!((end.signal(), end.core_dumped()), (Some(6), false));
}

/// The state of each thread of a process that reads and writes a queue of the device (proc(5), status).
pub fn queues(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let all = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    all.filter(|status| status.starts_with("Name:\tqueue ")).collect()
}

#[test]
fn a_daemon_whose_device_is_deleted_ends_with_an_error_and_leaves_nothing() {
    for number in [1, 4] {
        let Some([mut router, _server]) = hosts() else { return };
        router.init(&[]);
        router.edit(|text| text.replace("queues = 1", &format!("queues = {number}")));
        let socket = router.own_socket();
        let mut up = router.command(&["up", "polypath.toml"]);
        router.daemon = Some(router.ns.run(|| up.stderr(Stdio::piped()).spawn().unwrap()).unwrap());
        wait("an answer", || router.status(&[]).status.success());
        let threads = queues(router.daemon.as_ref().unwrap().id());
        assert_eq!(threads.len(), if number > 1 { number } else { 0 });
        let rights = ["CapEff", "CapPrm"].map(|set| format!("{set}:\t0000000000000000\n"));
        assert!(threads.iter().all(|has| rights.iter().all(|none| has.contains(none))), "{threads:?}");
        router.ns.run(|| shell("ip link del polypath0")).unwrap();
        let ended = router.daemon.take().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            ended.status.code() == Some(3) && said.contains("cannot go on: the device ended: "),
            "{said}"
        );
        assert!(!Path::new(&socket).exists());
    }
}
