"""Two hosts in network namespaces, joined by bare veth pairs or by our own emulated links."""

import atexit
import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
CLONE_NEWNET = 0x40000000
MTU = 1500
LEAST_QUEUE = 10 * MTU
# The first of many addresses of host a, and their network.
CROWD = ("10.78.0.1", "10.78.0.0/24")
LIBC = ctypes.CDLL(None, use_errno=True)
BEDS = itertools.count()


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more)


def end_on_signals():
    """SIGTERM and SIGHUP end Python as an error does, so that beds are closed."""
    for kind in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(kind) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(kind, lambda number, _: sys.exit(128 + number))


def same_files(tree, copy):
    """Both directories hold the same bytes under the same names."""
    found, wanted = ({file.relative_to(top): file.read_bytes() for file in top.rglob("*") if file.is_file()} for top in (copy, tree))
    if found != wanted:
        raise RuntimeError(f"{len(found)} files arrived of {len(wanted)}, or other bytes")


class Child(subprocess.Popen):
    """A program whose CPU seconds are known once it has ended."""

    cpu = None

    def _try_wait(self, flags):
        try:
            pid, status, usage = os.wait4(self.pid, flags)
        except ChildProcessError:
            return self.pid, 0
        if pid == self.pid:
            self.cpu = usage.ru_utime + usage.ru_stime
        return pid, status

    def output(self, within):
        """What it printed, once it has ended. An error, with what it said, if it printed nothing."""
        out, err = self.communicate(timeout=within)
        if not out:
            raise RuntimeError(err)
        return out


class Link:
    """Rates there and back, Mbit/s; one-way delay, ms; drop-tail queues of `queue` x rate x round trip."""

    def __init__(self, rate, delay, back=None, queue=1.5, loss=0.0, schedule=()):
        self.rates, self.delay, self.queue = (rate, back or rate), delay, queue
        self.loss, self.schedule = loss, schedule

    def hops(self):
        """As the simulator's configuration of a hop has them."""
        return [self._hop(rate) for rate in self.rates]

    def _hop(self, rate):
        waiting = max(LEAST_QUEUE, int(self.queue * rate * 1e6 / 8 * 2 * self.delay / 1e3))
        steps = [{"at": int(at * 1e9), "change": change} for at, change in self.schedule]
        return {"rate": int(rate * 1e6), "delay": self.delay, "queue": {"bytes": waiting},
                "loss": self.loss, "schedule": steps}


class Bed:
    """Hosts `a` and `b`, and those that `more` names. Everything it made is gone after `close`, at the latest when Python ends."""

    # The hosts between which links are emulated.
    across = (0, 1)

    def __init__(self, links, more=""):
        number = next(BEDS)
        self.names = [f"pp{os.getpid()}x{number}{side}" for side in (*"ab", *more)]
        self.children, self.samples, self.emulator = [], [], None
        shm = Path("/dev/shm")
        self.dir = Path(tempfile.mkdtemp(prefix="polypath-bench-", dir=shm if shm.is_dir() else None))
        atexit.register(self.close)
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.links = [(f"10.77.{i}.1", f"10.77.{i}.2") for i in range(len(links))]
        self.paths = len(links)
        if links and links[0] is not None:
            self._emulate(links)
        else:
            for i, addresses in enumerate(self.links):
                self.join(zip(self.names, (f"path{i}",) * 2, addresses))

    def join(self, ends):
        """A bare veth pair between two ends (host's namespace, device, address)."""
        (a, device, _), (b, peer, _) = ends = list(ends)
        run("ip", "-n", a, "link", "add", device, "type", "veth", "peer", "name", peer, "netns", b)
        for name, device, address in ends:
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")

    def _emulate(self, links):
        hosts = [self.names[side] for side in self.across]
        config = [{"addresses": ends, "hops": link.hops()} for ends, link in zip(self.links, links)]
        self.began = time.monotonic()
        self.emulator = subprocess.Popen(
            [TARGET / "examples" / "links", "--hosts", *hosts, "--config", json.dumps(config)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.samples.append(json.loads(self.emulator.stdout.readline()))
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self):
        for line in self.emulator.stdout:
            self.samples.append(json.loads(line))

    def crowd(self):
        """Host a has 254 more addresses, reached over link 0."""
        a, b = self.names
        run("ip", "-n", a, "route", "add", "local", CROWD[1], "dev", "lo")
        run("ip", "-n", b, "route", "add", CROWD[1], "via", self.links[0][0])

    def carried(self, way):
        """Bytes that have left the far end of all links, on the way 0 (a to b) or 1."""
        return sum(link["hops"][way]["bytes_left"] for link in self.samples[-1]["links"])

    def dropped(self, way):
        """Packets that the queues dropped."""
        return sum(link["hops"][way]["drops"][0] for link in self.samples[-1]["links"])

    def spawn(self, side, *words, **more):
        """Starts a program on a host."""
        words = ["ip", "netns", "exec", self.names[side], *map(str, words)]
        child = Child(words, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                "stdin": subprocess.DEVNULL, "text": True, **more})
        self.children.append(child)
        return child

    def socket(self, side, protocol=0, kind=socket.SOCK_STREAM):
        """A TCP (or MPTCP, or by its kind UDP) socket of a host."""
        made = []

        def inside():
            with open(f"/run/netns/{self.names[side]}") as namespace:
                if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.socket(socket.AF_INET, kind, protocol))

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return made[0]

    def sysctl(self, key, value):
        for name in self.names:
            file = "/proc/sys/" + key.replace(".", "/")
            run("ip", "netns", "exec", name, "sh", "-c", f"echo {value} > {file}")

    def file(self, name, size):
        """A file of bytes that do not repeat, in memory."""
        path = self.dir / name
        block = os.urandom(1 << 20)
        with open(path, "wb") as out:
            for at in range(0, size, len(block)):
                out.write(block[: size - at])
        return path

    def tree(self, name, files, size):
        """A directory of files in memory, a hundred in each directory below it."""
        top = self.dir / name
        for number in range(files):
            (top / str(number // 100)).mkdir(parents=True, exist_ok=True)
            (top / str(number // 100) / str(number)).write_bytes(os.urandom(size))
        return top

    def warm(self, size):
        """Writes and frees memory: a virtual machine may have given away what is free, and whoever runs first would pay
        for its return."""
        self.file("warm", size).unlink()

    @property
    def worst_lateness(self):
        """Of what the links delivered so far, s."""
        return max(link["worst_lateness"] for link in self.samples[-1]["links"]) / 1e9

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        if self.emulator:
            self.emulator.stdin.close()
            self.emulator.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Behind(Bed):
    """Host `a` with two bare links and host `t` with one to a router `r`, from which one emulated link leads to `b`."""

    across = (2, 1)
    T = 3

    def __init__(self, link):
        super().__init__([link], more="rt")
        self.paths = 2
        a, b, r, t = self.names
        self.sysctl("net.ipv4.ip_forward", 1)
        run("ip", "-n", b, "route", "add", "default", "via", self.links[0][0])
        for number, (host, device) in enumerate(((a, "path0"), (a, "path1"), (t, "path0"))):
            router = f"10.79.{number}.1"
            self.join([(host, device, f"10.79.{number}.2"), (r, f"to{number}", router)])
            run("ip", "-n", host, "route", "add", "default", "via", router, "dev", device, "metric", str(number + 1))
