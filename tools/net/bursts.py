"""Segments that leave together: of one TCP CUBIC of the kernel alone over an emulated link, and of the laboratory's."""

import struct
import time
from collections import Counter

from alone import enlarge_buffers, keep, laboratory, link_of
from bed import ROOT, Behind, Link
from rivals import tcp

SECONDS, FROM = 25, 5
# Mbit/s, one-way delay in ms; a queue of one round trip.
LINKS = [(8, 30), (100, 10), (300, 5)]
# Bytes of a segment's payload and of its packet, with timestamps.
PAYLOAD, PACKET = 1448, 1500
# Begins a pcapng file; a block of it that is a packet; the bytes of an Ethernet header.
PCAPNG, PACKET_BLOCK, ETHERNET = b"\x0a\x0d\x0d\x0a", 6, 14
# Bytes that are kept of each packet: all headers.
KEPT = 100
OUT = ROOT / "out" / "bursts"
SPEC = """version = 1
title = "One TCP alone"
duration = "{seconds}s"
[connection]
send_buffer = "64MiB"
receive_buffer = "64MiB"
[[link]]
from = "a"
to = "r"
rate = "10Gbit/s"
delay = "0ms"
queue = "100000p"
[[link]]
from = "r"
to = "b"
rate = "{rate}Mbit/s"
delay = "{delay}ms"
queue = "{queue}B"
[[flow]]
name = "tcp"
from = "a"
to = "b"
paths = [["r"]]
connection = {{ cc = {{ algorithm = "cubic", slow_start = "hystart" }}, segmentation = "{segmentation}" }}
"""


def captured(capture):
    """Seconds and bytes from the IP header on, of each packet of a pcap file (Ethernet) or a pcapng file (IP), both in nanoseconds."""
    if capture[:4] == PCAPNG:
        at = 0
        while at < len(capture):
            kind, size = struct.unpack_from("<II", capture, at)
            if kind == PACKET_BLOCK:
                high, low, kept = struct.unpack_from("<III", capture, at + 12)
                yield (high << 32 | low) / 1e9, capture[at + 28 : at + 28 + kept]
            at += size
        return
    at = 24
    while at + 16 <= len(capture):
        seconds, nanos, kept = struct.unpack_from("<III", capture, at)
        yield seconds + nanos / 1e9, capture[at + 16 + ETHERNET : at + 16 + kept]
        at += 16 + kept


def packets(capture):
    """Seconds, sender's address, sequence number, acknowledgment and bytes of payload of each TCP packet."""
    for at, ip in captured(capture):
        header, total = 4 * (ip[0] & 15), struct.unpack_from(">H", ip, 2)[0]
        seq, ack, offset = struct.unpack_from(">IIB", ip, header + 4)
        yield at, ip[12:16], seq, ack, total - header - 4 * (offset >> 4)


def counts(capture, rate):
    """Counts bursts of new segments by their length, and acknowledgments by the segments that they cover, from `FROM` s on.
    The segments of a burst leave within half a packet time of the link of one another."""
    together, acked = Counter(), Counter()
    captured_packets = packets(capture)
    began, sender, seq, *_ = next(captured_packets)  # the SYN
    top, una, last, burst = seq + 1, None, None, 0
    for at, source, seq, ack, size in captured_packets:
        counts_now = at - began >= FROM
        if source != sender:
            if una is not None and counts_now and 0 < (ack - una) % 2**32 < 2**31:
                acked[round((ack - una) % 2**32 / PAYLOAD)] += 1
            una = ack
            continue
        end = (seq + size) % 2**32
        if size == 0 or not 0 < (end - top) % 2**32 < 2**31:
            continue
        if burst and at - last >= PACKET * 8 / (rate * 1e6) / 2:
            together[burst] += 1
            burst = 0
        top, last = end, at
        burst += -(-size // PAYLOAD) if counts_now else 0
    return together, acked


def kernel(link):
    """Captured at the sender, on a device that cuts segments: what leaves it together leaves as one packet."""
    rate = link.rates[0]
    with Behind(link) as bed:
        enlarge_buffers(bed)
        file = bed.dir / "capture"
        capture = bed.spawn(Behind.T, "tcpdump", "--time-stamp-precision", "nano", "-i", "path0", "-s", KEPT, "-B", 1 << 16, "-Z", "root", "-w", file, "tcp")
        time.sleep(1)
        tcp(bed, None, SECONDS, side=Behind.T)
        capture.terminate()
        capture.wait()
        return counts(file.read_bytes(), rate)


def ours(link, segmentation):
    """The laboratory's, captured where it leaves."""
    out = OUT / "run"
    spec = SPEC.format(seconds=SECONDS, segmentation=segmentation, **link_of(link))
    laboratory(out, spec, "--pcap", "--pcap-links", "a->r,r->a", "--pcap-bytes", str(KEPT))
    (file,) = out.rglob("*.pcapng")
    return counts(file.read_bytes(), link.rates[0])


def deciles(together):
    """With how many others a segment left, itself included: the tenth, the median and the ninth decile over all segments."""
    total, below, found = sum(n * times for n, times in together.items()), 0, []
    for n, times in sorted(together.items()):
        below += n * times
        while len(found) < 3 and below >= (0.1, 0.5, 0.9)[len(found)] * total:
            found.append(n)
    return found


def shown(together, acked):
    """The deciles, and what part of the acknowledgments is for one, two and more segments."""
    acks = sum(acked.values())
    parts = [sum(times for n, times in acked.items() if low <= n <= high) / acks for low, high in ((1, 1), (2, 2), (3, 1 << 20))]
    return f"{'/'.join(map(str, deciles(together))):12}" + "".join(f"{part:7.2f}" for part in parts)


def bursts(_):
    """How many segments of one CUBIC alone leave together, and how many an acknowledgment is for: the kernel's, and the laboratory's
    with `segmentation = "offload"` and without. Needs tcpdump. The kernel's numbers are in out/bursts as well."""
    print("\nsegments that leave together: tenth, median, ninth decile over segments; share of acknowledgments for 1, 2, more")
    entries = []
    for rate, delay in LINKS:
        link = Link(rate, delay, queue=1)
        print(f"  {rate} Mbit/s, {2 * delay} ms")
        theirs = kernel(link)
        entries.append({"link": rate, "delay": delay, "bytes": link_of(link)["queue"], "deciles": deciles(theirs[0])})
        for name, found in (("kernel", theirs), ("offload", ours(link, "offload")), ("standard", ours(link, "standard"))):
            print(f"    {name:10}{shown(*found)}", flush=True)
    print(f"  {keep(OUT, entries)}")


PARTS = {"bursts": bursts}
