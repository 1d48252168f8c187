"""One TCP of the kernel alone over one emulated link, and the laboratory's of the same law over the same link."""

import csv
import json
import socket
import statistics
import struct
import time
from concurrent.futures import ThreadPoolExecutor

from alone import enlarge_buffers, keep, laboratory, link_of
from bed import ROOT, Bed, Link
from fair import growth
from rivals import tcp

SECONDS, FROM = 120, 20
# The end of what is drawn, s. The cuts of both come as often to one part in fifty only, so later ones lie beside each other.
DRAWN_TO = 60
# Mbit/s, one-way delay in ms, queue in round trips: pipes of 13 to 833 packets, queues that outlast a reduction and queues that do not.
LINKS = [(8, 10, 2), (8, 30, 1.8), (8, 30, 0.3), (20, 60, 1), (20, 60, 0.2), (30, 40, 1.5), (100, 50, 0.5)]
LAWS = {"cubic": '"cubic", slow_start = "hystart"', "reno": '"newreno"'}
AT_ONCE = 4
# Between two looks at the window, s.
LOOK = 0.05
# A window below this part of the largest since the last cut has been cut: CUBIC keeps 0.7, Reno a half.
CUT = 0.8
# Of the kernel's `struct tcp_info`: the congestion window in segments, and segments sent again.
CWND, RETRANSMITTED = 80, 100
OUT = ROOT / "out" / "windows"
SPEC = """version = 1
title = "One TCP alone"
duration = "{seconds}s"
measure_from = "{begin}s"
[[link]]
from = "a"
to = "b"
rate = "{rate}Mbit/s"
delay = "{delay}ms"
queue = "{queue}B"
[[flow]]
name = "tcp"
from = "a"
to = "b"
connection = {{ cc = {{ algorithm = {law} }}, send_buffer = "64MiB", receive_buffer = "64MiB" }}
[[figure]]
kind = "time"
title = "Congestion window: the laboratory (line) and Linux (triangles)"
metric = "window"
bin = "{look}s"
one_run = true
series = [{{ flow = "tcp", label = "window" }}]
"""
DRAWN = "kernel.csv"


class Watch:
    """Samples (time, value) of what the kernel says of a connection."""

    def __init__(self):
        self.windows, self.again = [], []

    def __call__(self, client):
        began = time.monotonic()
        try:
            while True:
                info, at = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), time.monotonic() - began
                self.windows.append((at, *struct.unpack_from("I", info, CWND)))
                self.again.append((at, *struct.unpack_from("I", info, RETRANSMITTED)))
                time.sleep(LOOK)
        except OSError:  # closed
            pass


def kernel(link, law):
    """What a TCP of the kernel did alone, its windows (time, segments), and the latest delivery of the link, s."""
    watch = Watch()
    with Bed((link,)) as bed:
        enlarge_buffers(bed)
        got = tcp(bed, None, SECONDS, cc=law, watch=watch)[1]
        late = bed.worst_lateness
    rate = growth(got, FROM, SECONDS) * 8e-6 / (SECONDS - FROM)
    return {"rate": rate, "again": growth(watch.again, FROM, SECONDS), **shape(watch.windows)}, watch.windows, late


def ours(link, law, points=()):
    """The same of the laboratory's, and the drawing. If there are `points` (time, segments), they are drawn beside its windows up to `DRAWN_TO`."""
    out = OUT / "run"
    drawn = "".join(f"window,{at},{segments}\n" for at, segments in points)
    spec = SPEC.format(seconds=DRAWN_TO if points else SECONDS, begin=FROM, law=LAWS[law], look=LOOK, **link_of(link))
    spec += f'published = "{DRAWN}"\n' if points else ""
    said = laboratory(out, spec, "--json", files=[(DRAWN, "series,x,y\n" + drawn)])
    flow = json.loads(said)["runs"][0]["flows"][0]
    with open(out / "figure-1.csv") as figure:
        windows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(figure) if row["source"] == "ours"]
    return {"rate": flow["goodput_bps"] / 1e6, "again": flow["retransmissions"], **shape(windows)}, windows, out / "figure-1.svg"


def shape(windows):
    """Mean and largest window once the start is over, and seconds between two cuts."""
    values = [(at, window) for at, window in windows if at >= FROM]
    cuts, top, falls = [], 0, False
    for at, window in values:
        if falls and window <= top:
            top = window
        elif window < CUT * top:
            cuts.append(at)
            top, falls = window, True
        else:
            top, falls = max(top, window), False
    period = (cuts[-1] - cuts[0]) / (len(cuts) - 1) if len(cuts) > 1 else 0
    return {"mean": statistics.fmean(window for _, window in values), "largest": max(window for _, window in values), "period": period}


def beside(windows, theirs):
    """Points of `theirs`, two a second, moved in time by what makes them most like `windows`: the two start differently."""
    bins = {round(at / LOOK): window for at, window in windows}

    def moved(by):
        return [(at + by, window) for at, window in theirs[:: round(0.5 / LOOK)] if at >= FROM and FROM <= at + by < DRAWN_TO - 1]

    def unlike(by):
        return statistics.fmean(abs(bins.get(round(at / LOOK), window) - window) for at, window in moved(by))

    return moved(min((n * LOOK for n in range(-400, 401)), key=unlike))


def window(_):
    """One TCP of the kernel alone over one emulated link, CUBIC and Reno, and the laboratory's: Mbit/s and windows from 20 s to 120 s.
    Drawings and numbers are in out/windows."""
    cells = [(law, at) for law in LAWS for at in LINKS]
    links = [Link(rate, delay, queue=queue) for _, (rate, delay, queue) in cells]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        theirs = list(pool.map(kernel, links, (law for law, _ in cells)))
    entries, latest = [], max(late for _, _, late in theirs)
    print("from 20 s to 120 s, ours, then the kernel's: Mbit/s, mean and largest window, s between two cuts, segments sent again")
    for (law, at), link, (said, windows, _) in zip(cells, links, theirs):
        mine, own, _ = ours(link, law)
        drawing = ours(link, law, beside(own, windows))[2]
        name = "-".join(map(str, (law, *at)))
        drawing.rename(OUT / f"{name}.svg")
        entries.append({"law": law, **dict(zip(("link", "delay", "queue"), at)), "bytes": link_of(link)["queue"],
                        **{key: round(value, 3) for key, value in said.items()}})
        shown = [f"{mine[key]:8.{digits}f} {said[key]:8.{digits}f}" for key, digits in
                 (("rate", 3), ("mean", 1), ("largest", 0), ("period", 1), ("again", 0))]
        print(f"  {name:18}", *shown, flush=True)
    print(f"  {keep(OUT, entries)}; latest delivery of an emulated link: {1e3 * latest:.1f} ms")


PARTS = {"window": window}
