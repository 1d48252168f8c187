"""Another build of ours in turns with this one."""

import os

from bed import Bed
from packets import LANES
from parts import median
from polypath import BINARY, Pair
from tunnel import INNER, Tunnel, iperf

BEFORE = os.environ.get("POLYPATH_BEFORE")


def versions(runs, size=1_000_000_000, seconds=4):
    """This build over the one that $POLYPATH_BEFORE names, pair by pair: a file over one path and over two, and a TCP
    connection through the daemons."""
    if not BEFORE:
        return print("\nversions: skipped, $POLYPATH_BEFORE names no program")
    rows = {}
    with Bed([None, None]) as bed:
        pairs, path = {binary: Pair(bed, binary) for binary in (BINARY, BEFORE)}, bed.file("file", size)
        for paths, name in ((1, "file, one path"), (2, "file, two paths")):
            def transfer(binary, paths=paths):
                bed.warm(size)
                took, cpu = pairs[binary].transfer(path, paths)
                return size * 8 / took / 1e9, cpu

            rows[f"{name}, Gbit/s"], rows[f"{name}, CPU seconds of both ends"] = in_turns(runs, transfer)
    for name, lane in LANES.items():
        def through_daemons(binary, lane=lane):
            with Bed([None]) as bed:
                Tunnel(bed, lane=lane, binary=binary)
                return [iperf(bed, INNER[1], seconds)]

        [rows[f"{name}, Gbit/s"]] = in_turns(runs, through_daemons)
    print(f"\nthis build over {BEFORE}, {runs} pairs")
    for name, ratios in rows.items():
        print(f"  {name:42}{median(ratios)}", flush=True)


def in_turns(runs, measure):
    """Of each figure of `measure` what it is with this build over what it is with the other, in `runs` pairs."""
    pairs = []
    for n in range(runs):
        order = (BINARY, BEFORE) if n % 2 == 0 else (BEFORE, BINARY)
        found = {binary: measure(binary) for binary in order}
        pairs.append([this / other for this, other in zip(found[BINARY], found[BEFORE])])
    return list(zip(*pairs))


PARTS = {"versions": versions}
