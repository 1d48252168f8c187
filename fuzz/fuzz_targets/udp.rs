//! Any bytes are a datagram that survives the round trip with its data, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::Checksum;
use polypath_wire::udp::{UdpHeader, UdpView};

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, at)) = UdpHeader::parse(bytes, Checksum::Unused) else { return };
    let data = &bytes[at..at + usize::from(header.payload_len)];
    let mut datagram = [&[0xaa; 8][..], data].concat();
    assert_eq!(header.emit(&mut datagram, Checksum::ZeroPseudoHeader), Ok(8));
    let (again, _) = UdpHeader::parse(&datagram, Checksum::ZeroPseudoHeader).expect("we wrote it");
    assert_eq!(again, header);
    assert_eq!(UdpView::new(&datagram).expect("we wrote it").payload(), data);
});
