"""tools/sweeps.py DIR [RUNS [WORKERS]]: RUNS (10000) runs of 20 s, 100 cells of one connection over two paths, 8 + 4 Mbit/s:

1. in turns on as many cores of this machine (DIR/here) as Dask has workers (DIR/dask; two), each turn a part of the seeds; prints
   both times and their ratio;
2. by Dask once more, if there are several (DIR/disturbed), while one of the workers is killed and later the scheduler restarted: what
   had come back then is not made again.

All must be equal, byte for byte. Called again it goes on where it was interrupted; a turn that was has no time.
"""

import json
import logging
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import polypath as pp
from distributed import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
from cluster import Cluster  # noqa: E402

CELLS, TURN = 100, 25  # seeds of a turn
GRID = {
    "link.a->x.delay": [f"{n}ms" for n in range(5, 55, 5)],
    "link.a->y.delay": [f"{n}ms" for n in range(20, 120, 10)],
}


def experiment():
    exp = pp.Experiment("sweeps", duration="20s")
    exp = exp.link("a", "x", "8Mbit/s", "20ms", queue="1bdp").link("x", "b", "100Mbit/s", "1ms")
    exp = exp.link("a", "y", "4Mbit/s", "60ms", queue="1bdp").link("y", "b", "100Mbit/s", "1ms")
    return exp.flow("bulk", "a", "b", paths=[["x"], ["y"]], start=["0s", "1s"])


@contextmanager
def cluster(out, workers=2):
    """A scheduler and its workers."""
    scratch = out / "cluster"
    scratch.mkdir(exist_ok=True)
    made = Cluster(scratch)
    try:
        for _ in range(workers):
            made.worker()
        yield made
    finally:
        made.end()


def client_of(made, workers=2):
    client = Client(scheduler_file=str(made.file), set_as_default=False, timeout="10s")
    client.wait_for_workers(workers)
    return client


def files(place):
    return {str(f.relative_to(place)): f for f in sorted(place.rglob("[0-9]*.parquet"))}


def same(one, other):
    """Ends the program unless both have the same files with the same bytes."""
    ours, theirs = files(one), files(other)
    differ = ours.keys() ^ theirs.keys() | {n for n in ours.keys() & theirs.keys() if ours[n].read_bytes() != theirs[n].read_bytes()}
    if differ:
        sys.exit(f"{one.name} and {other.name} differ in {len(differ)} files, {sorted(differ)[0]} among them")
    print(f"{one.name} and {other.name}: {len(ours)} files, equal byte for byte", flush=True)


def turns(seeds):
    """The seeds of each turn."""
    return [range(first, min(first + TURN, seeds + 1)) for first in range(1, seeds + 1, TURN)]


def turn(out, where, seeds, client, jobs):
    """One turn; its time, if nothing interrupted it now or before, joins DIR/times.jsonl."""
    begin = time.monotonic()
    swept = pp.sweep(experiment(), GRID, seeds, out=out / where, client=client, jobs=jobs, progress=False)
    seconds = time.monotonic() - begin
    whole = swept.ran == CELLS * len(seeds)
    if whole:
        with (out / "times.jsonl").open("a") as times:
            print(json.dumps({"where": where, "workers": jobs, "first": seeds[0], "runs": swept.ran, "seconds": seconds}), file=times)
    print(f"seeds {seeds[0]}..{seeds[-1]} {where}: {swept.ran} runs made in {seconds:.1f} s", "" if whole else "(not timed)", flush=True)


def in_turns(out, seeds, workers):
    with cluster(out, workers) as made, client_of(made, workers) as client:
        for n, some in enumerate(turns(seeds)):
            ways = [("here", None), ("dask", client)]
            for where, via in ways[:: -1 if n % 2 else 1]:
                turn(out, where, some, via, workers)
    tell_times(out, workers)


def tell_times(out, workers):
    times = [json.loads(line) for line in (out / "times.jsonl").read_text().splitlines()]
    by = {where: {t["first"]: t["seconds"] for t in times if (t["where"], t.get("workers")) == (where, workers)} for where in ("here", "dask")}
    both = sorted(by["here"].keys() & by["dask"].keys())
    if both:
        here, dask = (sum(by[where][first] for first in both) for where in ("here", "dask"))
        ratio = median(by["dask"][first] / by["here"][first] for first in both)
        print(f"{len(both)} turns timed: here {here:.1f} s, dask {dask:.1f} s, {dask / here:.3f} times (median of turns {ratio:.3f})")


def disturbed(out, seeds):
    """A worker is killed after a quarter of the files that are missing, the scheduler dies after half of them."""
    place, whole = out / "disturbed", len(files(out / "here"))
    before = len(files(place))
    kept = {}

    def disturb():
        for share, act in ((0.25, made.workers[0].kill), (0.5, made.restart)):
            while len(files(place)) < before + (whole - before) * share:
                time.sleep(0.05)
            act()

    with cluster(out) as made:
        killer = threading.Thread(target=disturb, daemon=True)
        killer.start()
        client = client_of(made)
        for some in turns(seeds):
            try:
                pp.sweep(experiment(), GRID, some, out=place, client=client, progress=False)
            except Exception as error:  # one of several of Dask's
                killer.join()
                kept = {name: file.stat().st_mtime_ns for name, file in files(place).items()}
                print(f"{type(error).__name__}: {error}\n{len(kept)} of {whole} files had come back", flush=True)
                client = renewed(made, client)
                swept = pp.sweep(experiment(), GRID, some, out=place, client=client, progress=False)
                print(f"the same call again made {swept.ran} of its {CELLS * len(some)} runs")
        client.close()
    if not kept:
        sys.exit("it ended before the scheduler died: give it more RUNS, and another DIR")
    twice = [name for name, at in kept.items() if files(place)[name].stat().st_mtime_ns != at]
    if twice:
        sys.exit(f"made twice: {twice}")
    print("no file that had come back was made again")


def renewed(made, client):
    """New workers at the new scheduler, and a client of them."""
    with suppress(RuntimeError):  # Dask closes its connections while it reconnects, and may say so
        client.close(timeout=5)
    for worker in made.workers:
        worker.kill()
    made.worker(), made.worker()
    return client_of(made)


def main(out, runs=10_000, workers=2):
    logging.disable(logging.ERROR)  # Dask tells at length of a scheduler that died
    seeds = max(runs // CELLS, 1)
    in_turns(out, seeds, workers)
    same(out / "here", out / "dask")
    if workers == 1:
        return
    if files(out / "disturbed").keys() != files(out / "here").keys():
        disturbed(out, seeds)
    same(out / "here", out / "disturbed")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
