"""The figures of docs/performance.md that a user would measure, part by part."""

import math
import statistics
import threading
import time

from bed import CROWD, Bed, Link
from polypath import Pair
from rivals import Https, Scp, enable_mptcp, tcp

FIBRE_LTE = (Link(100, 10), Link(40, 40))


def median(values):
    """Median with quartiles, or the median and the range of a few."""
    if len(values) < 4:
        return spread(values)
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:8.3f} ({low:.3f} to {high:.3f})"


def spread(values):
    """Median and range."""
    return f"{statistics.median(values):8.3f} ({min(values):.3f} to {max(values):.3f})"


def table(title, rows, shown=median):
    print(f"\n{title}")
    for name, values in rows.items():
        print(f"  {name:34}{shown(values)}", flush=True)


def raw(runs, size=1_000_000_000):
    """Bare veth pairs, MTU 1500, a file in memory to a file in memory, everybody in turns."""
    rates, cpu = {}, {}

    def note(name, transfer):
        bed.warm(size)
        took, seconds = transfer()
        rates.setdefault(name, []).append(size * 8 / took / 1e9)
        cpu.setdefault(name, []).append(seconds / size * 1e9)

    with Bed([None, None]) as bed:
        pair, path = Pair(bed), bed.file("file", size)
        rivals = {"curl, nginx, TLS 1.3": Https(bed), "scp": Scp(bed)}
        for _ in range(runs):
            for paths in (1, 2):
                note(f"polypath, {paths} path{'s' * (paths > 1)}", lambda: pair.transfer(path, paths=paths))
            for name, rival in rivals.items():
                note(name, lambda: rival.transfer(path))
    table("raw, Gbit/s", rates)
    table("raw, CPU seconds a GB, both ends", cpu)


def sizes(runs):
    """One file over 100/10 + 40/40 Mbit/s/ms: seconds until it is whole at the receiver."""
    for size, name in ((1_000, "1 KB"), (100_000, "100 KB"), (1_000_000, "1 MB"), (4_000_000, "4 MB"), (10_000_000, "10 MB")):
        took, drops = {}, []
        with Bed(FIBRE_LTE) as bed:
            enable_mptcp(bed)
            pair, https, scp, path = Pair(bed), Https(bed), Scp(bed), bed.file("file", size)
            for _ in range(runs):
                before = bed.dropped(0)
                took.setdefault("polypath", []).append(pair.transfer(path)[0])
                time.sleep(0.2)
                drops.append(bed.dropped(0) - before)
                took.setdefault("TCP, path 1", []).append(tcp(bed, size)[0])
                took.setdefault("MPTCP", []).append(tcp(bed, size, mptcp=True)[0])
                took.setdefault("curl over TLS, path 1", []).append(https.transfer(path)[0])
                took.setdefault("scp, path 1", []).append(scp.transfer(path)[0])
        table(f"{name}, s", took)
        table(f"{name}, packets that the queues dropped", {"polypath": drops})


def many(runs):
    """Directories of small files, over a bare veth and over 100/10 + 40/40: seconds until the program ends."""
    for links, name, number, size in (([None], "bare veth", 3000, 10_000), ([None], "bare veth", 300, 100_000),
                                      (FIBRE_LTE, "100/10 + 40/40", 300, 10_000), (FIBRE_LTE, "100/10 + 40/40", 100, 100_000)):
        took = {}
        with Bed(links) as bed:
            pair, scp, tree = Pair(bed), Scp(bed), bed.tree("tree", number, size)
            for _ in range(runs):
                took.setdefault("polypath", []).append(pair.transfer_tree(tree))
                took.setdefault("scp -r", []).append(scp.transfer_tree(tree))
                took.setdefault("tar | ssh tar", []).append(scp.tar_tree(tree))
        table(f"{number} files of {size // 1000} kB, {name}, s", took)


def between(samples, start, end):
    """Bit/s of a growing count of bytes between two times."""
    part = [(at, got) for at, got in samples if start <= at <= end]
    if len(part) < 2:
        return 0.0
    return (part[-1][1] - part[0][1]) * 8 / (part[-1][0] - part[0][0])


