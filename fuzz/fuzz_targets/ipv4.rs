//! Any bytes are a packet whose header is written as it was read, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::ipv4::{Ipv4Header, Ipv4View};

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = Ipv4View::new(bytes) else { return };
    let header = Ipv4Header::from_view(&view);
    let mut packet = vec![0xaa; header.len()];
    packet.extend_from_slice(view.payload());
    assert_eq!(header.emit(&mut packet), Ok(view.header_len()));
    assert_eq!(Ipv4Header::parse(&packet), Ok((header, view.header_len())));
    // But for the reserved flag and the checksum, it is what it was.
    packet[6] |= bytes[6] & 0x80;
    packet[10..12].copy_from_slice(&bytes[10..12]);
    assert_eq!(packet, bytes[..view.total_len()]);
});
