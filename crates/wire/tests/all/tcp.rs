//! TCP: layouts, round trips, damage, bad options.

use polypath_wire::tcp::{
    MultiRoute, SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpView, Timestamps,
};
use polypath_wire::{Checksum, Seq};
use proptest::prelude::*;

const SUM: Checksum =
    Checksum::Ipv4 { src: std::net::Ipv4Addr::new(10, 0, 0, 1), dst: std::net::Ipv4Addr::new(10, 0, 0, 2) };

fn emit(header: &TcpHeader, data: &[u8], checksum: Checksum) -> Vec<u8> {
    let mut segment = vec![0xaa; header.len()];
    segment.extend_from_slice(data);
    assert_eq!(header.emit(&mut segment, checksum), Ok(header.len()));
    segment
}

fn options(bytes: &[u8]) -> Result<TcpOptions, String> {
    TcpOptions::parse(bytes).map_err(|e| e.to_string())
}

fn blocks(n: u32) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for i in 0..n {
        assert!(sack.push(SackBlock { start: Seq(i * 2000), end: Seq(i * 2000 + 1000) }));
    }
    sack
}

fn on_the_wire(options: &TcpOptions) -> Vec<u8> {
    let header = TcpHeader { options: options.clone(), ..Default::default() };
    emit(&header, &[], Checksum::Unused).split_off(20)
}

#[test]
fn options_that_were_cleared_are_as_new() {
    let mut options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        sack: blocks(3),
        unknown: Some(Box::new([77, 2])),
        multi_route: Some(MultiRoute { route: 1, reply: None }),
    };
    options.clear();
    assert_eq!((&options, options.len()), (&TcpOptions::default(), 0));
    assert_ne!(options.sack, blocks(1), "the blocks that were there are no more");
    options.sack = blocks(2);
    options.sack.clear();
    assert_eq!((format!("{:?}", options.sack), &options.sack[..]), ("[]".to_owned(), &[][..]));
}

#[test]
fn options_are_aligned_as_receivers_like_them() {
    let timestamps = Some(Timestamps { value: 0x01020304, echo: 0x05060708 });
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps,
        ..Default::default()
    };
    let expected = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7];
    assert_eq!(on_the_wire(&syn), expected);
    let ack = TcpOptions { timestamps, sack: blocks(1), ..Default::default() };
    let expected = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 3, 232];
    assert_eq!(on_the_wire(&ack), expected);
    let routed = TcpOptions {
        multi_route: Some(MultiRoute { route: 1, reply: None }),
        sack_permitted: true,
        ..Default::default()
    };
    assert_eq!(on_the_wire(&routed), [1, 1, 4, 2, 253, 8, b'P', b'o', b'l', b'y', 1, 255]);
}

#[test]
fn sack_blocks_that_do_not_fit_are_left_out() {
    let timestamps = Some(Timestamps::default());
    let multi_route = Some(MultiRoute::default());
    for (options, room) in [
        (TcpOptions::default(), 4),
        (TcpOptions { timestamps, ..Default::default() }, 3),
        (TcpOptions { multi_route, ..Default::default() }, 3),
        (TcpOptions { timestamps, multi_route, ..Default::default() }, 2),
        (TcpOptions { unknown: Some([9; 40].into()), ..Default::default() }, 0),
    ] {
        assert_eq!(options.sack_room(), room);
        let full = TcpOptions { sack: blocks(4), ..options.clone() };
        assert!(full.len() <= 40);
        if room > 0 {
            let back = TcpOptions::parse(&on_the_wire(&full)).unwrap();
            assert_eq!(back, TcpOptions { sack: blocks(room as u32), ..options });
        }
    }
}

#[test]
fn alignment_yields_to_lack_of_room() {
    let options = TcpOptions {
        window_scale: Some(7),
        timestamps: Some(Timestamps::default()),
        sack: blocks(3),
        ..Default::default()
    };
    let bytes = on_the_wire(&options);
    assert_eq!((bytes.len(), &bytes[10..15], bytes[39]), (40, &[3, 3, 7, 5, 26][..], 0));
    assert_eq!(TcpOptions::parse(&bytes), Ok(options));
}

#[test]
fn options_that_cannot_fit_are_refused() {
    let options = TcpOptions { mss: Some(1), unknown: Some([9; 38].into()), ..Default::default() };
    let error = TcpHeader { options, ..Default::default() }.emit(&mut [0; 100], SUM).unwrap_err();
    assert_eq!(error.to_string(), "TCP: options: need 40, got 44");
    let error = TcpHeader::default().emit(&mut [0; 19], SUM).unwrap_err();
    assert_eq!(error.to_string(), "TCP: buffer: need 20, got 19");
}

#[test]
fn bad_option_lengths_name_the_field() {
    for (bytes, error) in [
        (&[2, 3, 0][..], "TCP: MSS option length: need 4, got 3"),
        (&[1, 3, 4, 0, 0], "TCP: window scale option length: need 3, got 4"),
        (&[4, 3, 0], "TCP: SACK-permitted option length: need 2, got 3"),
        (&[5, 2], "TCP: SACK option length: need 10, got 2"),
        (&[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0], "TCP: SACK option length: need 10, got 11"),
        (&[8, 3, 0], "TCP: timestamps option length: need 10, got 3"),
        (&[254, 7, b'P', b'o', b'l', b'y', 1], "TCP: multi-route option length: need 8, got 7"),
        (&[77, 0, 0], "TCP: option length: need 2, got 0"),
        (&[77], "TCP: option length: need 2, got 0"),
        (&[1, 77, 9, 0], "TCP: option length: need 9, got 3"),
    ] {
        assert_eq!(options(bytes), Err(error.to_string()));
    }
}

