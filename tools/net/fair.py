"""What `send` takes beside one kernel TCP, over emulated links, and what another TCP takes in its place."""

import math
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from bed import Bed, Behind, Link
from parts import table
from polypath import Pair
from rivals import tcp, trickle
from tunnel import INNER, LINKS, Tunnel

SECONDS, FROM = 60, 10
# One of the two begins so much later, in turns, s.
LATER = 2
# Beds at once: each moves 8 to 12 Mbit/s. Of those that move 100, one.
AT_ONCE = 6
# Bytes of a full segment of the kernel's TCP, and on the wire.
PAYLOAD, PACKET = 1448, 1500
# Small packets at random times among the others, as a share of the link's rate. Without them all packets arrive at the queue a whole number of packet times and a remainder after
# others left it, and the remainder decides who finds it full (traffic phase effects, Floyd and Jacobson).
TRICKLE = 0.01
TCPS = ("reno", "cubic")
# The ratio to a TCP that carries nothing; its inverse is the least.
MOST = 1000
# One TCP CUBIC through the daemons, and through daemons whose base law is NewReno.
UP, UP_NEWRENO = "polypath up", "polypath up, newreno"
BESIDE_EACH = {"cubic": (UP, "cubic"), "reno": (UP, "cubic", UP_NEWRENO, "reno")}
LANES = {UP: "", UP_NEWRENO: 'cc = { algorithm = "polypath", base = "newreno" }'}


# A bed, the side at which the rival is, and the rate of the first link, Mbit/s.
def one_path():
    """One path, one link."""
    return Bed((Link(8, 30, queue=1.8),)), 0, 8


def one_link():
    """Two paths through one bottleneck."""
    return Behind(Link(8, 30, queue=1.8)), Behind.T, 8


def two_links():
    """Two links, the rival on the first."""
    return Bed((Link(8, 30, queue=1.8), Link(4, 30, queue=1.8))), 0, 8


def links_1():
    """Links 1 of bonding tools, 8/60 + 4/60, the rival on the first."""
    return Bed(LINKS["1: 8/60 + 4/60"]), 0, 8


def fast_link():
    """One path, one link of 100 Mbit/s, 20 ms."""
    return Bed((Link(100, 10, queue=1),)), 0, 100


TOPOLOGIES = (one_path, one_link, two_links)


def growth(samples, begin, end):
    """What a growing count grew by between two times."""
    at = [max((got for when, got in samples if when <= t), default=0) for t in (begin, end)]
    return at[1] - at[0]


def over(ours, theirs):
    """The ratio of two counts. It has a logarithm even if one of the two stalls."""
    return min(MOST, max(1 / MOST, ours / theirs)) if theirs > 0 else MOST


class Run:
    """One run of something beside a TCP of the kernel, timed from its beginning."""

    def __init__(self, bed, side):
        self.bed, self.side, self.began, self.threads = bed, side, time.monotonic(), []

    def start(self, after, what):
        """Begins `what` so late; the list into which it puts the samples that it returns, which count from then."""
        samples = []

        def work():
            time.sleep(max(0.0, self.began + after - time.monotonic()))
            samples.extend((after + when, got) for when, got in what() or ())

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        return samples

    def tcp(self, law, after, side):
        """A TCP of the kernel until the end."""
        return self.start(after, lambda: tcp(self.bed, None, SECONDS - after, cc=law, side=side)[1])

    def carried(self):
        """What the first link carried."""
        first, offset = self.bed.samples[0]["at"], self.began - self.bed.began
        return [(s["at"] - first - offset, s["links"][0]["hops"][0]["bytes_left"]) for s in self.bed.samples]

    def end(self):
        for thread in self.threads:
            thread.join()


def beside(topology, ours, rival, first):
    """Goodput of `ours` on the first link over that of one kernel TCP beside it, and the latest delivery of a link, s. `ours` is a controller
    of `send`, a law of the kernel's TCP, or one of `LANES`. It begins before the other if `first`."""
    bed, side, rate = topology()
    with bed:
        pair = None if ours in (*TCPS, *LANES) else Pair(bed)
        if ours in LANES:
            Tunnel(bed, lane=LANES[ours])
        file = pair and bed.file("long", 12_000_000 // 8 * SECONDS)
        if pair:
            pair.receive()
        run = Run(bed, side)
        late = (0, LATER) if first else (LATER, 0)
        small = run.start(0, lambda: trickle(bed, TRICKLE * rate, run.began + SECONDS, side))
        theirs = run.tcp(rival, late[1], side)
        if pair:
            run.start(late[0], lambda: pair.send(file, more=("--cc", ours.removeprefix("--cc "))) and None)
        elif ours in LANES:
            run.start(late[0], lambda: tcp(bed, None, SECONDS - late[0], to=INNER[1])[1])
        else:
            run.tcp(ours, late[0], 0)
        time.sleep(max(0.0, run.began + SECONDS - time.monotonic()))
        carried, latest = run.carried(), bed.worst_lateness
        run.end()
    part = (FROM, SECONDS - 1)
    lost, all_of_it = growth(theirs, *part) * PACKET / PAYLOAD, growth(carried, *part) - growth(small, *part)
    return over(all_of_it - lost, lost), latest


def compare(runs, topologies, beside_each, at_once=AT_ONCE):
    """Over each topology, beside each TCP: what is in `beside_each` for it."""
    cells = [(topology, ours, rival) for topology in topologies for rival, mine in beside_each.items() for ours in mine]
    with ThreadPoolExecutor(at_once) as pool:
        rounds = [pool.map(lambda cell, n=n: beside(*cell, first=n % 2 == 0), cells) for n in range(runs)]
        rounds = [list(values) for values in rounds]
    for topology in topologies:
        rows = {}
        for values in rounds:
            for (there, ours, rival), (ratio, _) in zip(cells, values):
                if there is topology:
                    rows.setdefault(f"{ours}, beside {rival}", []).append(ratio)
        table(f"{topology.__doc__.rstrip('.')}: over the TCP beside it", rows)
        for name, values in rows.items():
            print(f"  {name:34}geometric mean {math.exp(statistics.fmean(map(math.log, values))):.3f}")
    print(f"\n  latest delivery of an emulated link: {1e3 * max(late for values in rounds for _, late in values):.1f} ms")


def fair(runs):
    """8 Mbit/s, 60 ms round trip (and 4 Mbit/s beside it): `send` over one kernel TCP, and another TCP over that one, 60 s each."""
    compare(runs, TOPOLOGIES, dict.fromkeys(TCPS, ("--cc polypath", "--cc newreno", *TCPS)))


def tunnel_fair(runs):
    """The same links: one TCP CUBIC through the daemons over one kernel TCP, and a CUBIC of the kernel in its place, 60 s each; beside
    Reno also daemons with the base law `newreno`, and a Reno in their place."""
    compare(runs, (one_link, two_links), BESIDE_EACH)


def tunnel_fair_1(runs):
    """The same over links 1 of `tunnel`, of round trips of 120 ms."""
    compare(runs, (links_1,), BESIDE_EACH)


def fast_fair(runs):
    """100 Mbit/s, 20 ms, a queue of one round trip: one TCP CUBIC through the daemons over one kernel CUBIC, and another in its place, 60 s each."""
    compare(runs, (fast_link,), {"cubic": (UP, "cubic")}, at_once=1)


PARTS = {"fair": fair, "tunnel_fair": tunnel_fair, "tunnel_fair_1": tunnel_fair_1, "fast_fair": fast_fair}
