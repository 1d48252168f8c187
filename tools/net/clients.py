"""What many clients cost a server: a daemon for each, in a namespace of its own."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

from bed import Bed, run
from parts import table
from polypath import BINARY
from rivals import allocated_by, cpu_of

# A bridge has up to 1023 ports.
CLIENTS = int(os.environ.get("CLIENTS", 1000))
SERVER = "10.50.255.254"
# The server's address in the tunnel.
INSIDE = ("10.99.0.1", 7)
# How long nothing is done, s.
IDLE = 20
# Datagrams of one client, in each of so many seconds.
RATE, BUSY = 1000, 10
# All namespaces share one table of neighbours.
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


class Star:
    """A server, with the clients that it assigns addresses to."""

    def __init__(self, bed, clients):
        self.bed, self.clients = bed, clients
        self.socket, self.config = bed.dir / "server.sock", bed.dir / "server/polypath.toml"
        bridge, server, *others = bed.names
        run("ip", "-n", bridge, "link", "add", "star", "type", "bridge")
        run("ip", "-n", bridge, "link", "set", "star", "up")
        addresses = [SERVER, *(f"10.50.{n // 250}.{n % 250 + 1}" for n in range(clients))]
        for n, (name, address) in enumerate(zip((server, *others), addresses)):
            run("ip", "-n", bridge, "link", "add", f"to{n}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", bridge, "link", "set", f"to{n}", "master", "star", "up")
            run("ip", "-n", name, "addr", "add", f"{address}/16", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        paste = self._init(1, ["init", "--assign", "10.99.0.0/16", "--at", SERVER], self.config)
        (self.config.parent / "peers").mkdir()
        self._edit(self.config, {'# directory = "/etc/polypath/peers.d"': 'directory = "peers"',
                                 '# state = "/var/lib/polypath"': f'state = "{bed.dir / "state"}"',
                                 "/run/polypath/control.sock": str(self.socket)})
        self.configs = [bed.dir / f"client{n}" / "polypath.toml" for n in range(clients)]
        for n, config in enumerate(self.configs):
            back = self._init(2 + n, paste.split()[1:], config)
            self._edit(config, {"/run/polypath/control.sock": str(bed.dir / f"client{n}.sock")})
            self._run(1, *back.split()[1:], self.config)
        self.server = self._up(1, self.config)

    def _init(self, side, words, config):
        return self._run(side, *words, "--identity", config.parent / "identity.pem", config)

    def _run(self, side, *words):
        return run("ip", "netns", "exec", self.bed.names[side], BINARY, *map(str, words)).stdout

    @staticmethod
    def _edit(file, changes):
        text = file.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        file.write_text(text)

    def _up(self, side, config):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return self.bed.spawn(side, BINARY, "up", config, **quiet)

    def call(self, peers):
        """From now on the server calls so many peers more, none of which is there."""
        server = self.bed.names[1]
        run("ip", "-n", server, "neigh", "add", "10.50.200.200", "lladdr", "02:00:00:00:00:99", "dev", "eth0")
        run("ip", "-n", server, "route", "add", "10.60.0.0/16", "via", "10.50.200.200")
        for n in range(peers):
            tag, at = os.urandom(12).hex(":", 2), f"{n // 250}.{n % 250 + 1}"
            file = self.config.parent / "peers" / f"absent{n}.toml"
            file.write_text(f'[[peer]]\nhit = "2001:22:{tag}"\naddresses = ["10.60.{at}"]\nprefixes = ["10.61.{at}/32"]\n')
            file.chmod(0o644)
        self._run(1, "reload", "--socket", self.socket)

    def connect(self):
        """Starts the clients; s until the server has a path to each."""
        began = time.monotonic()
        for n, config in enumerate(self.configs):
            self._up(2 + n, config)
        return self.wait(began)

    def restart(self):
        """The server is killed and starts again; s until it has a path to each client."""
        self.server.kill()
        self.server.wait()
        began = time.monotonic()
        self.server = self._up(1, self.config)
        return self.wait(began)

    def wait(self, began):
        while time.monotonic() < began + 300:
            asked = subprocess.run([BINARY, "status", "--json", "--socket", self.socket], capture_output=True)
            peers = json.loads(asked.stdout)["peers"] if asked.returncode == 0 else []
            if sum(any(path["up"] for path in peer["paths"]) for peer in peers) == self.clients:
                return time.monotonic() - began
            time.sleep(0.2)
        raise RuntimeError("not all clients connect")

    def memory(self):
        """kB that the server allocated."""
        return allocated_by(self.server.pid)

    def cost(self):
        """CPU seconds of the server for a datagram that the first client sends it through the tunnel, beside what it takes when idle."""
        taken = self.bed.socket(1, kind=socket.SOCK_DGRAM)
        taken.bind(INSIDE)  # nobody reads, and the kernel drops what overflows
        sent, cpu = self.bed.socket(2, kind=socket.SOCK_DGRAM), cpu_of(self.server.pid)
        time.sleep(BUSY)
        idle, cpu, began = cpu_of(self.server.pid) - cpu, cpu_of(self.server.pid), time.monotonic()
        for n in range(RATE * BUSY):
            time.sleep(max(0, began + n / RATE - time.monotonic()))
            sent.sendto(bytes(100), INSIDE)
        time.sleep(max(0, began + BUSY - time.monotonic()))
        cost = (cpu_of(self.server.pid) - cpu - idle) / (RATE * BUSY)
        taken.close(), sent.close()
        return cost

    def datagrams(self):
        """Packets in and out of the server's interface."""
        lines = run("ip", "netns", "exec", self.bed.names[1], "cat", "/proc/net/dev").stdout.splitlines()
        columns = next(line for line in lines if "eth0" in line).split()
        return int(columns[2]), int(columns[10])


