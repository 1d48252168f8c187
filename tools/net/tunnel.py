"""Other programs' connections through `polypath up` on both hosts, beside kernel MPTCP and WireGuard in user space."""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import threading
import time

from bed import Bed, Link, run
from parts import FIBRE_LTE, Growth, between, share, spread, table
from polypath import BINARY
from rivals import cpu_of, enable_mptcp, tcp

INNER = ("10.99.0.1", "10.99.0.2")
PORT = 10500

# As bonding tools have been measured over them.
LINKS = {
    "1: 8/60 + 4/60": (Link(8, 60), Link(4, 60)),
    "2: 100/10 + 40/40": FIBRE_LTE,
    "3: 2/20 + 3/20": (Link(2, 20), Link(3, 20)),
    "4: 200/10 + 100/15": (Link(200, 10), Link(100, 15)),
    "5: 100/10 + 10/100": (Link(100, 10), Link(10, 100)),
    "6: 100/10 + 40/40, 1 % loss on the second": (Link(100, 10), Link(40, 40, loss=0.01)),
}


class Tunnel:
    """A daemon on each host; host a calls host b over all links."""

    def __init__(self, bed, paths=None, lane="", transport="polypath", queues=1, binary=BINARY):
        self.bed, self.binary, self.daemons = bed, binary, []
        self.sockets = [bed.dir / f"control{side}.sock" for side in (0, 1)]
        keys = [bed.dir / f"identity{side}.pem" for side in (0, 1)]
        for side in (0, 1):
            self._run(side, "keygen", "--out", keys[side])
        hits = [self._run(side, "hit", keys[side]).strip() for side in (0, 1)]
        paths = paths or bed.paths
        ends = [b for _, b in bed.links][:paths]
        for side in (0, 1):
            config = bed.dir / f"config{side}.toml"
            addresses = json.dumps(ends if side == 0 else [])
            config.write_text(f"""[identity]
key = "{keys[side]}"
[tunnel]
addresses = ["{INNER[side]}/24"]
transport = "{transport}"
{f"queues = {queues}" if queues > 1 else ""}
[paths]
include = {json.dumps([f"path{i}" for i in range(paths)])}
[control]
socket = "{self.sockets[side]}"
[lane]
{lane}
[[peer]]
hit = "{hits[1 - side]}"
addresses = {addresses}
prefixes = ["{INNER[1 - side]}/32"]
""")
            os.chmod(config, 0o600)
            self.daemons.append(bed.spawn(side, binary, "up", config, stderr=subprocess.DEVNULL))
        self._wait(paths)

    def _run(self, side, *words):
        child = self.bed.spawn(side, self.binary, *words)
        out, err = child.communicate()
        if child.returncode != 0:
            raise RuntimeError(err)
        return out

    def _wait(self, paths):
        for _ in range(200):
            time.sleep(0.1)
            try:
                peer = json.loads(self._run(0, "status", "--json", "--socket", self.sockets[0]))["peers"][0]
            except (RuntimeError, KeyError):
                continue
            if sum(path["up"] for path in peer["paths"]) >= paths:
                return time.sleep(0.5)
        raise RuntimeError("the tunnel does not come up")

    def cpu(self):
        return sum(cpu_of(daemon.pid) for daemon in self.daemons)

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()


class WireGuard:
    """wireguard-go on both hosts, over the first path; several have different numbers."""

    def __init__(self, bed, program="wireguard-go", number=0):
        self.bed, self.daemons, self.inner = bed, [], (f"10.98.{number}.1", f"10.98.{number}.2")
        port, keys = 51820 + number, []
        for side in (0, 1):
            private = run("wg", "genkey").stdout
            keys.append((private, run("wg", "pubkey", input=private).stdout.strip()))
        for side in (0, 1):
            name, device = bed.names[side], f"wg{os.getpid()}{number}{side}"
            child = bed.spawn(side, program, "-f", device, stderr=subprocess.DEVNULL)
            self.daemons.append(child)
            time.sleep(1)
            secret = bed.dir / f"wg{number}{side}.key"
            secret.write_text(keys[side][0])
            peer = ["peer", keys[1 - side][1], "allowed-ips", f"10.98.{number}.0/24", "endpoint", f"{bed.links[0][1 - side]}:{port}"]
            run("ip", "netns", "exec", name, "wg", "set", device, "listen-port", str(port), "private-key", str(secret), *peer)
            run("ip", "-n", name, "addr", "add", f"{self.inner[side]}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")

    def cpu(self):
        return sum(cpu_of(daemon.pid) for daemon in self.daemons)


def iperf(bed, address, seconds, connections=1):
    """Gbit/s that a receiver on host b gets from TCP connections of host a, all together."""
    server = bed.spawn(1, "iperf3", "-s", "-1", "-B", address)
    time.sleep(0.3)
    client = bed.spawn(0, "iperf3", "-c", address, "-t", seconds, "-O", 1, "-P", connections, "-C", "cubic", "-J")
    out = client.communicate(timeout=seconds + 30)[0]
    server.kill()
    server.wait()
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e9


