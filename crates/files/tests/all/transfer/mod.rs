//! Files over real connections on loopback.
#![allow(clippy::unwrap_used)]

mod bed;
mod hostile;
mod slow;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bed::{ALICE, BOB, Bed, mode, noise, plan};
use polypath_files::{Plan, Step};

#[tokio::test]
async fn files_small_and_large_arrive_whole() {
    let bed = Bed::new();
    let sizes = [0, 1, 65_536, 65_537, 1_000_000];
    let files = sizes.map(|size| bed.file(&format!("f{size}"), &noise(size)));
    let sources: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
    let ended = bed.send(&sources).await.ok();
    assert_eq!(ended.stored().len(), sizes.len());
    let found = bed.found();
    for size in sizes {
        assert!(found[&format!("f{size}")] == Some(noise(size)), "{size}");
    }
}

#[tokio::test]
async fn a_directory_arrives_with_all_that_is_in_it() {
    let bed = Bed::new();
    for n in 0..100 {
        bed.file(&format!("album/2024/{n}.jpg"), &noise(n * 2000));
    }
    let root = bed.file("album/readme", b"hello").parent().unwrap().to_owned();
    std::fs::create_dir(root.join("empty")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
    let plan = plan(&[&root]);
    assert_eq!(plan.skipped.len(), 1, "{plan:?}");
    let ended = bed.send_plan(&plan, ALICE).await.ok();
    assert_eq!(ended.failed(), []);
    let found = bed.found();
    assert_eq!(found.len(), 104, "100 photos, a text and three directories");
    for n in 0..100 {
        assert!(found[&format!("album/2024/{n}.jpg")] == Some(noise(n * 2000)), "{n}");
    }
    assert!(found["album/empty"].is_none() && found["album/readme"] == Some(b"hello".to_vec()));
}

#[tokio::test]
async fn a_name_that_no_receiver_takes_fails_alone() {
    let bed = Bed::new();
    let root = bed.file("album/readme", b"hello").parent().unwrap().to_owned();
    bed.file("album/in\u{200e}visible", b"x");
    let plan = plan(&[&root]);
    assert_eq!(plan.skipped, []);
    let ended = bed.send_plan(&plan, ALICE).await.ok();
    let why = "its name has invisible characters".to_owned();
    assert_eq!(ended.failed(), [("album/in\u{fffd}visible".to_owned(), why)]);
    assert_eq!(bed.found()["album/readme"], Some(b"hello".to_vec()));
}

#[tokio::test]
async fn mode_and_time_are_carried_but_no_more_than_the_umask_admits() {
    let bed = Bed::new();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for (name, bits, size) in [("script", 0o755, 10), ("large", 0o640, 100_000), ("open", 0o6777, 10)] {
        let file = bed.file(name, &noise(size));
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
        bed.send(&[&file]).await.ok();
    }
    let made = bed.inbox().join("made");
    std::fs::write(&made, "").unwrap();
    let umask = 0o666 & !mode(&made);
    for (name, bits) in [("script", 0o755), ("large", 0o640), ("open", 0o777)] {
        let path = bed.inbox().join(name);
        assert_eq!(mode(&path) | umask, bits | umask, "{name}");
        assert_eq!(mode(&path) & umask, 0, "{name}");
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), time, "{name}");
    }
}

/// Cuts a transfer of a large file in the middle; the bytes that were kept.
pub async fn cut(bed: &Bed, file: &Path) -> u64 {
    let (ours, theirs) = bed.connect().await;
    let plan = plan(&[file]);
    let mut seen = 0;
    let count = |step| {
        if let Step::Bytes { bytes, .. } = step {
            seen += bytes;
            if seen > 1_000_000 {
                ours.abort();
            }
        }
    };
    let (sent, received) = tokio::join!(
        polypath_files::send(&ours, &plan.entries, |_| {}),
        polypath_files::receive(&theirs, ALICE, &bed.store, count),
    );
    assert!(sent.unwrap_err().is_interruption() && received.unwrap_err().is_interruption());
    let parts = bed.found();
    let part = parts.iter().find(|(name, _)| name.ends_with(".part"));
    part.unwrap().1.as_ref().unwrap().len() as u64
}

