"""Sweeps go on where they stopped, lose nothing, and are the same wherever they run."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polypath as pp
import pytest

GRID = {"link.a->b.delay": ["5ms", "20ms", "60ms"]}


def experiment(rate: str = "8Mbit/s") -> pp.Experiment:
    exp = pp.Experiment("swept", duration="4s", seeds="1..4").link("a", "b", rate, "5ms", queue="1bdp")
    return exp.flow("bulk", "a", "b", start=["0s", "1s"])


def contents(out: Path) -> dict[str, bytes]:
    return {str(f.relative_to(out)): f.read_bytes() for f in sorted(out.rglob("*.parquet"))}


def test_it_has_the_values_of_a_run(tmp_path: Path) -> None:
    swept = pp.sweep(experiment(), GRID, out=tmp_path)
    exp = experiment().grid("link.a->b.delay", GRID["link.a->b.delay"])
    assert swept.values == pp.run(exp).values and swept.ran == 12
    assert swept.values.columns[2] == "link.a->b.delay"


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    pp.sweep(experiment(), GRID, out=tmp_path)
    before = {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*.parquet")}
    assert pp.sweep(experiment(), GRID, out=tmp_path).ran == 0
    more = pp.sweep(experiment(), {"link.a->b.delay": [*GRID["link.a->b.delay"], "90ms"]}, "1..6", out=tmp_path)
    assert more.ran == 3 * 2 + 6
    assert all(f.stat().st_mtime_ns == at for f, at in before.items())
    rows = more.values.where(metric="goodput").to_pandas()
    assert list(rows["seed"]) == [1, 2, 3, 4, 5, 6] * 4 and rows["run"].is_unique
    fewer = pp.sweep(experiment(), GRID, "2..3", out=tmp_path)
    assert fewer.ran == 0 and set(fewer.values["seed"].to_pylist()) == {2, 3}


def test_another_experiment_in_the_same_directory_is_run(tmp_path: Path) -> None:
    one = pp.sweep(experiment(), GRID, out=tmp_path)
    other = pp.sweep(experiment("4Mbit/s"), GRID, out=tmp_path)
    assert other.ran == 12 and one.values != other.values
    assert set(one.files).isdisjoint(other.files)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: bytes([*b[:99], b[99] ^ 1, *b[100:]])])
def test_a_damaged_file_is_noticed_and_its_runs_are_made_again(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    whole = pp.sweep(experiment(), GRID, out=tmp_path)
    before = contents(tmp_path)
    file = whole.files[1]
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged: its runs are made again"):
        assert pp.sweep(experiment(), GRID, out=tmp_path).ran == 4
    assert contents(tmp_path) == before


def test_two_machines_directories_join_by_copying(tmp_path: Path) -> None:
    one, two, both = tmp_path / "one", tmp_path / "two", tmp_path / "both"
    pp.sweep(experiment(), GRID, "1..3", out=one)
    pp.sweep(experiment(), GRID, "2..6", out=two)
    for source in (one, two):
        for name, content in contents(source).items():
            (both / name).parent.mkdir(parents=True, exist_ok=True)
            (both / name).write_bytes(content)
    joined = pp.sweep(experiment(), GRID, "1..6", out=both)
    assert joined.ran == 0
    exp = experiment().grid("link.a->b.delay", GRID["link.a->b.delay"])
    assert joined.values == pp.run(exp, "1..6").values


def test_a_full_disk_is_told_and_what_is_there_stays(tmp_path: Path) -> None:
    code = f"""
        import resource, signal
        import polypath as pp
        from test_sweep import GRID, experiment
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        pp.sweep(experiment(), GRID, "1..1", out={str(tmp_path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            pp.sweep(experiment(), GRID, "1..4", out={str(tmp_path)!r})
        except OSError as error:
            print(error)
    """
    told = python(code)
    assert "File too large" in told, told
    assert not [f for f in tmp_path.rglob(".*") if f.is_file()], "nothing half written stays"
    assert pp.sweep(experiment(), GRID, "1..4", out=tmp_path).ran == 9


def test_ctrl_c_keeps_what_has_ended(tmp_path: Path) -> None:
    code = f"""
        import polypath as pp
        from test_sweep import experiment
        exp = experiment("50Mbit/s").set("duration", "60s")
        print("ready", flush=True)
        try:
            pp.sweep(exp, seeds="1..4000", jobs=1, out={str(tmp_path)!r})
        except KeyboardInterrupt:
            print("interrupted")
    """
    with subprocess.Popen(command(code), env=environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        wait_for(lambda: any(tmp_path.rglob("[0-9]*.parquet")))
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "interrupted\n"
    kept = contents(tmp_path)
    exp = experiment("50Mbit/s").set("duration", "60s")
    seeds = sorted(int(Path(name).name.split("-")[0]) for name in kept)
    again = pp.sweep(exp, seeds=range(1, seeds[-1] + 1), out=tmp_path)
    assert again.ran <= 1 and kept.items() <= contents(tmp_path).items()


def command(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def python(code: str) -> str:
    return subprocess.run(command(code), env=environment(), check=True, capture_output=True, text=True).stdout


def wait_for(ready) -> None:  # type: ignore[no-untyped-def]
    for _ in range(6000):
        if ready():
            return
        time.sleep(0.01)
    raise TimeoutError


# A real scheduler and workers in processes of their own.


class Cluster:
    """A scheduler and workers on loopback."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.processes = scratch, []  # type: ignore[var-annotated]
        self.file = scratch / "scheduler.json"
        self._start("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self.file)
        wait_for(self.file.exists)

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        with (self.scratch / f"{kind}{len(self.processes)}.log").open("wb") as log:
            args = [sys.executable, "-m", "dask", kind, *map(str, arguments)]
            process = subprocess.Popen(args, env=environment(), cwd=self.scratch, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def worker(self, *more: object) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", self.scratch)
        return self._start("worker", "--scheduler-file", self.file, *options, *more)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    scratch = tmp_path / "cluster"
    scratch.mkdir()
    cluster = Cluster(scratch)
    yield cluster
    cluster.end()


def test_a_cluster_writes_the_same_bytes_and_a_killed_worker_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    from distributed import Client

    here, there = tmp_path / "here", tmp_path / "there"
    exp = experiment("20Mbit/s").set("duration", "20s")
    pp.sweep(exp, GRID, "1..150", out=here)
    doomed = cluster.worker()
    cluster.worker()
    with Client(scheduler_file=str(cluster.file), set_as_default=False) as client:
        client.wait_for_workers(2)

        def kill() -> None:
            wait_for(lambda: len(list(there.rglob("*.parquet"))) > 1)
            doomed.kill()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        swept = pp.sweep(exp, GRID, "1..150", out=there, client=client)
        killer.join(60)
        assert doomed.wait(60) == -signal.SIGKILL
        assert swept.ran == 450 and contents(there) == contents(here)
        assert pp.sweep(exp, GRID, "1..150", out=there, client=client).ran == 0


def test_a_worker_of_another_version_is_refused_with_both(cluster: Cluster, tmp_path: Path) -> None:
    from distributed import Client

    preload = cluster.scratch / "other.py"
    preload.write_text("import polypath._sweep\npolypath._sweep._version = lambda: '0.0.9+other'\n")
    cluster.worker("--preload", preload)
    with Client(scheduler_file=str(cluster.file), set_as_default=False) as client:
        client.wait_for_workers(1)
        with pytest.raises(pp.VersionMismatch) as raised:
            pp.sweep(experiment(), GRID, out=tmp_path / "out", client=client)
        assert "0.0.9+other" in str(raised.value) and pp.version() in str(raised.value)
        assert "tcp://127.0.0.1" in str(raised.value), "which worker"
        # One that joins later is found out by its first task.
        with pytest.raises(pp.VersionMismatch, match="0.0.9"):
            from polypath._sweep import _work

            client.submit(_work, "{}", "x", pp.version(), "", 1, 1, pure=False).result()
    assert not list(tmp_path.rglob("*.parquet"))
