//! Any bytes are a message of either family that survives the round trip, or an error; and so are
//! the packets that it quotes.
#![no_main]

use std::net::Ipv6Addr;

use libfuzzer_sys::fuzz_target;
use polypath_wire::icmp::{IcmpFamily, IcmpHeader, IcmpView, Quoted};

fuzz_target!(|bytes: &[u8]| {
    let v6 = IcmpFamily::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::UNSPECIFIED };
    for family in [IcmpFamily::V4, v6] {
        let Ok(view) = IcmpView::new(bytes) else { return };
        let header = IcmpHeader::from_view(&view, family);
        let mut message = [&[0xaa; 8][..], view.body()].concat();
        assert_eq!(header.emit(&mut message, family), Ok(8));
        assert_eq!(IcmpHeader::parse(&message, family), Ok((header, 8)));
        if let Ok(quoted) = Quoted::parse(view.body(), family) {
            assert_eq!(quoted.src.is_ipv4(), quoted.dst.is_ipv4());
        }
    }
});
