"""A Dask scheduler and its workers on loopback, in processes of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def environment() -> dict[str, str]:
    """Of a child that finds the modules beside this one."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def wait_for(ready: Callable[[], object]) -> None:
    for _ in range(6000):
        if ready():
            return
        time.sleep(0.01)
    raise TimeoutError


class Cluster:
    """A scheduler, to which workers come; ``end`` ends them all."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.workers, self.logs = scratch, [], 0  # type: ignore[var-annotated]
        self.file = scratch / "scheduler.json"
        self.file.unlink(missing_ok=True)
        self._schedule(0)

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def worker(self, *more: object) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", self.scratch)
        self.workers.append(self._start("worker", "--scheduler-file", self.file, *options, *more))
        return self.workers[-1]

    def restart(self) -> None:
        """The scheduler dies and another one comes at its address; what it knew is gone."""
        port = int(self.address.rpartition(":")[2])
        _kill(self.scheduler)
        self.file.unlink()
        self._schedule(port)

    def end(self) -> None:
        for process in [*self.workers, self.scheduler]:
            _kill(process)

    def _schedule(self, port: int) -> None:
        place = ("--port", port, "--host", "127.0.0.1", "--scheduler-file", self.file)
        self.scheduler = self._start("scheduler", "--no-dashboard", *place)
        wait_for(self.file.exists)

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        self.logs += 1
        with (self.scratch / f"{kind}{self.logs}.log").open("wb") as log:
            args = [sys.executable, "-m", "dask", kind, *map(str, arguments)]
            return subprocess.Popen(args, env=environment(), cwd=self.scratch, stdout=log, stderr=log)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
