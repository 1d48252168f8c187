"""Sweeps go on where they stopped, lose nothing, and are the same wherever they run."""

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polypath as pp
import pytest
from cluster import Cluster, environment, wait_for
from test_own import Reno

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


def python(code: str) -> str:
    return subprocess.run(command(code), env=environment(), check=True, capture_output=True, text=True).stdout


# A real scheduler and workers in processes of their own.


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    scratch = tmp_path / "cluster"
    scratch.mkdir()
    cluster = Cluster(scratch)
    yield cluster
    cluster.end()


def many() -> pp.Experiment:
    """Of 450 runs with ``GRID`` and 150 seeds."""
    return experiment("20Mbit/s").set("duration", "10s")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What ``many`` writes without a cluster."""
    out = tmp_path_factory.mktemp("here")
    pp.sweep(many(), GRID, "1..150", out=out)
    return contents(out)


def test_a_cluster_writes_the_same_bytes_and_a_killed_worker_loses_nothing(
    cluster: Cluster, here: dict[str, bytes], tmp_path: Path
) -> None:
    from distributed import Client

    there = tmp_path / "there"
    exp = many()
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
        assert swept.ran == 450 and contents(there) == here
        assert pp.sweep(exp, GRID, "1..150", out=there, client=client).ran == 0


def test_after_a_scheduler_that_dies_the_sweep_goes_on_and_nothing_is_lost_or_made_twice(
    cluster: Cluster, here: dict[str, bytes], tmp_path: Path
) -> None:
    from distributed import Client

    there = tmp_path / "there"
    exp = many()
    cluster.worker()
    client = Client(scheduler_file=str(cluster.file), set_as_default=False, timeout="5s")
    client.wait_for_workers(1)

    def kill() -> None:
        wait_for(lambda: len(list(there.rglob("*.parquet"))) > 1)
        cluster.restart()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(Exception, match="(?i)scheduler|cancelled|connect|closed"):
        pp.sweep(exp, GRID, "1..150", out=there, client=client)
    killer.join(60)
    with suppress(RuntimeError):  # Dask closes its connections while it reconnects, and may say so
        client.close()
    kept = contents(there)
    assert 0 < len(kept) < len(here)
    times = {name: (there / name).stat().st_mtime_ns for name in kept}
    cluster.worker()
    with Client(scheduler_file=str(cluster.file), set_as_default=False) as client:
        client.wait_for_workers(1)
        swept = pp.sweep(exp, GRID, "1..150", out=there, client=client)
    assert contents(there) == here
    assert swept.ran < 450 and all((there / name).stat().st_mtime_ns == at for name, at in times.items())


def test_an_address_is_no_client_and_a_list_no_grid(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="give distributed.Client"):
        pp.sweep(experiment(), out=tmp_path, client="tcp://localhost:1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is no grid"):
        pp.sweep(experiment(), ["a"], out=tmp_path)  # type: ignore[arg-type]


def test_own_controllers_and_the_files_of_links_travel_to_the_workers(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    class Gentle(Reno):
        version = "gentle 1"
        initial = 4

    monkeypatch.chdir(tmp_path)  # no worker is here
    exp = pp.Experiment("travels", duration="4s", seeds="1..4").flow("bulk", "a", "b", start=["0s", "1s"], controller=Gentle)
    exp = exp.link("a", "b", pp.traces.lte(seed=5, mean="8Mbit/s").write("lte.trace"), "20ms", queue="50p")
    pp.sweep(exp, out="here")
    cluster.worker()
    with Client(scheduler_file=str(cluster.file), set_as_default=False) as client:
        client.wait_for_workers(1)
        pp.sweep(exp, out="there", client=client)
    assert contents(tmp_path / "there") == contents(tmp_path / "here") != {}


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

            client.submit(_work, "{}", "x", ((), ()), (), pp.version(), "", 1, 1, pure=False).result()
    assert not list(tmp_path.rglob("*.parquet"))


# From the command line.


def polypath(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polypath", *map(str, arguments)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True)


def test_the_command_line_sweeps_here_and_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    spec, here, there = tmp_path / "swept.toml", tmp_path / "here", tmp_path / "there"
    spec.write_text(experiment().grid("link.a->b.delay", GRID["link.a->b.delay"]).toml)
    cluster.worker()
    address = cluster.address
    made = polypath("run", spec, "--out", here, "--seeds", "1..3", "--jobs", 2)
    assert made.stdout == f"9 runs made, 0 were there; 3 files in {here}\n", made
    made = polypath("run", spec, "--out", there, "--seeds", "1..3", "--dask", address)
    assert made.returncode == 0 and contents(here) == contents(there), made
    again = polypath("run", spec, "--out", here)
    assert again.stdout == f"3 runs made, 9 were there; 6 files in {here}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["run", "foundation/one_lnk", "--out", "x"], 2, 'did you mean "foundation/one_link"'),
        (["run", "foundation/one_link", "--out", "x", "--seeds", "a..b"], 2, "are no seeds"),
        (["run", "foundation/one_link", "--out", "x", "--jobs", "0"], 2, "no number from 1"),
        (["run", "foundation/one_link"], 2, "--out"),
        (["run", "foundation/one_link", "--out", "x", "--dask", "tcp://127.0.0.1:1"], 1, "127.0.0.1:1"),
    ],
)
def test_bad_arguments_are_told(arguments: list[str], status: int, text: str, tmp_path: Path) -> None:
    failed = subprocess.run(
        [sys.executable, "-m", "polypath", *arguments],
        env={**environment(), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert failed.returncode == status and text in failed.stderr, failed
    assert "Traceback" not in failed.stderr
