//! Our TCP on a TUN device against the TCP of the Linux kernel.
//!
//! Every test makes its own network namespaces; no traffic leaves them. Without root they are
//! skipped, and say so. `POLYPATH_KERNEL_BYTES` sets how much the lossy transfers carry each.
#![allow(clippy::unwrap_used)]

mod bed;
mod counters;

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bed::{Bed, HOST, KERNEL, Opens, kernel_reads, kernel_sees_the_end, kernel_sends};
use counters::Counters;
use polypath_hop::{Drop, HopConfig, QueueLimit};
use polypath_node::{Stream, StreamError};
use polypath_transport::{CloseReason, ConnectionConfig, DropReason};
use polypath_wire::Rate;
use socket2::SockRef;

use crate::capture::Capture;

/// What loss and reordering alone make the kernel count, several times over. An acknowledgment that others have
/// passed bears an old timestamp: one in 4,000 to 8,000 segments. Where the last word of the handshake was
/// lost, our SYN-ACK comes again, is an error and is challenged (RFC 5961 §4): that is once or twice for each
/// of four connections, whatever they carry.
fn loss_and_reordering(counters: &Counters, name: &str) -> i64 {
    match name {
        "TcpExt.PAWSEstab" => 10 + counters.get("Tcp.InSegs") / 1000,
        "Tcp.InErrs" | "TcpExt.TCPChallengeACK" | "TcpExt.TCPSYNChallenge" => 8,
        _ => 0,
    }
}

const MB: u64 = 1_000_000;

/// One test at a time: they share two cores and would only slow each other down.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ready() -> bool {
    crate::common::ready(&["ip", "setpriv", "tcpdump", "tshark"])
}

/// Fast, short, and with a queue that no window overflows.
fn clean() -> HopConfig {
    HopConfig {
        rate: Rate::from_mbps(1000),
        delay: polypath_wire::Duration::from_micros(500),
        queue: QueueLimit::Packets(20_000),
        ..HopConfig::default()
    }
}

/// Loses one packet in a hundred, and lets another be passed by those within a millisecond.
fn lossy() -> HopConfig {
    HopConfig {
        loss: 0.01,
        reordering: 0.01,
        reorder_delay: polypath_wire::Duration::from_millis(1),
        ..clean()
    }
}

fn quick() -> ConnectionConfig {
    ConnectionConfig { time_wait: polypath_wire::Duration::from_millis(200), ..ConnectionConfig::default() }
}

/// `len` bytes one way and a few back, on a connection that both close. Returns how many segments the kernel sent
/// needlessly again: on a machine that stops for some milliseconds it probes the tail.
fn transfer(bed: &Bed, opens: Opens, host_sends: bool, len: u64) -> u64 {
    let start = Instant::now();
    let (stream, mut tcp) = bed.connect(opens, quick());
    let (host_len, kernel_len) = if host_sends { (len, 10) } else { (10, len) };
    thread::scope(|s| {
        let kernel_reader = s.spawn({
            let mut tcp = tcp.try_clone().unwrap();
            move || {
                let sha = kernel_reads(&mut tcp, host_len);
                kernel_sees_the_end(&mut tcp);
                sha
            }
        });
        let kernel_writer = s.spawn(|| {
            let sha = kernel_sends(&mut tcp, 2, kernel_len);
            tcp.shutdown(std::net::Shutdown::Write).unwrap();
            sha
        });
        let host_reader = s.spawn(|| {
            let sha = bed.host_reads(&stream, kernel_len);
            bed.host_sees_the_end(&stream);
            sha
        });
        let sent = bed.host_sends(&stream, 1, host_len);
        stream.finish();
        assert_eq!(sent, kernel_reader.join().unwrap(), "host → kernel");
        assert_eq!(kernel_writer.join().unwrap(), host_reader.join().unwrap(), "kernel → host");
    });
    bed.wait(stream.finished()).unwrap();
    let mbps = len as f64 * 8.0 / 1e6 / start.elapsed().as_secs_f64();
    let who = if host_sends { "host sends" } else { "kernel sends" };
    let stats = stream.stats().connection;
    println!("{opens:?} opens, {who} {len} bytes: {mbps:.0} Mbit/s; {stats:?}");
    stats.drops[DropReason::Duplicate as usize]
}

/// Both ways, whoever opens. Returns the same of all four.
fn transfer_all_ways(bed: &Bed, len: u64) -> u64 {
    let ways = [Opens::Host, Opens::Kernel].into_iter().flat_map(|opens| [(opens, true), (opens, false)]);
    ways.map(|(opens, host_sends)| transfer(bed, opens, host_sends, len)).sum()
}

