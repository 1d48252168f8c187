"""How old the bytes of one bulk connection are when they arrive."""

import itertools
import statistics
import struct
import threading
import time
from functools import partial

from bed import Bed, Link
from homes import WAYS, polypath
from parts import FIBRE_LTE, table
from rivals import CHUNK, IPPROTO_MPTCP
from versions import BEFORE

# The first seconds, which do not count, and the length of a connection, s.
EARLY, LENGTH = 4, 12
# Each begins with the time at which the program writes it.
BLOCK = 4096
# What the kernel of the program takes ahead of what it sends, bytes (net.ipv4.tcp_notsent_lowat).
AHEAD = 128 << 10
LINKS = {"100/10 + 40/40": FIBRE_LTE, "8/30 + 4/30": (Link(8, 30), Link(4, 30)), "2/20 + 1/20": (Link(2, 20), Link(1, 20))}


def ages(bed, to=None, mptcp=False):
    """Seconds from the write to the read of each block."""
    protocol = IPPROTO_MPTCP if mptcp else 0
    server, client = bed.socket(1, protocol), bed.socket(0, protocol)
    server.bind((to or bed.links[0][1], 0))
    server.listen(1)
    client.connect(server.getsockname())
    connection, _ = server.accept()
    took, began = [], time.monotonic()

    def receive():
        waiting = b""
        while got := connection.recv(CHUNK):
            now, waiting = time.monotonic(), waiting + got
            whole = len(waiting) // BLOCK
            if now - began > EARLY:
                took.extend(now - struct.unpack_from("d", waiting, n * BLOCK)[0] for n in range(whole))
            waiting = waiting[whole * BLOCK:]

    reader = threading.Thread(target=receive)
    reader.start()
    while time.monotonic() - began < LENGTH:
        client.sendall(struct.pack("d", time.monotonic()).ljust(BLOCK, b"\0"))
    client.close()
    reader.join()
    connection.close()
    server.close()
    return took


def tunnel_age(runs):
    """How old the bytes of a bulk connection are when they are read: median age, ms. Measured through the daemons, over the first link and
    by MPTCP, each with the kernel's default buffer and with `net.ipv4.tcp_notsent_lowat`. $POLYPATH_BEFORE adds another version."""
    ways = dict(WAYS)
    if BEFORE:
        ways[f"polypath up, {BEFORE}"] = partial(polypath, binary=BEFORE)
    for title, links in LINKS.items():
        medians = {}
        for _, ahead, (name, begin) in itertools.product(range(runs), (None, AHEAD), ways.items()):
            with Bed(links) as bed:
                if ahead:
                    bed.sysctl("net.ipv4.tcp_notsent_lowat", ahead)
                options, _ends = begin(bed)
                took = ages(bed, **options)
            name += f", {AHEAD >> 10} KiB ahead" if ahead else ""
            medians.setdefault(name, []).append(1e3 * statistics.median(took))
        table(f"{title}: ms from write to read, median", medians)


PARTS = {"tunnel_age": tunnel_age}