# Those that are measured beside the daemons, separated by colons.
WIREGUARDS = os.environ.get("WIREGUARD_GO", "wireguard-go").split(":")


def tunnel_raw(runs, seconds=4):
    """One TCP connection through the daemons over one and two bare veth pairs, beside plain TCP and wireguard-go ($WIREGUARD_GO: programs,
    separated by colons), in turns."""
    rates, cpu = {}, {}
    with Bed([None, None]) as bed, Bed([None, None]) as other:
        ways = {"plain TCP": (bed, bed.links[0][1], None), "polypath up, 1 path": (bed, INNER[1], Tunnel(bed, paths=1)),
                "polypath up, 2 paths": (other, INNER[1], Tunnel(other))}
        if shutil.which("wg"):
            for number, program in enumerate(filter(shutil.which, WIREGUARDS)):
                wireguard = WireGuard(bed, program, number)
                ways[program] = (bed, wireguard.inner[1], wireguard)
        for _ in range(runs):
            for name, (where, address, tool) in ways.items():
                before = tool.cpu() if tool else 0
                rates.setdefault(name, []).append(iperf(where, address, seconds))
                if tool:
                    spent = (tool.cpu() - before) / (rates[name][-1] / 8 * (seconds + 1))
                    cpu.setdefault(name, []).append(spent)
    table("one TCP connection over bare veth pairs, Gbit/s", rates)
    table("CPU seconds of both daemons a GB", cpu)


def tunnel(runs, seconds=15, only=None, called="polypath up", **config):
    """Share of the sum that one TCP CUBIC connection gets through the daemons over links of bonding tools, beside kernel MPTCP."""
    for title, links in LINKS.items():
        if only and not title.startswith(only):
            continue
        shares, total = {}, sum(link.rates[0] for link in links) * 1e6
        with Bed(links) as bed:
            enable_mptcp(bed)
            Tunnel(bed, **config)
            for _ in range(runs):
                for name, more in {called: {"to": INNER[1]}, "MPTCP": {"mptcp": True}}.items():
                    samples = tcp(bed, None, seconds=seconds + 5, **more)[1]
                    shares.setdefault(name, []).append(share(samples, total, start=5.0))
        table(f"{title}: share of the sum", shares)


def tunnel_rm_tcp(runs):
    """The same over links 1, 2, 4 and 5 with R-M/TCP at both ends."""
    tunnel(runs, only=("1", "2", "4", "5"), called="R-M/TCP", transport="rm_tcp")


CUT, RESTORE, END = 8.0, 16.0, 30.0


class Outage:
    """What transfers do over 100/10 + 40/40 while path 1 carries nothing from `CUT` to `RESTORE`."""

    def __init__(self):
        self.rows = {"longest pause, s": [], "goodput from 1 s after it went, share of path 2": [],
                     "goodput from 2 to 4 s after it is back, share of the sum": [],
                     "goodput from then on, share of the sum": []}

    def add(self, samples):
        found = (Growth.of(samples).longest_pause(CUT - 1, CUT + 3), between(samples, CUT + 1, RESTORE) / 40e6,
                 between(samples, RESTORE + 2, RESTORE + 4) / 140e6, between(samples, RESTORE + 4, END) / 140e6)
        for row, value in zip(self.rows.values(), found):
            row.append(value)

    def print(self, title):
        table(f"{title} of 100/10 + 40/40 from 8 to 16 s", self.rows)


def tunnel_cut(runs):
    """Links 2; path 1 falls silent for 8 s in a transfer through the daemons: the longest pause, and shares."""
    outage = Outage()
    for _ in range(runs):
        # The bed's clock runs before the tunnel is up.
        early = 6.0
        schedule = [(early + CUT, "down"), (early + RESTORE, "up")]
        with Bed((Link(100, 10, schedule=schedule), Link(40, 40))) as bed:
            Tunnel(bed)
            time.sleep(max(0.0, early - (time.monotonic() - bed.began)))
            outage.add(tcp(bed, None, seconds=END, to=INNER[1])[1])
    outage.print("polypath up, silence on path 1")


def tunnel_small(runs, count=20):
    """Seconds that a connection over links 2 takes to open, send 1 KB and get 1 KB: through the daemons and over path 1."""
    took = {}
    with Bed(FIBRE_LTE) as bed:
        Tunnel(bed)
        for _ in range(runs):
            for name, address in {"polypath up": INNER[1], "TCP, path 1": bed.links[0][1]}.items():
                took.setdefault(name, []).append(statistics.median(ping(bed, address) for _ in range(count)))
    table("connect, 1 KB there and 1 KB back, s", took)