#[test]
fn a_clean_link_carries_100_mb_each_way() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([clean(), clean()], [1500, 1500]);
    let again = transfer_all_ways(&bed, 100 * MB);
    bed.expect_no_complaints();
    // What is acknowledged a second time may find the kernel's end gone, which says so by a reset.
    let resets = Counters::of(&bed.kernel).get("Tcp.OutRsts");
    assert!(resets <= again as i64, "closing needs no reset: {resets}, {again} segments went again");
}

#[test]
fn loss_and_reordering_harm_no_byte() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let len =
        std::env::var("POLYPATH_KERNEL_BYTES").map_or(100 * MB, |n| n.parse().expect("a number of bytes"));
    let bed = Bed::new([lossy(), lossy()], [1500, 1500]);
    transfer_all_ways(&bed, len);
    bed.expect_complaints(loss_and_reordering);
    for (hop, stats) in ["there", "back"].iter().zip(bed.link().hops) {
        assert!(stats.dropped(Drop::Loss) > 0 && stats.reordered > 0, "{hop}: {stats:?}");
    }
}

#[test]
fn options_are_negotiated_and_used() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([lossy(), lossy()], [1500, 1500]);
    let capture = Capture::start(&bed.router, "link");
    transfer_all_ways(&bed, 3 * MB);
    let packets = capture.finish();
    for side in [HOST, KERNEL] {
        for syn in ["tcp.flags.ack == 0", "tcp.flags.ack == 1"] {
            let from = format!("ip.src == {side} && tcp.flags.syn == 1 && {syn}");
            let all = packets.count(&from);
            let with_all = "tcp.options.wscale && tcp.options.sack_perm && tcp.options.timestamp.tsval";
            assert!(all >= 2, "two connections were opened by each side: {all}");
            assert_eq!(
                packets.count(&format!("{from} && {with_all} && tcp.options.mss_val == 1460")),
                all,
                "{from}"
            );
        }
        let sacks = packets.count(&format!("ip.src == {side} && tcp.options.sack.count"));
        assert!(sacks > 0, "{side} reports what it has behind a gap");
        // Beyond the SYN every segment has the timestamps (RFC 7323 §3.2), resets may not.
        let bare = format!("ip.src == {side} && !tcp.options.timestamp.tsval && tcp.flags.reset == 0");
        assert_eq!(packets.count(&bare), 0, "{bare}");
    }
    assert_eq!(packets.count("_ws.malformed || tcp.options.mss.absent || tcp.option.len.invalid"), 0);
    bed.expect_complaints(loss_and_reordering);
}

/// The kernel does not know the multi-route option of R-M/TCP: it is offered, and not used.
#[test]
fn a_peer_without_routes_gets_plain_tcp() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([clean(), clean()], [1500, 1500]);
    let capture = Capture::start(&bed.router, "link");
    let routed = ConnectionConfig { multi_route: true, ..quick() };
    let (stream, mut tcp) = bed.connect(Opens::Host, routed);
    thread::scope(|s| {
        let read = s.spawn(|| kernel_reads(&mut tcp, 5 * MB));
        assert_eq!(bed.host_sends(&stream, 1, 5 * MB), read.join().unwrap());
    });
    stream.finish();
    kernel_sees_the_end(&mut tcp);
    drop(tcp);
    bed.wait(stream.finished()).unwrap();
    let packets = capture.finish();
    let offered = format!("ip.src == {HOST} && tcp.flags.syn == 1 && tcp.option_kind == 253");
    assert_eq!(packets.count(&offered), 1);
    assert_eq!(packets.count("tcp.flags.syn == 0 && tcp.option_kind == 253"), 0);
    assert!(packets.count("tcp.flags.syn == 0 && tcp.len > 0") > 1000);
    assert_eq!(packets.count("_ws.malformed || tcp.option.len.invalid"), 0);
    bed.expect_no_complaints();
}

