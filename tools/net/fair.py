"""What `send` takes beside one kernel TCP, over emulated links, and what another TCP takes in its place."""

import math
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from bed import Bed, Behind, Link
from parts import between, table
from polypath import Pair
from rivals import tcp

SECONDS, FROM = 60, 10
# Beds at once: each moves 8 to 12 Mbit/s.
AT_ONCE = 4
# Bytes of a full segment of the kernel's TCP, and on the wire.
PAYLOAD, PACKET = 1448, 1500


def one_link():
    """Two paths through one bottleneck."""
    return Behind(Link(8, 30, queue=1.8)), Behind.T


def two_links():
    """Two links, the rival on the first."""
    return Bed((Link(8, 30, queue=1.8), Link(4, 30, queue=1.8))), 0


def beside(topology, ours, rival):
    """Goodput of `ours` on the first link over that of one TCP beside it: a controller of `send`, or None for another TCP; and the
    latest delivery of a link, s."""
    bed, side = topology()
    with bed:
        began = time.monotonic()
        samples = []
        runs = [threading.Thread(target=lambda: samples.extend(tcp(bed, None, SECONDS, cc=rival, side=side)[1]))]
        if ours is None:
            runs.append(threading.Thread(target=tcp, args=(bed, None, SECONDS), kwargs={"cc": rival}))
        else:
            pair = Pair(bed)
            file = bed.file("long", 12_000_000 // 8 * SECONDS)
            pair.receive()
            pair.send(file, more=("--cc", ours))
        for run in runs:
            run.start()
        time.sleep(max(0.0, began + SECONDS - time.monotonic()))
        carried = [(s["at"] - bed.samples[0]["at"], s["links"][0]["hops"][0]["bytes_left"]) for s in bed.samples]
        offset, late = began - bed.began, bed.worst_lateness
        for run in runs:
            run.join()
    theirs = between(samples, FROM, SECONDS - 1) * PACKET / PAYLOAD
    return (between(carried, FROM + offset, SECONDS - 1 + offset) - theirs) / theirs, late


def fair(runs):
    """8 Mbit/s, 60 ms round trip (and 4 Mbit/s beside it): `send` over one kernel TCP, and another TCP over that one, 60 s each."""
    cells = [(topology, ours, rival) for topology in (one_link, two_links) for rival in ("reno", "cubic")
             for ours in ("polypath", "newreno", None)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rounds = [pool.map(lambda cell: beside(*cell), cells) for _ in range(runs)]
        rounds = [list(values) for values in rounds]
    for topology in (one_link, two_links):
        rows = {}
        for values in rounds:
            for (there, ours, rival), (ratio, _) in zip(cells, values):
                if there is topology:
                    rows.setdefault(f"{f'--cc {ours}' if ours else rival}, beside {rival}", []).append(ratio)
        table(f"{topology.__doc__.rstrip('.')}: over the TCP beside it", rows)
        for name, values in rows.items():
            print(f"  {name:34}geometric mean {math.exp(statistics.fmean(map(math.log, values))):.3f}")
    print(f"\n  latest delivery of an emulated link: {1e3 * max(late for values in rounds for _, late in values):.1f} ms")


PARTS = {"fair": fair}
