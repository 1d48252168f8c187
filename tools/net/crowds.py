"""Many connections at once through the daemons, and both directions at once."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bed import Bed
from fair import growth
from homes import WAYS, Access, first_link, polypath
from parts import FIBRE_LTE, median, table
from rivals import tcp
from versions import BEFORE

# The first seconds, which do not count, and the length of each connection, s.
EARLY, LENGTH = 5, 20
# Sends in bulk both ways over many connections, and for how long, s.
EXCHANGE, EXCHANGED = (sys.executable, Path(__file__).with_name("exchange.py")), 15
# Of a home: what the second of both directions is for.
LTE_DSL = (Access(30, 10, 25, hold=0.5), Access(20, 5, 10, hold=0.2))


def jain(values):
    """Jain's index of fairness: 1 if all are equal, 1/n if one has all."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def goodputs(tasks):
    """Mbit/s of connections that begin together, from `EARLY` to `LENGTH` s."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(tcp, seconds=LENGTH, **task) for task in tasks]
        return [growth(task.result()[1], EARLY, LENGTH) * 8 / (LENGTH - EARLY) / 1e6 for task in running]


def tunnel_many(runs):
    """1, 10 and 100 connections at once over links 2: share of the sum, and how equal they are (Jain's index)."""
    total = sum(link.rates[0] for link in FIBRE_LTE)
    for count in (1, 10, 100):
        shares, equal = {}, {}
        for _ in range(runs):
            for way, begin in WAYS.items():
                with Bed(FIBRE_LTE) as bed:
                    options, _ends = begin(bed)
                    got = goodputs([{"bed": bed, "size": None, **options}] * count)
                shares.setdefault(way, []).append(sum(got) / total)
                equal.setdefault(way, []).append(jain(got))
        table(f"{count} at once: share of the sum", shares)
        if count > 1:
            table("Jain's index of their goodputs", equal)


def tunnel_both(runs):
    """LTE 30/10, 25 ms + DSL 20/5, 10 ms: a download alone, an upload alone, and both at once, Mbit/s."""
    rates = {}
    for _ in range(runs):
        for way, begin in WAYS.items():
            with Bed(LTE_DSL) as bed:
                options, ends = begin(bed)
                down = {"bed": bed, "size": None, **options}
                up = {**down, "side": 1, "server": 0, "to": ends[0]}
                alone = [*goodputs([down]), *goodputs([up])]
                for name, rate in zip(("download alone", "upload alone", "download beside it", "upload beside it"), alone + goodputs([down, up])):
                    rates.setdefault(f"{way}: {name}", []).append(rate)
    table("LTE 30/10, 25 ms + DSL 20/5, 10 ms, Mbit/s", rates)


def tunnel_exchange(runs):
    """20, then 200 connections send in bulk in both directions over a bare veth pair: Gbit/s, the share of the slower direction, and the
    longest time that any connection received nothing. Measured through the daemons and as plain TCP; $POLYPATH_BEFORE adds another version."""
    ways = {"polypath up": polypath} | ({BEFORE: lambda bed: polypath(bed, BEFORE)} if BEFORE else {}) | {"plain TCP": first_link}
    for count in (20, 200):
        found = {way: [] for way in ways}
        for n in range(runs):
            for way in list(ways)[:: 1 if n % 2 == 0 else -1]:
                with Bed([None]) as bed:
                    _options, ends = ways[way](bed)
                    found[way].append(exchanged(bed, ends[1], count))
        print(f"\n{count} connections both ways over a bare veth pair: Gbit/s; share of the slower direction; longest silence, s")
        for way, rows in found.items():
            print(f"  {way:30}" + "; ".join(median(column) for column in zip(*rows)), flush=True)


def exchanged(bed, address, count):
    server = bed.spawn(1, *EXCHANGE, "serve", address)
    time.sleep(0.5)
    client = bed.spawn(0, *EXCHANGE, "call", address, EXCHANGED, count)
    ends = [json.loads(child.output(within=EXCHANGED + 60)) for child in (client, server)]
    rates = [sum(got for got, _ in each) * 8 / EXCHANGED / 1e9 for each in ends]
    return sum(rates), min(rates) / sum(rates), max(silence for each in ends for _, silence in each)


PARTS = {"tunnel_many": tunnel_many, "tunnel_both": tunnel_both, "tunnel_exchange": tunnel_exchange}
