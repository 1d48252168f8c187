//! TCP's checksum inside ESP: 0 where both ends announce that they do not check it.

use polypath_endpoint::SecurityConfig;
use polypath_hip::HipConfig;
use polypath_hip::suite::EspSuite;
use polypath_wire::Duration;

use super::bed::*;
use super::{LEN, finish};

/// ESP's SPI and sequence number, and what stands before TCP's checksum.
const CHECKSUM_AT: usize = 8 + 16;

/// Packets can be read.
fn plain(no_checksums: bool) -> SecurityConfig {
    let config = quick();
    let hip = HipConfig { no_checksums, esp_suites: vec![EspSuite::NullHmacSha256], ..config.hip };
    SecurityConfig { hip, simulation: true, ..config }
}

/// How many of the segments with data have a checksum, and how many have 0.
fn counted(client: bool, server: bool) -> (usize, usize) {
    let mut bed = Bed::new([plain(client), plain(server)], [v4, v4]);
    bed.associate();
    bed.run(Duration::from_secs(1));
    bed.send(LEN);
    finish(&mut bed, 60);
    let data = bed.seen.iter().filter(|packet| packet.len() > 500 && !packet.starts_with(&[0; 4]));
    let (without, with): (Vec<_>, Vec<_>) =
        data.partition(|packet| packet[CHECKSUM_AT..CHECKSUM_AT + 2] == [0, 0]);
    (with.len(), without.len())
}

#[test]
fn a_segment_has_no_checksum_if_neither_end_checks_it() {
    let segments = LEN as usize / 1460;
    let (with, without) = counted(true, true);
    assert!(without > segments && with == 0, "{with} with, {without} without");
    for (client, server) in [(true, false), (false, true), (false, false)] {
        let (with, without) = counted(client, server);
        assert!(with > segments && without < segments / 100, "{with} with, {without} without"); // a sum may be 0
    }
}
