//! A disk that is full, and files that are refused one by one.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::bed::{Bed, end};

/// A receiver whose disk has 2 MiB.
fn on_a_small_disk(bed: &Bed, allow: &str) -> Child {
    let dir = bed.path("in");
    std::fs::create_dir_all(&dir).unwrap();
    let dir = dir.display();
    let script = format!(
        "mount -t tmpfs -o size=2m small {dir} && exec {} receive --dir {dir} --allow {allow}",
        env!("CARGO_BIN_EXE_polypath"),
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("XDG_CONFIG_HOME", bed.path("config1"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let child = bed.hosts[1].run(|| command.spawn().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    child
}

#[test]
fn a_full_disk_is_told_with_the_name_of_the_file_and_the_others_arrive() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let receiver = on_a_small_disk(&bed, &hits[0]);
    let (big, small, last) =
        (bed.file("big", 5_000_000), bed.file("small", 50_000), bed.file("last", 500_000));
    let to = format!("{}@192.0.2.2", hits[1]);
    let mut args = vec!["send"];
    args.extend([&big, &small, &last].map(|path| path.to_str().unwrap()));
    args.push(&to);
    let sent = end(bed.spawn(0, &args), 30);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("error: not everything is stored: big: the receiver's disk is full"), "{said}");
    let stored = String::from_utf8_lossy(&sent.stdout);
    assert!(stored.contains("small: 50000 bytes") && stored.contains("last: 500000 bytes"), "{stored}");
    assert!(!stored.contains("big:"), "{stored}");
    super::bed::tool(&bed.hosts[1], &format!("kill -INT {}", receiver.id()));
    let told = end(receiver, 5);
    assert!(String::from_utf8_lossy(&told.stderr).contains("big: No space left on device"), "{told:?}");
}

#[test]
fn a_disk_that_fills_up_while_a_file_comes_is_told_too() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let receiver = on_a_small_disk(&bed, &hits[0]);
    // Of standard input nobody knows the length.
    let input = std::fs::File::open(bed.file("endless", 20_000_000)).unwrap();
    let mut command = bed.polypath(0, &["send", "-", &format!("{}@192.0.2.2", hits[1])]);
    command.stdin(input);
    let sender = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    let sent = end(sender, 30);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("stdin: the receiver's disk is full"), "{said}");
    super::bed::tool(&bed.hosts[1], &format!("kill -INT {}", receiver.id()));
    end(receiver, 5);
}

#[test]
fn a_hidden_name_is_refused_and_the_rest_arrives() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let project = bed.path("project");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join(".profile"), "evil").unwrap();
    std::fs::write(project.join("main.c"), "int main;").unwrap();
    let mut receiver = bed.receive(&hits[0]);
    let sent = end(bed.send(&project, &hits[1]), 30);
    assert_eq!(sent.status.code(), Some(1), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("project/.profile") && said.contains("receive --hidden"), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(report["failed"][0]["verdict"], "name", "{report:#}");
    assert!(bed.path("in/project/main.c").exists() && !bed.path("in/project/.profile").exists());
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}