def ping(bed, address):
    server, client = bed.socket(1), bed.socket(0)
    server.bind((address, 0))
    server.listen(1)
    began = time.monotonic()
    client.connect(server.getsockname())
    client.sendall(bytes(1000))
    accepted, _ = server.accept()
    accepted.recv(1000)
    accepted.sendall(bytes(1000))
    got = 0
    while got < 1000:
        got += len(client.recv(1000))
    took = time.monotonic() - began
    for end in (client, accepted, server):
        end.close()
    return took


def tunnel_gone(runs):
    """Links 2; the interface of path 1 goes down for 8 s in a transfer through the daemons: the longest pause, and shares."""
    outage = Outage()
    for _ in range(runs):
        with Bed(FIBRE_LTE) as bed:
            Tunnel(bed)
            began = time.monotonic()

            def switch(bed=bed, began=began):
                for at, state in ((CUT, "down"), (RESTORE, "up")):
                    time.sleep(max(0.0, began + at - time.monotonic()))
                    run("ip", "-n", bed.names[0], "link", "set", "path0", state)

            thread = threading.Thread(target=switch)
            thread.start()
            outage.add(tcp(bed, None, seconds=END, to=INNER[1])[1])
            thread.join()
    outage.print("polypath up, the interface of path 1 down")


# When an address changes, seconds after a transfer began; and the steps of that.
MOVES = (5.0, 10.0, 15.0, 20.0)
ORDERS = {"the old one goes first": ("del", "add"), "the new one comes first": ("add", "del")}


def tunnel_moved(runs):
    """Links 2; an address on path 1 becomes another one, four times in a transfer through the daemons: the longest pauses, and shares."""
    pauses, shares = {}, {}
    for _, host, (order, steps), sends in itertools.product(range(runs), (0, 1), ORDERS.items(), (True, False)):
        name = f"the {('caller', 'other host')[host]} {'sends' if sends else 'receives'}, {order}"
        with Bed(FIBRE_LTE) as bed:
            Tunnel(bed)
            samples = moved(bed, host, steps, host if sends else 1 - host)
        growth = Growth.of(samples)
        pauses.setdefault(name, []).extend(growth.longest_pause(at - 0.01, at + 2) for at in MOVES)
        shares.setdefault(name, []).extend(between(samples, at + 1, at + 4.5) / 140e6 for at in MOVES)
    table("an address on path 1 of 100/10 + 40/40 becomes another one: longest pause, s", pauses, spread)
    table("goodput from 1 s after it, share of the sum", shares, spread)


def moved(bed, host, steps, sender):
    """A transfer from one host to the other while an address of `host` changes: the samples (time, bytes received)."""
    bed.sysctl("net.ipv4.conf.all.promote_secondaries", 1)  # else all of a network go with the first
    first = bed.links[0][host]
    addresses = itertools.cycle((f"10.77.0.{11 + host}", first))
    began = time.monotonic()

    def move():
        old = first
        for at, new in zip(MOVES, addresses):
            time.sleep(max(0.0, began + at - time.monotonic()))
            for step in steps:
                run("ip", "-n", bed.names[host], "addr", step, f"{new if step == 'add' else old}/24", "dev", "path0")
            old = new

    thread = threading.Thread(target=move)
    thread.start()
    samples = tcp(bed, None, seconds=MOVES[-1] + 5, to=INNER[1 - sender], side=sender, server=1 - sender)[1]
    thread.join()
    return samples


FLAPS, HALF = 8, 1.0


def tunnel_flap(runs):
    """Links 2; one path is gone for a second in every two: goodput through the daemons while it flaps, share of the other path."""
    shares = {}
    for _, flapping in itertools.product(range(runs), (1, 0)):
        early = 6.0
        changes = [(early + 5 + HALF * n, "up" if n % 2 else "down") for n in range(2 * FLAPS)]
        schedules = [changes if path == flapping else () for path in (0, 1)]
        links = (Link(100, 10, schedule=schedules[0]), Link(40, 40, schedule=schedules[1]))
        with Bed(links) as bed:
            Tunnel(bed)
            time.sleep(max(0.0, early - (time.monotonic() - bed.began)))
            samples = tcp(bed, None, seconds=5 + 2 * HALF * FLAPS, to=INNER[1])[1]
        stable = links[1 - flapping].rates[0] * 1e6
        lowest = min(between(samples, at, at + 2) / stable for at in range(5, 5 + 2 * FLAPS, 2))
        shares.setdefault(f"path {flapping + 1} flaps", []).append(lowest)
    table("a path of 100/10 + 40/40 flaps every second: lowest goodput of two seconds, share of the other path", shares)


PARTS = {part.__name__: part for part in (tunnel_raw, tunnel, tunnel_rm_tcp, tunnel_cut, tunnel_gone, tunnel_moved, tunnel_flap,
                                          tunnel_small)}
