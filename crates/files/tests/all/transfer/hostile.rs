//! Peers that do what they should not.

use std::time::Duration;

use polypath_files::message::{Answer, Frame, Message, Modified, Offer, Reply, Role, Said, Verdict};
use polypath_files::{FileError, Step};
use polypath_node::Stream;

use super::bed::{ALICE, Bed, Raw, Say, bytes, noise, plan};
use super::make_pipe;

fn offer(path: &str, size: u64, asks: bool) -> Said {
    let (path, modified) = (path.to_owned(), Modified::default());
    Said::Offer(Offer { path, directory: false, size: Some(size), asks, mode: 0o644, modified })
}

fn directory(path: &str) -> Said {
    match offer(path, 0, false) {
        Said::Offer(offer) => Said::Offer(Offer { directory: true, ..offer }),
        said => said,
    }
}

fn sum(bytes: &[u8]) -> [u8; 32] {
    blake3::hash(bytes).into()
}

/// What the peer answers until it ends or breaks off.
async fn replies(stream: &Stream) -> Vec<Reply> {
    let mut all = Vec::new();
    while let Ok(Some(bytes)) = stream.read(1 << 20).await {
        all.extend_from_slice(&bytes);
    }
    let mut rest = &all[..];
    if let Ok((_, len)) = Answer::parse(rest) {
        rest = &rest[len..];
    }
    let mut said = Vec::new();
    while let Ok((reply, len)) = Reply::parse(rest) {
        said.push(reply);
        rest = &rest[len..];
    }
    assert!(rest.is_empty(), "{rest:?}");
    said
}

/// A sender that says `messages` to our receiver and ends: what it hears, and what our receiver makes of it.
async fn say(bed: &Bed, messages: &[&dyn Say]) -> (Vec<Reply>, Result<(), FileError>) {
    let (ours, theirs) = bed.connect().await;
    let script = async {
        ours.write(bytes(&[&Role::Send])).await.unwrap();
        ours.write(bytes(messages)).await.unwrap();
        ours.finish();
        replies(&ours).await
    };
    let receive = async {
        let received = polypath_files::receive(&theirs, ALICE, &bed.store, |_| {}).await;
        theirs.finish();
        received
    };
    tokio::join!(script, receive)
}

fn verdicts(replies: &[Reply]) -> Vec<(u32, Verdict)> {
    let verdicts = replies.iter().filter_map(|reply| match reply {
        Reply::Verdict { index, verdict, .. } => Some((*index, *verdict)),
        Reply::Want { .. } | Reply::Working(_) => None,
    });
    verdicts.collect()
}

#[tokio::test]
async fn no_name_leads_out_of_the_directory() {
    let bed = Bed::new();
    let outside = bed.inbox().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, bed.inbox().join("link")).unwrap();
    let bad = ["../x", "/etc/x", "a/../../x", "", ".", ".x", "a\u{202e}b", "link/x"];
    for name in bad {
        let said = offer(name, 1, false);
        let (replies, result) =
            say(&bed, &[&said, &Said::Start(0), &Frame::Data(1), &Raw(vec![7]), &Frame::End(sum(&[7]))])
                .await;
        match name {
            "" => assert!(matches!(result, Err(FileError::Protocol(_)))),
            "link/x" => assert_eq!(verdicts(&replies), [(0, Verdict::Refused)]),
            _ => assert_eq!(verdicts(&replies), [(0, Verdict::Name)], "{name:?}"),
        }
    }
    let (replies, _) = say(&bed, &[&directory("../y"), &directory("link/y"), &directory("ok/deep")]).await;
    assert_eq!(verdicts(&replies), [(0, Verdict::Name), (1, Verdict::Refused), (2, Verdict::Stored)]);
    assert_eq!(bed.names(), ["link", "ok", "ok/deep"]);
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_there_is_neither_replaced_nor_told() {
    let bed = Bed::new();
    let secret = noise(100_000);
    std::fs::write(bed.inbox().join("secret"), &secret).unwrap();
    let (replies, result) = say(&bed, &[&offer("secret", 100_000, true)]).await;
    assert!(result.is_err(), "it ended before the file");
    let Reply::Want { have, digest, .. } = &replies[0] else { panic!("{replies:?}") };
    assert_eq!((*have, *digest), (0, sum(&[])));
    assert_eq!(bed.names(), ["secret"], "nothing is left of an offer without bytes");
    assert!(bed.found()["secret"] == Some(secret));
}

