//! Any bytes are a packet that is written as it was read, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::ipv6::{Ipv6Header, Ipv6View};

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = Ipv6View::new(bytes) else { return };
    let header = Ipv6Header::from_view(&view);
    assert_eq!(header.upper(), Ok(view.upper()));
    let mut packet = vec![0xaa; header.len()];
    packet.extend_from_slice(view.payload());
    assert_eq!(header.emit(&mut packet), Ok(view.header_len()));
    assert_eq!(packet, bytes[..view.total_len()]);
});
