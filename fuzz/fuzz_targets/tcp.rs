//! Any bytes are a segment that survives the round trip with its data, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::Checksum;
use polypath_wire::tcp::TcpHeader;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, at)) = TcpHeader::parse(bytes, Checksum::Unused) else { return };
    let data = &bytes[at..];
    assert!(header.len() <= 60 && header.len().is_multiple_of(4));
    let mut segment = vec![0xaa; header.len()];
    segment.extend_from_slice(data);
    assert_eq!(header.emit(&mut segment, Checksum::ZeroPseudoHeader), Ok(header.len()));
    let (again, at) = TcpHeader::parse(&segment, Checksum::ZeroPseudoHeader).expect("we wrote it");
    assert_eq!(again, header);
    assert_eq!(&segment[at..], data);
});