#[tokio::test]
async fn pipes_links_and_directories_in_the_way_are_gone_round() {
    let bed = Bed::new();
    let file = bed.file("big", &noise(100_000));
    let (replies, _) =
        say(&bed, &[&offer("big", 100_000, true), &Said::Start(0), &Frame::Data(1), &Raw(vec![1])]).await;
    assert_eq!(replies.len(), 1);
    let part = bed.inbox().join(&bed.names()[0]);
    for way in ["pipe", "link", "directory"] {
        let _ = std::fs::remove_file(&part);
        match way {
            "pipe" => make_pipe(&part),
            "link" => std::os::unix::fs::symlink("/etc/passwd", &part).unwrap(),
            _ => std::fs::create_dir(&part).unwrap(),
        }
        let ended = tokio::time::timeout(Duration::from_secs(20), bed.send(&[&file])).await.unwrap().ok();
        assert_eq!(ended.failed(), [], "{way}");
        let (_, path) = &ended.stored()[0];
        assert!(std::fs::read(path).unwrap() == noise(100_000), "{way}");
        std::fs::remove_file(path).unwrap();
        if way == "directory" {
            std::fs::remove_dir(&part).unwrap();
        }
    }
}

#[tokio::test]
async fn a_pipe_of_the_files_own_name_does_not_hold_up_anything() {
    let bed = Bed::new();
    make_pipe(&bed.inbox().join("x"));
    let (small, large) = (bed.file("x", b"small"), bed.file("b/x", &noise(100_000)));
    let ended =
        tokio::time::timeout(Duration::from_secs(20), bed.send(&[&small, &large])).await.unwrap().ok();
    assert_eq!(ended.failed(), []);
    assert_eq!(bed.names(), ["x", "x.1", "x.2"]);
}

