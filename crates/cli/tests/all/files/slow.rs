//! Ends that take their time without being dead.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::bed::{Bed, end, tool};

#[test]
fn standard_input_that_pauses_is_no_stall() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let receiver = bed.receive(&hits[0]);
    let mut command = bed.polypath(0, &["send", "-", &format!("{}@192.0.2.2", hits[1]), "--wait", "3"]);
    command.stdin(Stdio::piped());
    let mut sender = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    let mut input = sender.stdin.take().unwrap();
    input.write_all(b"before ").unwrap();
    // Longer than the sender waits while nothing moves.
    std::thread::sleep(Duration::from_secs(6));
    input.write_all(b"and after").unwrap();
    drop(input);
    let (sent, received) = (end(sender, 20), end(receiver, 10));
    assert!(sent.status.success() && received.status.success(), "{sent:?} {received:?}");
    assert_eq!(std::fs::read(bed.path("in/stdin")).unwrap(), b"before and after");
}

#[test]
fn nobody_promises_to_resume_standard_input() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let receiver = bed.receive(&hits[0]);
    let mut command = bed.polypath(0, &["send", "-", &format!("{}@192.0.2.2", hits[1])]);
    command.stdin(Stdio::piped());
    let mut sender = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    let mut input = sender.stdin.take().unwrap();
    input.write_all(b"the beginning").unwrap();
    std::thread::sleep(Duration::from_secs(2));
    tool(&bed.hosts[0], &format!("kill -INT {}", sender.id()));
    let sent = end(sender, 10);
    tool(&bed.hosts[1], &format!("kill -INT {}", receiver.id()));
    let received = end(receiver, 10);
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("standard input is not resumed") && !said.contains("goes on"), "{said}");
    let told = String::from_utf8_lossy(&received.stderr);
    assert!(told.contains(": interrupted\n") && !told.contains("is kept"), "{told}");
    drop(input);
}
