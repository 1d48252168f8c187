//! What the formats cost per packet.
#![allow(missing_docs)]

use std::hint::black_box;
use std::net::Ipv4Addr;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polypath_wire::checksum::checksum;
use polypath_wire::tcp::{SackBlock, TcpFlags, TcpHeader, Timestamps};
use polypath_wire::{Checksum, Seq};

const SUM: Checksum = Checksum::Ipv4 { src: Ipv4Addr::new(10, 0, 0, 1), dst: Ipv4Addr::new(10, 0, 0, 2) };

/// An acknowledgment with timestamps and three SACK blocks: the longest header in use.
fn ack() -> TcpHeader {
    let mut header = TcpHeader {
        src_port: 5001,
        dst_port: 40_000,
        seq: Seq(1),
        ack: Seq(1_000_000),
        flags: TcpFlags::ACK,
        window: 0xffff,
        ..Default::default()
    };
    header.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    for i in 1..=3 {
        header.options.sack.push(SackBlock { start: Seq(i * 10_000), end: Seq(i * 10_000 + 1448) });
    }
    header
}

/// A data segment of 1448 bytes with timestamps.
fn data() -> (TcpHeader, Vec<u8>) {
    let mut header = ack();
    header.options.sack = Default::default();
    let mut segment = vec![0x5a; header.len() + 1448];
    header.emit(&mut segment, SUM).expect("there is room");
    (header, segment)
}

fn tcp(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp");
    let header = ack();
    let mut bytes = [0; 60];
    let len = header.emit(&mut bytes, SUM).expect("60 bytes hold any header");
    group.bench_function("emit ack with timestamps and SACK", |b| {
        b.iter(|| black_box(&header).emit(black_box(&mut bytes[..len]), SUM))
    });
    group.bench_function("parse ack with timestamps and SACK", |b| {
        b.iter(|| TcpHeader::parse(black_box(&bytes[..len]), SUM))
    });
    group.bench_function("clone ack with timestamps and SACK", |b| b.iter(|| black_box(&header).clone()));
    let (header, mut segment) = data();
    group.bench_function("emit 1448 bytes of data", |b| {
        b.iter(|| black_box(&header).emit(black_box(&mut segment), SUM))
    });
    group.bench_function("parse 1448 bytes of data", |b| {
        b.iter(|| TcpHeader::parse(black_box(&segment), SUM))
    });
    group.finish();
}

fn sum(c: &mut Criterion) {
    let bytes = [0x5a; 1400];
    let mut group = c.benchmark_group("checksum");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("1400 bytes", |b| b.iter(|| checksum(black_box(&bytes))));
    group.finish();
}

criterion_group!(benches, tcp, sum);
criterion_main!(benches);