#[tokio::test]
async fn an_interrupted_file_goes_on_where_it_stopped_read_only_ones_too() {
    let bed = Bed::new();
    let file = bed.file("big", &noise(20_000_000));
    std::fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let kept = cut(&bed, &file).await;
    assert!((1..20_000_000).contains(&kept), "{kept}");
    let ended = bed.send(&[&file]).await.ok();
    let at = ended.began()[0];
    assert!(at >= kept, "{at} of {kept}");
    assert_eq!(bed.names(), ["big"]);
    assert!(bed.found()["big"] == Some(noise(20_000_000)));
    assert_eq!(mode(&bed.inbox().join("big")), 0o444);
}

#[tokio::test]
async fn an_unfinished_file_is_for_its_sender_alone() {
    let bed = Bed::new();
    let file = bed.file("big", &noise(20_000_000));
    cut(&bed, &file).await;
    let ended = bed.send_plan(&plan(&[&file]), BOB).await.ok();
    assert_eq!(ended.began(), [0]);
}

#[tokio::test]
async fn an_unfinished_file_that_is_not_the_beginning_is_sent_anew() {
    let bed = Bed::new();
    let file = bed.file("big", &noise(20_000_000));
    cut(&bed, &file).await;
    let mut other = noise(20_000_000);
    other[0] ^= 1;
    std::fs::write(&file, &other).unwrap();
    assert_eq!(bed.send(&[&file]).await.ok().began(), [0]);
    assert!(bed.found()["big"] == Some(other));
}

#[tokio::test]
async fn a_file_that_the_sender_has_its_verdict_of_is_not_sent_twice() {
    let mut bed = Bed::new();
    let file = bed.file("big", &noise(1_000_000));
    bed.send(&[&file]).await.ok();
    assert_eq!(bed.send(&[&file]).await.ok().began(), [1_000_000], "the receiver remembers");
    std::fs::write(bed.inbox().join("big"), noise(999_999)).unwrap();
    assert_eq!(bed.send(&[&file]).await.ok().began(), [0], "it was changed since");
    assert_eq!(bed.names(), ["big", "big.1"]);
    bed.restart(false);
    let ended = bed.send(&[&file]).await.ok();
    assert_eq!(ended.began(), [0], "what others may have put there is not told");
    assert_eq!(bed.names(), ["big", "big.1"], "but the same is not kept twice");
    let place = bed.inbox().join("big.1");
    assert_eq!(ended.stored(), [("big".to_owned(), place)]);
}

#[tokio::test]
async fn what_is_stored_is_not_sent_again_after_a_restart_unless_it_was_changed() {
    let mut bed = Bed::new();
    bed.remember();
    let files = ["a/x", "b/x", "y"].map(|name| bed.file(name, &noise(100_000 + name.len() as u64)));
    let all: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
    bed.send(&all[1..]).await.ok();
    bed.remember();
    assert_eq!(bed.send(&all[1..]).await.ok().began(), [100_003, 100_001]);
    assert_eq!(bed.send_plan(&plan(&all[1..]), BOB).await.ok().began(), [0, 0], "others learn nothing of it");
    std::fs::write(bed.inbox().join("y"), noise(100_001)).unwrap();
    bed.remember();
    assert_eq!(bed.send(&all[1..]).await.ok().began(), [100_003, 0]);
    let ledger = bed.inbox().parent().unwrap().join("config/received");
    assert_eq!(mode(&ledger), 0o600);
    std::fs::write(ledger, "damaged").unwrap();
    bed.remember();
    assert_eq!(bed.send(&all[1..]).await.ok().began(), [0, 0]);
}

#[tokio::test]
async fn another_file_of_that_name_stays() {
    let bed = Bed::new();
    let mut files = Vec::new();
    for n in 0..3 {
        files.push(bed.file(&format!("{n}/x"), &noise(n + 1)));
    }
    let long = "ü".repeat(127) + "b";
    let same = [bed.file(&format!("a/{long}"), b"1"), bed.file(&format!("b/{long}"), b"2")];
    files.extend(same);
    let sources: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
    bed.send(&sources).await.ok();
    let names = bed.names();
    assert_eq!(names[..3], ["x", "x.1", "x.2"]);
    assert!(names.contains(&long) && names.len() == 5, "{names:?}");
    std::fs::create_dir(bed.inbox().join("y")).unwrap();
    bed.send(&[&bed.file("y", b"a file where a directory is")]).await.ok();
    assert!(bed.names().contains(&"y.1".to_owned()));
}

