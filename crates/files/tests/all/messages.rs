//! Messages of a file transfer survive the round trip, and any bytes are a message, the beginning of one, or an error.
#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use polypath_files::message::{
    Answer, Frame, Message, Modified, NotYet, Offer, Reply, Role, Said, Verdict, Work,
};
use proptest::prelude::*;

fn offers() -> impl Strategy<Value = Offer> {
    let times = (any::<i64>(), 0..1_000_000_000u32).prop_map(|(seconds, nanos)| Modified { seconds, nanos });
    let path = "\\PC{1,40}";
    (path, any::<bool>(), any::<Option<u64>>(), any::<bool>(), any::<u16>(), times).prop_map(
        |(path, directory, size, asks, mode, modified)| Offer { path, directory, size, asks, mode, modified },
    )
}

fn round_trip<M: Message + PartialEq + std::fmt::Debug>(message: &M) {
    let mut bytes = BytesMut::new();
    message.emit(&mut bytes);
    for short in 0..bytes.len() {
        assert_eq!(M::parse(&bytes[..short]).unwrap_err(), NotYet::Short);
    }
    let len = bytes.len();
    bytes.extend_from_slice(b"more");
    assert_eq!(&M::parse(&bytes).unwrap(), &(M::parse(&bytes[..len]).unwrap().0, len));
    assert_eq!(&M::parse(&bytes).unwrap().0, message);
}

fn parses<M: Message + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok((message, len)) = M::parse(bytes) {
        assert!(len <= bytes.len());
        round_trip(&message);
    }
}

proptest! {
    #[test]
    fn offers_survive_the_round_trip(offer in offers()) {
        round_trip(&Said::Offer(offer));
    }

    #[test]
    fn replies_survive_the_round_trip(index: u32, have: u64, digest: [u8; 32], code in 0..6usize, reason in "\\PC{0,60}") {
        round_trip(&Reply::Want { index, have, digest });
        let verdicts = [Verdict::Stored, Verdict::Changed, Verdict::NoSpace, Verdict::Name, Verdict::Refused, Verdict::Abandoned];
        round_trip(&Reply::Verdict { index, verdict: verdicts[code], reason });
        round_trip(&Frame::End(digest));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, kind in 0..5u8) {
        let bytes = [&[kind][..], &bytes].concat();
        parses::<Said>(&bytes);
        parses::<Reply>(&bytes);
        parses::<Frame>(&bytes);
        parses::<Role>(&bytes);
        parses::<Answer>(&[&b"PPFILE4\n"[..], &bytes].concat());
    }
}

#[test]
fn greetings_survive_the_round_trip() {
    [Role::Send, Role::Fetch].iter().for_each(round_trip);
    [Answer::Yes, Answer::No].iter().for_each(round_trip);
    [Frame::Data(1), Frame::Data(u32::MAX - 2), Frame::Abandoned, Frame::Working].iter().for_each(round_trip);
    round_trip(&Said::Working);
    let works = [Work::Checking, Work::Storing, Work::Waiting, Work::Reading];
    works.iter().for_each(|work| round_trip(&Reply::Working(*work)));
    assert_eq!(Role::parse(b"PPFILE1\n").unwrap_err(), NotYet::Version(1));
    assert_eq!(Role::parse(b"PPFILE").unwrap_err(), NotYet::Short);
    assert!(matches!(Role::parse(b"PPFILEs"), Err(NotYet::Malformed(_))));
    assert!(matches!(Role::parse(b"GET"), Err(NotYet::Malformed(_))));
}

#[test]
fn a_reason_that_is_too_long_is_cut_between_characters() {
    let reason = "ü".repeat(200);
    let mut bytes = BytesMut::new();
    Reply::Verdict { index: 0, verdict: Verdict::Refused, reason }.emit(&mut bytes);
    let Reply::Verdict { reason, .. } = Reply::parse(&bytes).unwrap().0 else { panic!() };
    assert_eq!(reason, "ü".repeat(127));
}
