//! What a program with all rights may put on the device: none of it ends a daemon, and what is not carried is counted.

use std::thread::sleep;
use std::time::Duration;

use polypath_hip::Random;
use polypath_wire::ipv4::Ipv4Header;
use socket2::{Domain, Protocol, Socket, Type};

use super::common::{Pair, link, ready};
use super::packets::echo;
use super::tcp::{connected, transfer};

/// Packets of noise.
const PACKETS: u64 = 10_000;
/// Of them at a time.
const AT_ONCE: u64 = 20;
/// Source addresses: of this host, of the peer, of no host or of many, of a stranger.
const SOURCES: [[u8; 4]; 8] = [
    [10, 99, 0, 1],
    [10, 99, 0, 2],
    [127, 0, 0, 1],
    [224, 0, 0, 1],
    [255, 255, 255, 255],
    [169, 254, 1, 1],
    [240, 0, 0, 1],
    [198, 51, 100, 7],
];
const IPPROTO_RAW: i32 = 255;

/// A packet to the second host of which the header is one, but for what it says, and the rest is noise.
fn any_packet(chance: &mut Random) -> Vec<u8> {
    let [kind, from, bits, len, offset] = chance.bytes().map(usize::from);
    let protocol = [1, 6, 6, 17, kind as u8][kind % 5];
    let body = chance.vec(if len == 0 { 1300 } else { len / 2 });
    let (src, dst) = (SOURCES[from % SOURCES.len()].into(), [10, 99, 0, 2].into());
    let header = Ipv4Header {
        dont_fragment: bits & 1 > 0,
        more_fragments: bits & 6 == 6,
        fragment_offset: if bits & 24 == 24 { offset as u16 * 32 } else { 0 },
        options: (bits & 96 == 96).then(|| chance.vec(8).into()),
        traffic_class: bits as u8,
        ..Ipv4Header::new(protocol, src, dst, body.len() as u16)
    };
    let mut packet = vec![0; header.len()];
    header.emit(&mut packet).unwrap();
    packet.extend(body);
    packet
}

#[test]
fn whatever_a_program_puts_on_the_device_ends_nothing_and_is_counted() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    let held = connected(&pair, 0, 80);
    let send = || {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(IPPROTO_RAW))).unwrap();
        let (mut chance, to) = (Random::from_seed([15; 32]), Pair::at(1, 0).into());
        let mut put = |n: u64| {
            if n.is_multiple_of(AT_ONCE) {
                sleep(Duration::from_millis(4)); // so that the device's queue drops none
            }
            raw.send_to(&any_packet(&mut chance), &to).is_ok()
        };
        (0..PACKETS).filter(|n| put(*n)).count() as u64
    };
    let sent = pair.hosts[0].ns.run(send).unwrap();
    assert!(sent > PACKETS * 9 / 10, "the kernel refused {} of them", PACKETS - sent);
    transfer(held.0, held.1, 1 << 20);
    echo(&pair, 1200);
    let [near, far] = pair.hosts.each_ref().map(|host| host.status());
    let said = format!("{:?} {:?} {:?} {:?}", near.lane, near.packets, far.lane, far.packets);
    println!("of {sent}: {said}");
    // Two fifths are of TCP, with wrong checksums or in fragments, and most sources are not the peer's.
    assert!(near.lane.malformed > sent / 10 && far.packets.forbidden > sent / 4, "{said}");
    assert_eq!((far.lane.incoming, far.packets.malformed), (1, 0), "{said}");
}
