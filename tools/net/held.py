"""What the daemons hold for many connections of programs: idle ones, and ones that nobody reads."""

import resource
import selectors
import time
from multiprocessing import Pipe, Process
from socket import SO_SNDBUF, SOL_SOCKET

from bed import Bed
from parts import table
from rivals import allocated_by
from tunnel import INNER, Tunnel, ping

IDLE, BUSY = 10_000, 500
# Both lanes have room for them, and may hold this much, MiB.
MEMORY = 256
LANE = f"connections = {2 * (IDLE + BUSY)}\nmemory_mib = {MEMORY}"
# Bytes of a kernel's buffer, and how long nothing moves, s, when nothing more will.
BUFFER, STILL = 1 << 16, 20
BLOCK = bytes(1 << 16)


def serve(bed, pipe):
    """At host b: takes the connections, and reads the idle or the busy ones when told; tells how many bytes came."""
    listener = bed.socket(1)
    listener.bind((INNER[1], 0))
    listener.listen(64)
    pipe.send(listener.getsockname())
    ends = [listener.accept()[0] for _ in range(IDLE + BUSY)]
    for end in ends:
        end.setblocking(False)
    listener.close()
    while part := pipe.recv():
        pipe.send(moved(ends[slice(*part)], selectors.EVENT_READ, lambda end: len(end.recv(1 << 18))))


def opened(bed, at, count):
    """Connections of host a through the tunnel."""
    for _ in range(count):
        client = bed.socket(0)
        client.setsockopt(SOL_SOCKET, SO_SNDBUF, BUFFER)
        client.connect(at)
        client.setblocking(False)
        yield client


def moved(ends, event, move):
    """Bytes that `move` moves at these ends, until nothing moves for a while."""
    total, last = 0, time.monotonic()
    with selectors.DefaultSelector() as ready:
        for end in ends:
            ready.register(end, event)
        while time.monotonic() < last + STILL:
            for key, _ in ready.select(0.5):
                if count := move(key.fileobj):
                    total, last = total + count, time.monotonic()
    return total


def tunnel_held(runs):
    """10,000 idle connections through the daemons, and 500 that nobody reads: what each daemon allocates, how soon another one opens, and what
    still comes on the others."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    found = {}
    for _ in range(runs):
        with Bed([None, None]) as bed:
            daemons, (pipe, far) = Tunnel(bed, lane=LANE).daemons, Pipe()
            server = Process(target=serve, args=(bed, far), daemon=True)
            server.start()
            at = pipe.recv()

            def note(what):
                for side, daemon in enumerate(daemons):
                    found.setdefault(f"{what}, MB, host {'ab'[side]}", []).append(allocated_by(daemon.pid) / 1e3)

            def came(what, sent, *part):
                """Has host b read this part, and notes how much came before nothing more did for a while."""
                began = time.monotonic()
                pipe.send(part)
                found.setdefault(f"{what}: part that came", []).append(pipe.recv() / sent)
                found.setdefault(f"{what}: for, s", []).append(time.monotonic() - began - STILL)

            note("with none")
            idle = list(opened(bed, at, IDLE))
            note("with the idle ones")
            busy = list(opened(bed, at, BUSY))
            wrote = moved(busy, selectors.EVENT_WRITE, lambda end: end.send(BLOCK))
            note("with the busy ones, too")
            found.setdefault("written on the busy ones, MB", []).append(wrote / 1e6)
            found.setdefault("another one: open, 1 KB there and back, s", []).append(ping(bed, INNER[1]))
            for client in idle:
                client.send(b"still here")
            came("10 bytes on each idle one, meanwhile", 10 * IDLE, 0, IDLE)
            came("the busy ones, which are now read", wrote, IDLE, None)
            server.kill()
    table(f"{IDLE} idle connections and {BUSY} that nobody reads; all may hold {MEMORY} MiB", found)


PARTS = {"tunnel_held": tunnel_held}