#[tokio::test]
async fn sizes_that_are_not_true_break_it_off() {
    let bed = Bed::new();
    let (data, end) = (Frame::Data(10), Frame::End(sum(&[0; 10])));
    let ten = Raw(vec![0; 10]);
    let more: [&[&dyn Say]; 6] = [
        &[&offer("x", 9, false), &Said::Start(0), &data, &ten, &end],
        &[&offer("x", 11, false), &Said::Start(0), &data, &ten, &end],
        &[&offer("x", 10, true), &Said::Start(5), &data, &ten, &end],
        &[&offer("x", 10, false), &Said::Start(u64::MAX), &data, &ten, &end],
        &[&Said::Start(0)],
        &[&offer("x", u64::MAX, false), &Said::Start(0), &data, &ten],
    ];
    for messages in more {
        let (replies, result) = say(&bed, messages).await;
        assert!(matches!(result, Err(FileError::Protocol(_) | FileError::Cut)), "{result:?}");
        assert_eq!(verdicts(&replies), []);
        assert_eq!(bed.names(), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_wrong_sum_is_told_and_nothing_is_stored() {
    let bed = Bed::new();
    for asks in [false, true] {
        let said = offer("x", 10, asks);
        let end = Frame::End([9; 32]);
        let (replies, result) =
            say(&bed, &[&said, &Said::Start(0), &Frame::Data(10), &Raw(vec![0; 10]), &end]).await;
        assert!(result.is_ok());
        assert_eq!(verdicts(&replies), [(0, Verdict::Changed)]);
        assert_eq!(bed.names(), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn offers_without_end_are_not_kept() {
    let bed = Bed::new();
    let offers: Vec<Said> = (0..100).map(|n| offer(&format!("{n}"), 1 << 30, true)).collect();
    let messages: Vec<&dyn Say> = offers.iter().map(|said| said as &dyn Say).collect();
    let (replies, result) = say(&bed, &messages).await;
    assert!(matches!(result, Err(FileError::Protocol("too many offers at once"))), "{result:?}");
    assert!(replies.len() <= 64);
    assert_eq!(bed.names(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_disk_that_cannot_hold_it_is_said_at_once() {
    let bed = Bed::new();
    let (replies, _) =
        say(&bed, &[&offer("huge", 1 << 60, true), &Said::Start(0), &Frame::Abandoned, &directory("after")])
            .await;
    assert_eq!(verdicts(&replies), [(0, Verdict::NoSpace), (1, Verdict::Stored)]);
}

#[tokio::test]
async fn either_end_hears_of_another_version_and_which_end_is_older() {
    for (greeting, older) in [("PPFILE1\n", "update the peer"), ("PPFILE9\n", "update this end")] {
        let bed = Bed::new();
        let (ours, theirs) = bed.connect().await;
        ours.write(format!("{greeting}and so on").into()).await.unwrap();
        ours.finish();
        let (old, heard) =
            tokio::join!(polypath_files::receive(&theirs, ALICE, &bed.store, |_| {}), ours.read(9));
        let old = old.unwrap_err().to_string();
        assert!(old.ends_with(older), "{old}");
        assert_eq!(heard.unwrap().unwrap(), &b"PPFILE4\n\x01"[..]);
    }
}

/// A receiver that answers `replies` to our sender: what our sender makes of it.
async fn answer(bed: &Bed, replies: &[&dyn Say]) -> (Result<(), FileError>, Vec<Step>) {
    let (ours, theirs) = bed.connect().await;
    let plan = plan(&[&bed.file("x", &noise(100_000))]);
    let mut steps = Vec::new();
    let script = async {
        // The offer, which comes with the greeting.
        theirs.read(1 << 20).await.unwrap();
        theirs.write(bytes(&[&Answer::Yes])).await.unwrap();
        theirs.write(bytes(replies)).await.unwrap();
        theirs.finish();
        while let Ok(Some(_)) = theirs.read(1 << 20).await {}
    };
    let (sent, ()) = tokio::join!(
        async {
            let sent = polypath_files::send(&ours, &plan.entries, |step| steps.push(step)).await;
            if sent.is_err() {
                ours.abort();
            }
            sent
        },
        script
    );
    (sent, steps)
}

#[tokio::test]
async fn a_receiver_that_lies_is_not_believed() {
    let bed = Bed::new();
    let reason = || "\u{1b}[31mred".to_owned();
    let stored = Reply::Verdict { index: 0, verdict: Verdict::Stored, reason: reason() };
    let nothing = Reply::Verdict { index: 5, verdict: Verdict::Stored, reason: reason() };
    let want = |index, have| Reply::Want { index, have, digest: [1; 32] };
    let lies: [&[&dyn Say]; 5] =
        [&[&stored], &[&nothing], &[&want(7, 0)], &[&want(0, 0), &want(0, 0)], &[&want(0, 1 << 40)]];
    for replies in lies {
        let (sent, steps) = answer(&bed, replies).await;
        assert!(sent.is_err(), "{sent:?}");
        assert!(!steps.iter().any(|step| matches!(step, Step::Done(_))), "{steps:?}");
    }
    let full = Reply::Verdict { index: 0, verdict: Verdict::NoSpace, reason: reason() };
    let (_, steps) = answer(&bed, &[&full]).await;
    let failed = super::bed::failures(&steps);
    assert_eq!(failed, [("x".to_owned(), "the receiver's disk is full: \u{fffd}[31mred".to_owned())]);
}
