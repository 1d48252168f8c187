"""What is not TCP through `polypath up`: delays beside a saturating transfer, UDP in bulk, and TCP as packets."""

import json
import math
import re
import socket
import threading
import time

from bed import TARGET, Bed, Link
from parts import FIBRE_LTE, share, table
from rivals import tcp
from tunnel import CUT, END, INNER, LINKS, RESTORE, Outage, Tunnel, tunnel

AS_PACKETS = 'exclude = ["10.99.0.0/24"]'
LANES = {"TCP lane": "", "TCP as packets": AS_PACKETS}


class Load:
    """One TCP connection that saturates the links from host a to host b while it is entered."""

    def __init__(self, bed, seconds):
        self.thread = threading.Thread(target=tcp, args=(bed, None, seconds), kwargs={"to": INNER[1]}, daemon=True)

    def __enter__(self):
        self.thread.start()
        time.sleep(5)

    def __exit__(self, *_):
        self.thread.join()


def pings(bed, seconds):
    """Round trips of ten pings a second through the tunnel, s; a lost one is infinite."""
    count = int(seconds * 10)
    child = bed.spawn(0, "ping", "-c", count, "-i", "0.1", "-W", "2", INNER[1])
    out = child.communicate(timeout=seconds + 30)[0]
    took = [float(ms) / 1e3 for ms in re.findall(r"time=([0-9.]+) ms", out)]
    return took + [math.inf] * (count - len(took))


def voip(bed, seconds, size=172, pause=0.02, ends=INNER):
    """Round trips of 50 UDP packets a second between two addresses, echoed, s; a lost one is infinite."""
    there, here = (bed.socket(side, kind=socket.SOCK_DGRAM) for side in (1, 0))
    there.bind((ends[1], 0))
    here.bind((ends[0], 0))
    took, count, done = {}, int(seconds / pause), threading.Event()

    def answer():
        while not done.is_set():
            try:
                data, who = there.recvfrom(2048)
            except TimeoutError:
                continue
            there.sendto(data, who)

    def listen():
        while not done.is_set():
            try:
                number = int.from_bytes(here.recv(2048)[:4], "big")
            except TimeoutError:
                continue
            took.setdefault(number, time.monotonic() - sent[number])

    for end in (there, here):
        end.settimeout(0.5)
    threads = [threading.Thread(target=work, daemon=True) for work in (answer, listen)]
    sent, began = [], time.monotonic()
    for thread in threads:
        thread.start()
    for number in range(count):
        time.sleep(max(0.0, began + number * pause - time.monotonic()))
        sent.append(time.monotonic())
        here.sendto(number.to_bytes(4, "big") + bytes(size - 4), there.getsockname())
    time.sleep(2)
    done.set()
    for thread in threads:
        thread.join()
    return [took.get(number, math.inf) for number in range(count)]


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def packets_delay(runs, seconds=15):
    """Ping and 50 UDP packets a second over 100/10 + 40/40, idle and beside one TCP connection that saturates them."""
    for lane, keys in LANES.items():
        rows, lost = {}, {}
        with Bed(FIBRE_LTE) as bed:
            Tunnel(bed, lane=keys)
            for _ in range(runs):
                idle = {"ping": pings(bed, 5), "UDP": voip(bed, 5)}
                loaded = {}
                for name, probe in {"ping": pings, "UDP": voip}.items():
                    with Load(bed, seconds + 7):
                        loaded[name] = probe(bed, seconds)
                    time.sleep(1)
                for what, took in {"idle": idle, lane: loaded}.items():
                    for name, values in took.items():
                        rows.setdefault(f"{name}, {what}: median", []).append(quantile(values, 0.5))
                        rows.setdefault(f"{name}, {what}: p99", []).append(quantile(values, 0.99))
                        lost.setdefault(f"{name}, {what}", []).append(sum(map(math.isinf, values)) / len(values))
        table(f"round trips beside a saturating connection ({lane}), s", rows)
        table("the part that was lost", lost)


def packets_udp(runs, seconds=10):
    """UDP in bulk (iperf3, more than the links carry) over links of bonding tools: share of the sum."""
    for title, links in LINKS.items():
        total, shares = sum(link.rates[0] for link in links), []
        with Bed(links) as bed:
            Tunnel(bed)
            for _ in range(runs):
                server = bed.spawn(1, "iperf3", "-s", "-1", "-B", INNER[1])
                time.sleep(0.3)
                client = bed.spawn(0, "iperf3", "-u", "-c", INNER[1], "-b", f"{1.2 * total}M", "-l", 1200, "-t", seconds,
                                   "-O", 3, "-J")
                out = json.loads(client.communicate(timeout=seconds + 60)[0])
                server.kill()
                server.wait()
                received = out["end"]["sum_received"]
                shares.append(received["bits_per_second"] / 1e6 / total)
                time.sleep(1)
        table(f"{title}: UDP, share of the sum", {"polypath up": shares})


def packets_tcp(runs, seconds=15, only=None):
    """One TCP CUBIC connection that travels as packets over links of bonding tools, beside kernel MPTCP: share of the sum."""
    tunnel(runs, seconds, only, lane=AS_PACKETS, called="as packets")


def quic(bed, address, seconds):
    """Times, s, and the bytes that a QUIC client on host a had from a server on host b by then."""
    words = (TARGET / "examples" / "quic", "--certificate", bed.dir / "server.der")
    server = bed.spawn(1, *words, "serve", f"{address}:443")
    time.sleep(0.5)
    out, err = bed.spawn(0, *words, "get", f"{address}:443", "--seconds", seconds).communicate(timeout=seconds + 30)
    server.kill()
    server.wait()
    if not out:
        raise RuntimeError(err)
    return json.loads(out)


def packets_quic(runs, seconds=15):
    """A QUIC download (quinn, CUBIC) over links 1, 2 and 4, and in turns over the first link without a tunnel: share of the sum."""
    for title in [title for title in LINKS if title[0] in "124"]:
        links, shares = LINKS[title], {}
        total = sum(link.rates[0] for link in links) * 1e6
        with Bed(links) as bed:
            Tunnel(bed)
            for _ in range(runs):
                for name, address in {"polypath up": INNER[1], "the first link alone": bed.links[0][1]}.items():
                    shares.setdefault(name, []).append(share(quic(bed, address, seconds + 5), total, start=5.0))
        table(f"{title}: QUIC, share of the sum", shares)


def packets_cut(runs):
    """Path 1 of 100/10 + 40/40 falls silent for 8 s: a TCP connection as packets, and 50 UDP packets a second beside it."""
    outage, lost = Outage(), []
    for _ in range(runs):
        early = 6.0
        schedule = [(early + CUT, "down"), (early + RESTORE, "up")]
        with Bed((Link(100, 10, schedule=schedule), Link(40, 40))) as bed:
            Tunnel(bed, lane=AS_PACKETS)
            time.sleep(max(0.0, early - (time.monotonic() - bed.began)))
            took = []
            probe = threading.Thread(target=lambda: took.extend(voip(bed, END - 2)))
            probe.start()
            outage.add(tcp(bed, None, seconds=END, to=INNER[1])[1])
            probe.join()
        lost.append(sum(map(math.isinf, took)))
    outage.print("TCP as packets, silence on path 1")
    table("UDP packets lost of 1400 in 28 s", {"50 a second": lost})


PARTS = {part.__name__: part for part in (packets_delay, packets_udp, packets_tcp, packets_quic, packets_cut)}
