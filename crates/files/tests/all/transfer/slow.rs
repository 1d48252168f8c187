//! Disks that take their time: an end that works says so, and nothing is sent or stored twice.

use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polypath_files::{Step, Work};

use super::bed::{ALICE, Bed, noise, plan};
use super::cut;

/// A failure instead of a test that never ends.
async fn ends<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it hangs")
}

/// What fsync(2) does on a disk that is busy until `done`.
fn slow(file: &File, done: &AtomicBool) -> io::Result<()> {
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
    file.sync_all()
}

#[tokio::test]
async fn a_receiver_whose_disk_is_slow_says_that_it_stores() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let mut bed = Bed::new();
    bed.synced_by(|file| slow(file, &DONE));
    let files = plan(&[&bed.file("big", &noise(300_000)), &bed.file("small", b"small")]);
    let mut said = 0;
    // The disk is done only after the sender has heard of it twice.
    let look = |_: &_, step: &Step| {
        said += u32::from(*step == Step::Working(Work::Storing));
        DONE.fetch_or(said >= 2, Ordering::Relaxed);
    };
    let ended = ends(bed.send_and(&files, ALICE, look)).await.ok();
    assert_eq!(ended.failed(), []);
    assert!(ended.receiver.contains(&Step::Working(Work::Storing)), "both sides show it");
    assert_eq!(bed.names(), ["big", "small"]);
}

#[tokio::test]
async fn a_file_that_an_earlier_transfer_still_stores_is_waited_for_and_not_sent_again() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let mut bed = Bed::new();
    bed.synced_by(|file| slow(file, &DONE));
    let files = plan(&[&bed.file("big", &noise(300_000))]);
    let first = bed.send_and(&files, ALICE, |stream, step| {
        if *step == Step::Working(Work::Storing) {
            stream.abort();
        }
    });
    let second = async {
        // The first has its lock by now: it stores.
        while bed.names().is_empty()
            || std::fs::metadata(bed.inbox().join(&bed.names()[0])).unwrap().len() < 300_000
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let look =
            |_: &_, step: &Step| _ = DONE.fetch_or(*step == Step::Working(Work::Waiting), Ordering::Relaxed);
        bed.send_and(&files, ALICE, look).await
    };
    let (first, second) = ends(async { tokio::join!(first, second) }).await;
    assert!(first.sent.is_err(), "{first:?}");
    let second = second.ok();
    assert_eq!((second.failed(), second.began()), (vec![], vec![300_000]), "it is there, whole");
    assert_eq!(bed.names(), ["big"], "once, and nothing unfinished beside it");
}

#[tokio::test]
async fn an_unfinished_file_that_an_earlier_transfer_holds_is_resumed_once_it_is_free() {
    let bed = Bed::new();
    let file = bed.file("big", &noise(20_000_000));
    let kept = cut(&bed, &file).await;
    let part = bed.inbox().join(&bed.names()[0]);
    let lock = File::open(part).unwrap();
    lock.lock().unwrap();
    let mut lock = Some(lock);
    let look = |_: &_, step: &Step| {
        if *step == Step::Working(Work::Waiting) {
            lock.take();
        }
    };
    let ended = ends(bed.send_and(&plan(&[&file]), ALICE, look)).await.ok();
    assert_eq!(ended.failed(), []);
    assert!(ended.began()[0] >= kept, "{:?} of {kept}", ended.began());
    assert_eq!(bed.names(), ["big"]);
}

#[tokio::test]
async fn two_large_files_of_one_name_in_one_transfer_do_not_wait_for_each_other() {
    let bed = Bed::new();
    let files = plan(&[&bed.file("a/x", &noise(300_000)), &bed.file("b/x", &noise(300_001))]);
    let ended = ends(bed.send_plan(&files, ALICE)).await.ok();
    assert_eq!(ended.failed(), []);
    assert_eq!(bed.names(), ["x", "x.1"]);
}
