"""Many connections at once through the daemons, and both directions at once."""

from concurrent.futures import ThreadPoolExecutor

from bed import Bed
from fair import growth
from homes import WAYS, Access
from parts import FIBRE_LTE, table
from rivals import tcp

# The first seconds, which do not count, and the length of each connection, s.
EARLY, LENGTH = 5, 20
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


PARTS = {"tunnel_many": tunnel_many, "tunnel_both": tunnel_both}