def share(samples, total, start=3.0):
    """Bytes received after `start` seconds, of what the links carry."""
    return between(samples, start, math.inf) / total


class Growth:
    """The bytes in a directory over time."""

    def __init__(self, directory):
        self.samples, self.began, self._stop = [], time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(directory,), daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, samples):
        """Samples that were taken already."""
        growth = cls.__new__(cls)
        growth.samples = samples
        return growth

    def _watch(self, directory):
        while not self._stop.wait(0.002):
            try:
                size = sum(file.stat().st_size for file in directory.iterdir())
            except FileNotFoundError:  # renamed between the two calls
                continue
            if not self.samples or size != self.samples[-1][1]:
                self.samples.append((time.monotonic() - self.began, size))

    def stop(self):
        self._stop.set()
        self._thread.join()
        return self.samples

    def longest_pause(self, begin, end):
        """The longest time without growth that began or ended between two times."""
        at = [t for t, _ in self.samples if t <= end + 30]
        return max((b - a for a, b in zip(at, at[1:]) if b >= begin and a <= end), default=float("inf"))


def steady(bed, pair, seconds, total):
    """Share of the sum that a long transfer has from its third second on; the Mbit/s of what went back meanwhile."""
    path = bed.file("long", int(total / 8 * seconds))
    receiver, growth = pair.receive("--once"), Growth(pair.inbox)
    sender = pair.send(path)
    time.sleep(3)
    back, began = bed.carried(1), time.monotonic()
    time.sleep(seconds - 4)
    back = (bed.carried(1) - back) * 8 / (time.monotonic() - began) / 1e6
    sender.communicate(timeout=120)
    receiver.communicate(timeout=30)
    samples = growth.stop()
    for file in pair.inbox.iterdir():
        file.unlink()
    return share(samples, total), back


def long(title, links, runs, seconds=15):
    shares, backs, total = {}, {}, sum(link.rates[0] for link in links) * 1e6
    with Bed(links) as bed:
        enable_mptcp(bed)
        pair = Pair(bed)
        for _ in range(runs):
            got, back = steady(bed, pair, seconds, total)
            shares.setdefault("polypath", []).append(got)
            backs.setdefault("polypath", []).append(back)
            before, began = bed.carried(1), time.monotonic()
            samples = tcp(bed, None, seconds=seconds, mptcp=True)[1]
            backs.setdefault("MPTCP", []).append((bed.carried(1) - before) * 8 / (time.monotonic() - began) / 1e6)
            shares.setdefault("MPTCP", []).append(share(samples, total))
    table(f"{title}: share of the sum", shares)
    table(f"{title}: Mbit/s of the way back", backs)


def asym(runs):
    """50/1 + 20/0.5 Mbit/s down/up, 15 and 25 ms: downloads."""
    long("50/1 + 20/0.5 Mbit/s down/up", (Link(50, 15, back=1), Link(20, 25, back=0.5)), runs)


def acks(runs):
    """100/10 + 40/40: what goes back."""
    long("100/10 + 40/40", FIBRE_LTE, runs)


def links(runs):
    """Shares of the sum over slow, unequal and lossy links and large queues (not in docs/performance.md)."""
    long("8/60 + 4/60", (Link(8, 60), Link(4, 60)), runs)
    long("100/10 + 10/100", (Link(100, 10), Link(10, 100)), runs)
    long("100/10 + 40/40, 1 % loss on the second", (Link(100, 10), Link(40, 40, loss=0.01)), runs)
    long("100/10 + 40/40, queues of 8 round trips", (Link(100, 10, queue=8), Link(40, 40, queue=8)), runs)


CUT, RESTORE = 5.0, 15.0


def cut(runs):
    """25/10 + 10/40: path 1 falls silent at 5 s and is back at 15 s of the bed's time."""
    outage, back = [], []
    schedule = [(CUT, "down"), (RESTORE, "up")]
    for _ in range(runs):
        with Bed((Link(25, 10, schedule=schedule), Link(10, 40))) as bed:
            pair = Pair(bed)
            path = bed.file("long", 60_000_000)
            pair.receive("--once")
            growth, offset = Growth(pair.inbox), time.monotonic() - bed.began
            sender = pair.send(path)
            sender.communicate(timeout=120)
            growth.stop()
            outage.append(growth.longest_pause(CUT - offset, CUT - offset + 3))
            back.append(time_to_fill(bed.samples, 25e6))
    table("silent cut, s without a byte for the application", {"polypath": outage})
    table("after the restore, s until path 1 carries 90 %", {"polypath": back})


