"""Links of homes, that differ and change: a download with a call beside it, through the daemons, over the first link and by MPTCP."""

import math
import random
import threading

from bed import LEAST_QUEUE, Bed, Link
from packets import quantile, voip
from parts import between, table
from polypath import BINARY
from rivals import enable_mptcp, tcp
from tunnel import INNER, Tunnel

# The download's first seconds, which do not count, and its length, s.
EARLY, LENGTH = 3, 15


class Access(Link):
    """Rates down and up, Mbit/s; one-way delay, ms; queues of `hold` s at these rates. The rate down may `wander` between two each second."""

    def __init__(self, down, up, delay, hold, loss=0.0, wander=None):
        super().__init__(down, delay, back=up, loss=loss)
        self.hold, self.wander = hold, wander

    def hops(self):
        hops = super().hops()
        for hop, rate in zip(hops, self.rates):
            hop["queue"] = {"bytes": max(LEAST_QUEUE, int(self.hold * rate * 1e6 / 8))}
        if self.wander:
            chance = random.Random(1)
            steps = ((second, {"rate": int(chance.uniform(*self.wander) * 1e6)}) for second in range(1, 120))
            hops[0]["schedule"] = [{"at": int(at * 1e9), "change": change} for at, change in steps]
        return hops


HOMES = {
    "LTE 5 to 60/15, 25 ms + DSL 20/5, 10 ms": (Access(30, 15, 25, hold=2.0, wander=(5, 60)), Access(20, 5, 10, hold=0.2)),
    "LTE 30/10, 35 ms + satellite 20/5, 300 ms, 1 % loss": (Access(30, 10, 35, hold=0.5), Access(20, 5, 300, hold=0.6, loss=0.01)),
    "fibre 50/10, 8 ms + LTE 20/8, 30 ms + satellite 15/3, 300 ms":
        (Access(50, 10, 8, hold=0.15), Access(20, 8, 30, hold=1.0), Access(15, 3, 300, hold=0.6)),
    "fibre 100/20, 10 ms + GPRS 0.3/0.1, 60 ms": (Access(100, 20, 10, hold=0.1), Access(0.3, 0.1, 60, hold=1.0)),
}


def polypath(bed, binary=BINARY):
    Tunnel(bed, binary=binary)
    return {"to": INNER[1]}, INNER


def first_link(bed):
    return {}, bed.links[0]


def mptcp(bed):
    enable_mptcp(bed)
    return {"mptcp": True}, bed.links[0]


WAYS = {"polypath up": polypath, "TCP over the first link": first_link, "MPTCP": mptcp}


def homes(runs):
    """Homes with LTE, DSL, fibre, satellite: Mbit/s of a download, and the round trips of 50 UDP packets a second beside it."""
    for title, links in HOMES.items():
        rates, calls, lost, late = {}, {}, {}, 0.0
        for _ in range(runs):
            for way, begin in WAYS.items():
                with Bed(links) as bed:
                    options, ends = begin(bed)
                    took = []
                    call = threading.Thread(target=lambda: took.extend(voip(bed, LENGTH - EARLY - 2, ends=ends)))
                    threading.Timer(EARLY, call.start).start()
                    samples = tcp(bed, None, seconds=LENGTH, **options)[1]
                    call.join()
                    late = max(late, bed.worst_lateness)
                rates.setdefault(way, []).append(between(samples, EARLY, LENGTH) / 1e6)
                for part, of in ((0.5, "median"), (0.99, "p99")):
                    calls.setdefault(f"{way}: {of}", []).append(1e3 * quantile(took, part))
                lost.setdefault(way, []).append(sum(map(math.isinf, took)) / len(took))
        table(f"{title}: download, Mbit/s", rates)
        table("round trips of the call beside it, ms", calls)
        table("the part of it that was lost", lost)
        print(f"  packets left the links up to {late * 1e3:.0f} ms late")


PARTS = {"homes": homes}