#[tokio::test]
async fn two_senders_of_one_name_and_one_sender_twice_get_files_of_their_own() {
    let bed = Bed::new();
    let contents: Vec<Vec<u8>> = (0..4).map(|n| noise(300_000 + n)).collect();
    let plans: Vec<Plan> =
        contents.iter().enumerate().map(|(n, bytes)| plan(&[&bed.file(&format!("{n}/x"), bytes)])).collect();
    let (a, b, c, d) = tokio::join!(
        bed.send_plan(&plans[0], ALICE),
        bed.send_plan(&plans[1], ALICE),
        bed.send_plan(&plans[2], BOB),
        bed.send_plan(&plans[3], BOB),
    );
    for ended in [a, b, c, d] {
        assert_eq!(ended.ok().failed(), []);
    }
    let mut found: Vec<_> = bed.found().into_values().flatten().collect();
    found.sort_by_key(Vec::len);
    assert!(found == contents, "{:?}", bed.names());
}

#[tokio::test]
async fn who_fetches_gets_what_is_offered_and_roles_are_not_mixed_up() {
    let bed = Bed::new();
    let plan = plan(&[&bed.file("x", &noise(100_000)), &bed.file("y", b"small")]);
    let (ours, theirs) = bed.connect().await;
    let (mut served, mut got) = (Vec::new(), Vec::new());
    let (sent, fetched) = tokio::join!(
        polypath_files::serve(&theirs, &plan.entries, |step| served.push(step)),
        polypath_files::fetch(&ours, ALICE, &bed.store, |step| got.push(step)),
    );
    assert!(sent.is_ok() && fetched.is_ok(), "{sent:?} {fetched:?}");
    assert!(bed.found()["x"] == Some(noise(100_000)) && bed.found()["y"] == Some(b"small".to_vec()));

    let (ours, theirs) = bed.connect().await;
    let (sent, received) = tokio::join!(
        polypath_files::send(&ours, &plan.entries, |_| {}),
        polypath_files::serve(&theirs, &plan.entries, |_| {}),
    );
    assert_eq!(sent.unwrap_err().to_string(), "the peer does not take files: it offers some");
    assert!(received.is_err());
    let (ours, theirs) = bed.connect().await;
    let (fetched, received) = tokio::join!(
        polypath_files::fetch(&ours, ALICE, &bed.store, |_| {}),
        polypath_files::receive(&theirs, ALICE, &bed.store, |_| {}),
    );
    assert_eq!(fetched.unwrap_err().to_string(), "the peer offers no files: it takes some");
    assert!(received.is_err());
}