def time_to_fill(samples, rate, windows=3):
    """From the restore until path 1 carries 90 % of its rate for three samples in a row."""
    full = 0
    for before, after in zip(samples, samples[1:]):
        carried = [s["links"][0]["hops"][0]["bytes_left"] for s in (before, after)]
        filled = (carried[1] - carried[0]) * 8 / (after["at"] - before["at"]) >= 0.9 * rate
        full = full + 1 if filled and before["at"] >= RESTORE else 0
        if full == windows:
            return after["at"] - RESTORE - 0.1 * windows
    return float("inf")


def restart(runs):
    """The receiver is killed in mid-transfer and started again: seconds until bytes come again."""
    pauses = []
    for _ in range(runs):
        with Bed((Link(25, 10), Link(10, 40))) as bed:
            pair = Pair(bed)
            path, receiver = bed.file("long", 40_000_000), pair.receive()
            growth = Growth(pair.inbox)
            sender = pair.send(path)
            time.sleep(3)
            receiver.kill()
            killed = time.monotonic() - growth.began
            pair.receive("--once")
            sender.communicate(timeout=120)
            growth.stop()
            pauses.append(growth.longest_pause(killed, killed + 1))
    table("receiver killed and started again, s without a byte", {"polypath": pauses})


def seconds(pair, path):
    """Seconds that a transfer takes, and CPU seconds of both ends; infinite if it fails."""
    try:
        return pair.transfer(path)
    except RuntimeError:
        return float("inf"), float("inf")


# As many as the cores give, from 16 addresses: puzzles are asked for all the time, and each is solved anew with at least 12
# zero bits, so that those whose packets are spoilt work as much.
ANEW = ("--anew", "--bits", 12, "--sources", 16, "--from", f"{CROWD[0]}:40000")
FLOODS = {
    "none": None,
    "I2 without a solution, spoilt": ("i2", "--spoil"),
    "I2 without a solution": ("i2",),
    "I2, 16 puzzles solved, spoilt": ("solved", "--spoil"),
    "I2, 16 puzzles solved": ("solved",),
    "I2, new puzzles solved, spoilt": ("solved", *ANEW, "--spoil"),
    "I2, new puzzles solved": ("solved", *ANEW),
    "NOTIFY": ("notify",),
    "I1": ("i1",),
}


def floods(runs, rate=10_000, size=1_000_000_000):
    """10,000 HIP packets a second: goodput on a bare veth pair, and the time of 1 KB. `spoilt`: the same packets, made as
    dearly, with a first byte that makes them no HIP."""
    rates, cpu, connects = ({name: [] for name in FLOODS} for _ in range(3))
    with Bed([None]) as bed:
        bed.crowd()
        pair, path, small = Pair(bed), bed.file("file", size), bed.file("small", 1000)
        for _ in range(runs):
            for name, kind in FLOODS.items():
                flood = kind and pair.flood(kind[0], rate, *kind[1:])
                time.sleep(0.6)
                took, cost = seconds(pair, path)
                rates[name].append(size * 8 / took / 1e6)
                cpu[name].append(cost / size * 1e9)
                connects[name].append(seconds(pair, small)[0])
                if flood:
                    flood.kill()
    table(f"flood of {rate} packets a second: goodput, Mbit/s", rates)
    table("goodput beside that of spoilt packets, run by run", {
        name: [ours / theirs for ours, theirs in zip(rates[name], rates[f"{name}, spoilt"])]
        for name in FLOODS if f"{name}, spoilt" in FLOODS})
    table("CPU seconds a GB, both ends", cpu)
    table("1 KB from the start of send, s", connects)


PARTS = {part.__name__: part for part in (raw, sizes, many, acks, asym, links, cut, restart, floods)}
