"""Many HTTP connections through the daemons, as of pages."""

import statistics
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bed import Bed, Link
from parts import FIBRE_LTE, median, table
from polypath import BINARY
from tunnel import INNER, Tunnel
from versions import BEFORE

WORDS = (sys.executable, Path(__file__).with_name("pages.py"))


def serve(bed, *addresses):
    for address in addresses:
        bed.spawn(1, *WORDS, "serve", address)
    time.sleep(1)


def get(bed, address, count, at_once, size):
    """Seconds that `count` connections of host a take, `at_once` at a time, each for `size` bytes."""
    return float(bed.spawn(0, *WORDS, "get", address, count, at_once, size).output(within=120))


def in_turns(ways, n):
    """The ways in the order of round `n`: every second round begins with the last."""
    return list(ways)[:: 1 if n % 2 == 0 else -1]


def fresh(stack, binaries):
    """Daemons that have carried nothing: the ways through them, and over path 1."""
    beds = {name: stack.enter_context(Bed(FIBRE_LTE)) for name in binaries}
    for name, bed in beds.items():
        Tunnel(bed, binary=binaries[name])
    first = beds["polypath up"]
    ways = {name: (bed, INNER[1]) for name, bed in beds.items()} | {"TCP, path 1": (first, first.links[0][1])}
    for bed, address in ways.values():
        serve(bed, address)
    return ways


def tunnel_pages(runs):
    """Seconds that HTTP connections take over links 2, many at a time and one after the other: through daemons that have carried nothing
    (others in each round), after one of 30 MB, and after 100 of 200 kB. They go through the daemons and over path 1, in turns;
    $POLYPATH_BEFORE adds another version."""
    binaries = {"polypath up": BINARY} | ({f"polypath up, {BEFORE}": BEFORE} if BEFORE else {})
    many, few = ("200 connections of 30 kB, 20 at a time", 200, 20, 30_000), ("10 of 30 kB, one after the other", 10, 1, 30_000)

    def pages(what, *numbers, ways):
        """`ways` makes or has the ways of a round."""
        took = {}
        for n in range(runs):
            with ExitStack() as stack:
                each = ways(stack)
                for name in in_turns(each, n):
                    took.setdefault(name, []).append(get(*each[name], *numbers))
        table(f"{what}, s", took)

    print("\ndaemons that have carried nothing:")
    pages(*many, ways=lambda stack: fresh(stack, binaries))
    pages(*few, ways=lambda stack: fresh(stack, binaries))
    with ExitStack() as stack:
        ways = fresh(stack, binaries)
        pages = partial(pages, ways=lambda _: ways)
        for way in ways.values():
            get(*way, 1, 1, 30_000_000)
        print("\nafter one of 30 MB:")
        pages(*many)
        pages(*few)
        pages("20 of 1 MB, 20 at a time", 20, 20, 1_000_000)
        pages("100 of 200 kB, 20 at a time", 100, 20, 200_000)
        print("\nafter these 100 connections:")
        pages(*many)
        pages(*few)


def pages(runs):
    """Seconds that HTTP connections take through the daemons once these have measured the paths, over what they take over path 1
    alone and through the daemons of $POLYPATH_BEFORE, geometric means; in turns, over links 2 and over two equal links."""
    ways = {"": (BINARY, 2), "path 1 alone": (BINARY, 1)} | ({BEFORE: (BEFORE, 2)} if BEFORE else {})
    for links, name in ((FIBRE_LTE, "links 2"), ((Link(20, 20), Link(20, 20)), "twice 20/20")):
        beds = {way: Bed(links) for way in ways}
        for way, bed in beds.items():
            binary, paths = ways[way]
            Tunnel(bed, paths=paths, binary=binary)
            serve(bed, INNER[1])
            get(bed, INNER[1], 1, 1, 30_000_000)
        for count, at_once in ((200, 20), (10, 1)):
            for size in (10_000, 50_000, 200_000):
                took = {way: [] for way in ways}
                for n in range(runs):
                    for way in in_turns(ways, n):
                        took[way].append(get(beds[way], INNER[1], count, at_once, size))
                print(f"\n{name}: {count} of {size // 1000} kB, {at_once} at a time: {median(took[''])} s")
                for way in list(ways)[1:]:
                    ratio = statistics.geometric_mean(a / b for a, b in zip(took[""], took[way]))
                    print(f"  over {way:40}{ratio:8.3f}", flush=True)
        for bed in beds.values():
            bed.close()


PARTS = {part.__name__: part for part in (tunnel_pages, pages)}
