"""What the daemons take of a processor at the rates of usual uplinks, beside WireGuard in user space."""

import os
import shutil

from bed import Bed, Link
from parts import table
from polypath import BINARY
from rivals import tcp
from tunnel import INNER, Tunnel, WireGuard

RATES = (20, 100, 300)


def tunnel_load(runs, seconds=10):
    """Percent of a core that both daemons take while one TCP connection fills a link of 20, 100, 300 Mbit/s, beside wireguard-go, and the
    binary `POLYPATH_BEFORE` names, if any."""
    ways = {"polypath up": lambda bed: (Tunnel(bed, binary=BINARY), INNER[1])}
    if before := os.environ.get("POLYPATH_BEFORE"):
        ways["before"] = lambda bed: (Tunnel(bed, binary=before), INNER[1])
    if shutil.which("wireguard-go") and shutil.which("wg"):
        def wireguard(bed):
            tool = WireGuard(bed)
            return tool, tool.inner[1]
        ways["wireguard-go"] = wireguard
    for rate in RATES:
        load, goodput = {}, {}
        for _ in range(runs):
            for name, way in ways.items():
                with Bed((Link(rate, 20, queue=1),)) as bed:
                    tool, address = way(bed)
                    spent = tool.cpu()
                    took, samples = tcp(bed, None, seconds, to=address)
                    load.setdefault(name, []).append((tool.cpu() - spent) / took * 100)
                    goodput.setdefault(name, []).append(samples[-1][1] * 8 / took / 1e6)
        table(f"{rate} Mbit/s, 20 ms: percent of a core, both daemons", load)
        table(f"{rate} Mbit/s, 20 ms: goodput, Mbit/s", goodput)


PARTS = {"tunnel_load": tunnel_load}
