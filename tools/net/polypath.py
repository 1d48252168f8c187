"""`polypath receive` and `polypath send` on a test bed, timed from outside."""

import json
import os
import shutil
import subprocess
import time

from bed import TARGET, same_files

BINARY = os.environ.get("POLYPATH", str(TARGET / "polypath"))
# Seconds that a transfer may take.
WITHIN = 120


class Pair:
    """An identity for each host, and the runs between them."""

    def __init__(self, bed, binary=BINARY):
        self.bed, self.binary = bed, binary
        # Words before the program on each host.
        self.under = [[], []]
        self.hits = [self._hit(side) for side in (0, 1)]
        self.inbox = bed.dir / "in"
        self.inbox.mkdir(exist_ok=True)

    def _command(self, side, *words, **more):
        config = self.bed.dir / f"config{side}"
        return self.bed.spawn(side, *self.under[side], self.binary, *words, env={**os.environ, "XDG_CONFIG_HOME": str(config)}, **more)

    def _hit(self, side):
        self._command(side, "keygen").wait()
        return self._command(side, "hit").communicate()[0].strip()

    def receive(self, *more, **how):
        """Starts a receiver and waits until it listens."""
        child = self._command(1, "receive", "--dir", self.inbox, "--allow", self.hits[0], *more, **how)
        time.sleep(0.5)
        return child

    def target(self, paths=None):
        ends = [b for _, b in self.bed.links][: paths or len(self.bed.links)]
        return f"{self.hits[1]}@{','.join(ends)}"

    def send(self, *files, paths=None, more=()):
        """Starts a sender over the first `paths` links, or all. Hosts find all addresses of each other, so interfaces are named."""
        few = paths is not None and paths < self.bed.paths
        only = [word for n in range(paths) for word in ("--only", f"path{n}")] if few else []
        return self._command(0, "send", *files, self.target(paths), "--json", *only, *more)

    def flood(self, kind, rate, *more):
        """Starts a flood of HIP packets from host a to host b, in the name of host a."""
        to = f"{self.bed.links[0][1]}:10500"
        return self.bed.spawn(0, TARGET / "examples" / "flood", kind, to, "--hit", self.hits[1], "--peer", self.hits[0],
                              "--rate", rate, "--seconds", 60, *more)

    def transfer(self, path, paths=None):
        """One file to a receiver of its own: seconds from the start of `send` until it is whole, and CPU seconds
        of both ends."""
        receiver = self.receive("--once")
        final = self.inbox / path.name
        began = time.monotonic()
        sender = self.send(path, paths=paths)
        while not final.exists() and sender.poll() is None and time.monotonic() - began < WITHIN:
            time.sleep(0.0005)
        took = time.monotonic() - began
        try:
            report = self._finish(sender)
        except RuntimeError:
            receiver.kill()
            raise
        cpu = rusage(sender) + rusage(receiver)
        whole = final.exists() and final.stat().st_size == path.stat().st_size
        if not whole:
            raise RuntimeError(f"{path.name} did not arrive: {report}")
        final.unlink()
        used = len(json.loads(report)["paths"])
        if paths and used > paths:
            raise RuntimeError(f"the transfer had {used} paths where {paths} were asked for")
        return took, cpu

    def transfer_tree(self, tree):
        """A directory to a receiver of its own: seconds from the start of `send` until it has ended."""
        receiver = self.receive("--once", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        self._finish(self.send(tree))
        took = time.monotonic() - began
        receiver.wait(WITHIN)
        same_files(tree, self.inbox / tree.name)
        shutil.rmtree(self.inbox / tree.name)
        return took

    def _finish(self, sender):
        out, err = sender.communicate(timeout=WITHIN)
        if sender.returncode != 0:
            raise RuntimeError(err)
        return out


def rusage(child):
    """CPU seconds of a child that ends by itself within a few seconds, or has ended."""
    if child.returncode is None:
        try:
            child.communicate(timeout=10)
        except Exception:
            child.kill()
            child.communicate()
    return child.cpu