#[tokio::test]
async fn names_that_the_receiver_does_not_take_fail_alone() {
    let mut bed = Bed::new();
    bed.file("a/.hidden", &noise(10));
    bed.file("a/.large", &noise(1_000_000));
    let root = bed.file("a/z", b"last").parent().unwrap().to_owned();
    let ended = bed.send(&[&root]).await.ok();
    let failed = ended.failed();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|(_, why)| why.contains("begins with a dot")), "{failed:?}");
    assert_eq!(bed.names(), ["a", "a/z"]);
    bed.restart(true);
    assert_eq!(bed.send(&[&root]).await.ok().failed(), []);
    assert_eq!(bed.names(), ["a", "a/.hidden", "a/.large", "a/z"]);
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_sent_fails_alone() {
    let bed = Bed::new();
    let (file, other) = (bed.file("log", &noise(30_000_000)), bed.file("other", b"whole"));
    let (ours, theirs) = bed.connect().await;
    let plan = plan(&[&file, &other]);
    let mut told = Vec::new();
    let shrink = |step| {
        if matches!(&step, Step::Begin { index: 0, .. }) {
            std::fs::File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
        }
        told.push(step);
    };
    let (sent, received) = tokio::join!(
        polypath_files::send(&ours, &plan.entries, shrink),
        polypath_files::receive(&theirs, ALICE, &bed.store, |_| {}),
    );
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    let failed = bed::failures(&told);
    assert!(failed.len() == 1 && failed[0].1.contains("became shorter"), "{failed:?}");
    assert!(bed.found()["other"] == Some(b"whole".to_vec()) && !bed.inbox().join("log").exists());
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_sent_is_said_to() {
    let bed = Bed::new();
    let file = bed.file("log", &noise(1_000_000));
    let mut grown = false;
    let grow = |_: &_, step: &Step| {
        if matches!(step, Step::Begin { .. }) && !std::mem::replace(&mut grown, true) {
            use std::io::Write;
            std::fs::File::options().append(true).open(&file).unwrap().write_all(b"more").unwrap();
        }
    };
    let ended = bed.send_and(&plan(&[&file]), ALICE, grow).await.ok();
    assert!(
        ended.sender.contains(&Step::Grew { name: "log".into(), bytes: 1_000_000 }),
        "{:?}",
        ended.sender
    );
    assert!(bed.found()["log"] == Some(noise(1_000_000)));
}

#[tokio::test]
async fn a_file_that_is_written_to_while_it_is_sent_is_said_to_be() {
    let bed = Bed::new();
    let (file, other) = (bed.file("image", &noise(1_000_000)), bed.file("other", &noise(1_000_000)));
    let before = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::open(&file).unwrap().set_modified(before).unwrap();
    let mut written = false;
    let write = |_: &_, step: &Step| {
        if matches!(step, Step::Begin { .. }) && !std::mem::replace(&mut written, true) {
            use std::os::unix::fs::FileExt;
            std::fs::File::options().write(true).open(&file).unwrap().write_all_at(b"new", 999_000).unwrap();
        }
    };
    let ended = bed.send_and(&plan(&[&file, &other]), ALICE, write).await.ok();
    let changed = ended.sender.iter().filter(|step| matches!(step, Step::Changed { .. }));
    assert_eq!(changed.collect::<Vec<_>>(), [&Step::Changed { name: "image".into() }]);
}

#[tokio::test]
async fn files_whose_length_the_system_does_not_say_arrive_whole() {
    let bed = Bed::new();
    let files = ["/proc/self/limits", "/proc/cpuinfo"].map(Path::new);
    let ended = bed.send(&files).await.ok();
    assert_eq!(ended.failed(), []);
    assert_eq!(bed.found()["limits"], Some(std::fs::read(files[0]).unwrap()));
    assert!(bed.found()["cpuinfo"].as_ref().unwrap().len() > 100);
}

#[tokio::test]
async fn a_directory_gets_its_time_after_everything_in_it() {
    let bed = Bed::new();
    let root = bed.file("album/deep/x", &noise(100_000)).parent().unwrap().parent().unwrap().to_owned();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in [root.join("deep"), root.clone()] {
        std::fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
    bed.send(&[&root]).await.ok();
    for path in ["album", "album/deep"] {
        let meta = std::fs::metadata(bed.inbox().join(path)).unwrap();
        assert_eq!(meta.modified().unwrap(), time, "{path}");
    }
}

#[tokio::test]
async fn the_first_flight_holds_a_small_file_whole() {
    let bed = Bed::new();
    let plan = plan(&[&bed.file("small", &noise(1000))]);
    let (ours, theirs) = bed.connect().await;
    let sent = polypath_files::send(&ours, &plan.entries, |_| {});
    // The peer says nothing at all until it has read the file.
    let read = async {
        let mut all = Vec::new();
        while all.len() < 1000 {
            all.extend_from_slice(&theirs.read(1 << 20).await.unwrap().unwrap());
        }
        theirs.abort();
        all
    };
    let (_, all) = tokio::join!(sent, read);
    assert!(all.windows(1000).any(|window| window == noise(1000)));
}

#[test]
fn what_is_no_file_is_not_sent() {
    let bed = tempfile::TempDir::new().unwrap();
    let pipe = bed.path().join("pipe");
    make_pipe(&pipe);
    let said = Plan::default().add(&pipe).unwrap_err().to_string();
    assert!(said.contains("neither a file nor a directory"), "{said}");
    assert!(Plan::default().add(&bed.path().join("missing")).is_err());
    let mut plan = Plan::default();
    plan.add(bed.path()).unwrap();
    assert_eq!((plan.entries.len(), plan.skipped.len()), (1, 1), "the directory; not the pipe");
}

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