def tunnel_clients(runs):
    """CLIENTS (1000) idle clients of one server, each with a daemon: memory, CPU, datagrams, what one more costs, how soon they are connected."""
    before = NEIGHBOURS.read_text()
    NEIGHBOURS.write_text(str(16 * CLIENTS + 1024))
    found = {}
    try:
        with Bed([], more=[f"c{n}" for n in range(CLIENTS)]) as bed:
            star = Star(bed, CLIENTS)
            time.sleep(2)
            alone = star.memory()
            found["connected after, s"] = [star.connect()]
            for _ in range(runs):
                time.sleep(10)
                cpu, (came, went) = cpu_of(star.server.pid), star.datagrams()
                time.sleep(IDLE)
                then = star.datagrams()
                each = CLIENTS * IDLE
                for what, figure in {"memory of the server for each, kB": (star.memory() - alone) / CLIENTS,
                                     "CPU of the server, % of a core": (cpu_of(star.server.pid) - cpu) / IDLE * 100,
                                     "datagrams in for each, a second": (then[0] - came) / each,
                                     "datagrams out": (then[1] - went) / each,
                                     "CPU for one of a client through the tunnel, µs": star.cost() * 1e6,
                                     "connected again after a kill, s": star.restart()}.items():
                    found.setdefault(what, []).append(figure)
    finally:
        NEIGHBOURS.write_text(before)
    table(f"{CLIENTS} idle clients of one server", found)


def tunnel_called(runs):
    """What a datagram of one client costs a server beside 999 peers that it calls and that do not answer."""
    found = {}
    for peers in (0, 999):
        with Bed([], more=["c0"]) as bed:
            star = Star(bed, 1)
            star.connect()
            star.call(peers)
            time.sleep(20)
            found[f"beside {peers}"] = [star.cost() * 1e6 for _ in range(runs)]
    table("CPU of the server for a datagram of a client, µs", found)


PARTS = {"tunnel_clients": tunnel_clients, "tunnel_called": tunnel_called}