#[test]
fn lenient_where_the_rfcs_say_so() {
    assert_eq!(options(&[3, 3, 200]).unwrap().window_scale, Some(14));
    // Nothing counts after the end of the list.
    assert_eq!(options(&[0, 2, 4, 5, 180]), Ok(TcpOptions::default()));
    // Experiments of others are unknown options (RFC 6994 §3.2).
    let others = [253, 4, 0x12, 0x34];
    assert_eq!(options(&others).unwrap().unknown.as_deref(), Some(&others[..]));
}

#[test]
fn bad_headers_name_the_field() {
    let mut segment = emit(&TcpHeader::default(), &[], SUM);
    let error = |segment: &[u8]| TcpHeader::parse(segment, SUM).unwrap_err();
    assert_eq!(error(&segment[..19]).to_string(), "TCP: length: need 20, got 19");
    segment[16] ^= 1;
    assert!(error(&segment).is_checksum());
    segment[12] = 0x40;
    assert_eq!(error(&segment).to_string(), "TCP: data offset: need 20, got 16");
    segment[12] = 0x60;
    assert_eq!(error(&segment).to_string(), "TCP: length: need 24, got 20");
}

#[test]
fn without_a_pseudo_header_the_addresses_do_not_count() {
    let segment = emit(&TcpHeader::default(), b"data", Checksum::ZeroPseudoHeader);
    assert!(TcpView::new(&segment).unwrap().verify(Checksum::ZeroPseudoHeader).is_ok());
    assert!(TcpView::new(&segment).unwrap().verify(SUM).unwrap_err().is_checksum());
    assert_eq!(polypath_wire::checksum::checksum(&segment), 0);
}

prop_compose! {
    fn unknown()(options in prop::collection::vec((9u8..253, prop::collection::vec(any::<u8>(), 0..8)), 0..3))
        -> Option<Box<[u8]>> {
        let bytes = options.iter().flat_map(|(kind, data)| {
            [*kind, data.len() as u8 + 2].into_iter().chain(data.iter().copied())
        }).collect::<Vec<_>>();
        (!bytes.is_empty()).then(|| bytes.into())
    }
}

prop_compose! {
    fn any_options()(
        mss in any::<Option<u16>>(),
        window_scale in prop::option::of(0u8..=14),
        sack_permitted: bool,
        timestamps in any::<Option<(u32, u32)>>(),
        sack in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
        multi_route in any::<Option<(u8, Option<u8>)>>(),
        unknown in unknown(),
    ) -> TcpOptions {
        let mut options = TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            multi_route: multi_route.map(|(route, reply)| MultiRoute {
                route,
                reply: reply.filter(|r| *r != 255),
            }),
            sack: SackBlocks::default(),
            unknown,
        };
        for (start, end) in sack.into_iter().take(options.sack_room()) {
            options.sack.push(SackBlock { start: Seq(start), end: Seq(end) });
        }
        options
    }
}

prop_compose! {
    fn any_header()(
        ports: (u16, u16),
        numbers: (u32, u32),
        (flags, window, urgent) in any::<(u8, u16, u16)>(),
        options in any_options().prop_filter("fits", |o| o.len() <= 40),
    ) -> TcpHeader {
        TcpHeader {
            src_port: ports.0,
            dst_port: ports.1,
            seq: Seq(numbers.0),
            ack: Seq(numbers.1),
            flags: TcpFlags(flags),
            window,
            urgent,
            options,
        }
    }
}

proptest! {
    #[test]
    fn value_to_bytes_and_back(header in any_header(), data in prop::collection::vec(any::<u8>(), 0..50)) {
        let segment = emit(&header, &data, SUM);
        let (back, offset) = TcpHeader::parse(&segment, SUM).unwrap();
        prop_assert_eq!(&back, &header);
        prop_assert_eq!(&segment[offset..], &data);
        prop_assert_eq!(TcpView::new(&segment).unwrap().payload(), &data);
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..80), offset in 5u8..) {
        if let Some(byte) = bytes.get_mut(12) {
            *byte = offset << 4;
        }
        if let Ok((header, _)) = TcpHeader::parse(&bytes, Checksum::Unused) {
            let again = emit(&header, &[], SUM);
            prop_assert_eq!(TcpHeader::parse(&again, SUM).unwrap().0, header);
        }
    }

    #[test]
    fn any_options_give_a_value_that_fits(kinds in prop::collection::vec((0u8..10, 0u8..12), 0..20)) {
        let mut bytes = kinds.iter().flat_map(|(k, l)| [*k, *l]).collect::<Vec<_>>();
        bytes.truncate(40);
        if let Ok(options) = TcpOptions::parse(&bytes) {
            prop_assert_eq!(TcpOptions::parse(&on_the_wire(&options)).unwrap(), options);
        }
    }

    #[test]
    fn a_flipped_bit_is_caught(header in any_header(), data: [u8; 9], at: prop::sample::Index, bit in 0..8) {
        let mut segment = emit(&header, &data, SUM);
        let at = at.index(segment.len());
        segment[at] ^= 1u8 << bit;
        prop_assert!(TcpHeader::parse(&segment, SUM).is_err());
    }
}