#[test]
fn half_close_leaves_the_other_direction_open() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([clean(), clean()], [1500, 1500]);
    let (stream, mut tcp) = bed.connect(Opens::Host, quick());
    let first = bed.host_sends(&stream, 1, 1000);
    stream.finish();
    assert_eq!(kernel_reads(&mut tcp, 1000), first);
    kernel_sees_the_end(&mut tcp);
    thread::scope(|s| {
        let sent = s.spawn(|| kernel_sends(&mut tcp, 2, 5 * MB));
        assert_eq!(bed.host_reads(&stream, 5 * MB), sent.join().unwrap());
    });
    drop(tcp);
    bed.host_sees_the_end(&stream);
    bed.wait(stream.finished()).unwrap();

    let (stream, mut tcp) = bed.connect(Opens::Kernel, quick());
    let first = kernel_sends(&mut tcp, 3, 1000);
    tcp.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(bed.host_reads(&stream, 1000), first);
    bed.host_sees_the_end(&stream);
    thread::scope(|s| {
        let read = s.spawn(|| kernel_reads(&mut tcp, 5 * MB));
        assert_eq!(bed.host_sends(&stream, 4, 5 * MB), read.join().unwrap());
    });
    stream.finish();
    kernel_sees_the_end(&mut tcp);
    bed.wait(stream.finished()).unwrap();
    bed.expect_no_complaints();
    let counters = Counters::of(&bed.kernel);
    assert_eq!([counters.get("Tcp.OutRsts"), counters.get("Tcp.EstabResets")], [0, 0]);
}

#[test]
fn resets_and_refusals_are_heard() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([clean(), clean()], [1500, 1500]);
    let (stream, mut tcp) = bed.connect(Opens::Host, quick());
    kernel_reads_one(&bed, &stream, &mut tcp);
    stream.abort();
    assert_eq!(tcp.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    let (stream, tcp) = bed.connect(Opens::Kernel, quick());
    SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    drop(tcp);
    assert_eq!(bed.wait(stream.read(1)), Err(StreamError::Lost(CloseReason::Reset)));

    let closed = bed.kernel_listener().local_addr().unwrap().port();
    let refused = bed.host_connect(closed, quick()).err();
    assert_eq!(refused, Some(StreamError::Lost(CloseReason::Refused)));
    assert_eq!(bed.kernel_connect(1).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    bed.expect_no_complaints();
}

fn kernel_reads_one(bed: &Bed, stream: &Stream, tcp: &mut TcpStream) {
    assert_eq!(bed.host_sends(stream, 9, 1), kernel_reads(tcp, 1));
}

#[test]
fn a_slow_reader_closes_the_window_and_opens_it_again() {
    let _turn = alone();
    if !ready() {
        return;
    }
    let bed = Bed::new([clean(), clean()], [1500, 1500]);
    let capture = Capture::start(&bed.router, "link");
    let pause = Duration::from_secs(2);

    let (stream, mut tcp) = bed.connect(Opens::Host, quick());
    thread::scope(|s| {
        let sent = s.spawn(|| bed.host_sends(&stream, 1, 20 * MB));
        thread::sleep(pause);
        assert_eq!(kernel_reads(&mut tcp, 20 * MB), sent.join().unwrap());
    });
    let small = ConnectionConfig { receive_buffer: 100_000, ..quick() };
    let (stream, mut tcp) = bed.connect(Opens::Kernel, small);
    thread::scope(|s| {
        let sent = s.spawn(|| kernel_sends(&mut tcp, 1, 20 * MB));
        thread::sleep(pause);
        assert_eq!(bed.host_reads(&stream, 20 * MB), sent.join().unwrap());
    });

    let packets = capture.finish();
    for side in [HOST, KERNEL] {
        let closed = format!("ip.src == {side} && tcp.window_size == 0 && tcp.flags.reset == 0");
        assert!(packets.count(&closed) > 0, "{side} never closed its window");
    }
    let counters = Counters::of(&bed.kernel);
    assert!(counters.get("TcpExt.TCPWinProbe") > 0, "the kernel probed our closed window");
    bed.expect_no_complaints();
}

#[test]
fn a_router_with_a_smaller_mtu_is_obeyed() {
    let _turn = alone();
    if !ready() {
        return;
    }
    // The kernel's device takes 1500 bytes, so it offers an MSS of 1460; the router's only 1400.
    let bed = Bed::new([clean(), clean()], [1400, 1500]);
    let capture = Capture::start(&bed.router, "host");
    transfer(&bed, Opens::Host, true, 5 * MB);
    transfer(&bed, Opens::Kernel, true, 5 * MB);
    let packets = capture.finish();
    let too_big = packets.count(&format!("ip.src == {HOST} && ip.len > 1400"));
    let icmp = Counters::of(&bed.router).get("Icmp.OutDestUnreachs");
    println!("{too_big} packets were too big, {icmp} ICMP messages said so");
    assert!(icmp > 0, "the router had something to say");
    assert!(too_big < 200, "and was listened to: {too_big} packets were too big");
    bed.expect_no_complaints();
}
