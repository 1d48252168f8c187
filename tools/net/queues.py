"""What several queues of the daemons' devices take from their busiest thread."""

import itertools
import os

from bed import Bed
from parts import table
from rivals import cpu_of
from tunnel import INNER, Tunnel, iperf

QUEUES = (1, 2, 4)
CONNECTIONS = (1, 4)


def threads(tunnel):
    """CPU seconds of each thread of both daemons so far."""
    pids = [daemon.pid for daemon in tunnel.daemons]
    return {task: cpu_of(task) for pid in pids for task in (f"{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task"))}


def tunnel_queues(runs, seconds=4):
    """One and four TCP connections through daemons with one, two and four queues over a bare veth pair each, in turns. Where both daemons
    and the programs fill all cores the rate cannot rise, but the busiest thread may have less to do."""
    rates, busiest, both = {}, {}, {}
    with Bed([None]) as one, Bed([None]) as two, Bed([None]) as four:
        ways = [(queues, bed, Tunnel(bed, queues=queues)) for queues, bed in zip(QUEUES, (one, two, four))]
        turns = itertools.islice(itertools.cycle((ways, ways[::-1])), runs)  # who comes after whom matters
        for connections, queues, bed, tunnel in ((n, *way) for turn in turns for n in CONNECTIONS for way in turn):
            before = threads(tunnel)
            rate = iperf(bed, INNER[1], seconds, connections)
            spent = [now - before.get(task, 0) for task, now in threads(tunnel).items()]
            carried = rate / 8 * (seconds + 1)
            name = f"{connections} connection{'s' * (connections > 1)}, {queues} queue{'s' * (queues > 1)}"
            for rows, value in ((rates, rate), (busiest, max(spent) / carried), (both, sum(spent) / carried)):
                rows.setdefault(name, []).append(value)
    table("TCP over a bare veth pair, Gbit/s", rates)
    table("CPU seconds of the busiest thread a GB", busiest)
    table("CPU seconds of both daemons a GB", both)


PARTS = {"tunnel_queues": tunnel_queues}
