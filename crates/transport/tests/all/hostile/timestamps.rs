//! Timestamps that no honest peer sends.

use super::*;

#[test]
fn timestamps_from_long_ago() {
    for age in [100_000, 1 << 30, i32::MAX as u32 - 10_000] {
        refused(DropReason::OldTimestamp, |_, _, mut s| {
            let ts = s.header.options.timestamps.unwrap();
            s.header.options.timestamps = Some(Timestamps { value: ts.value.wrapping_sub(age), ..ts });
            s.payload = lies(100);
            s
        });
    }
}

#[test]
fn segments_without_the_timestamps_that_were_agreed_upon() {
    refused(DropReason::MissingTimestamp, |_, _, mut s| {
        s.header.options.timestamps = None;
        s.payload = lies(100);
        s
    });
}

#[test]
fn timestamps_of_a_segment_that_is_refused_do_not_count() {
    // Believed, they would make every later segment of the peer look old.
    refused(DropReason::AckOfUnsent, |pair, to, mut s| {
        s.header.ack = pair.seen[to].nxt.plus(100_000);
        let ts = s.header.options.timestamps.unwrap();
        s.header.options.timestamps = Some(Timestamps { value: ts.value.wrapping_add(1 << 30), ..ts });
        s
    });
}

#[test]
fn echoes_of_any_time_do_not_disturb_the_round_trip_time() {
    for echo in [0, 1, u32::MAX, 1 << 31] {
        let pair = attack(1, |_, _, mut s| {
            let ts = s.header.options.timestamps.unwrap();
            s.header.options.timestamps = Some(Timestamps { echo, ..ts });
            s
        });
        for end in pair.ends.iter().flatten() {
            let srtt = end.path_stats(PathId::FIRST).srtt.unwrap();
            assert!(srtt >= ms(10) && srtt <= ms(10).times(20), "{srtt:?}");
        }
    }
}

#[test]
fn timestamps_that_were_not_agreed_upon() {
    let config = ConnectionConfig { timestamps: false, ..config() };
    let mut pair = running(config, 1);
    for value in [u32::MAX, 1 << 31, 0] {
        for to in 0..2 {
            let mut segment = pair.forge(to);
            segment.header.options.timestamps = Some(Timestamps { value, echo: value });
            pair.inject(to, 0, segment);
        }
        pair.run_for(ms(5));
    }
    finish(&mut pair);
    assert!(pair.ends.iter().flatten().all(|end| end.stats().dropped(DropReason::OldTimestamp) == 0));
}
