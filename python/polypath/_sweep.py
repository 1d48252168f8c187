"""Sweeps: many cells and seeds, on this machine or a cluster, in files that an interrupted sweep goes on with."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import _native, _own
from ._errors import VersionMismatch
from ._experiment import Experiment, load, seed_range
from ._run import Progress
from ._table import Table

if TYPE_CHECKING:
    from distributed import Client

FILE = re.compile(r"(\d+)-(\d+)\.([0-9a-f]{16})\.parquet")
"""First and last seed, and the beginning of the SHA-256 of what is in the file."""


@dataclass(frozen=True)
class Part:
    """Some seeds of one cell."""

    cell: str
    key: str
    first: int
    last: int


class Sweep:
    """What a sweep gave: the files below ``out`` that are of its cells and seeds."""

    def __init__(self, experiment: Experiment, seeds: range, out: Path, ran: int) -> None:
        self.experiment, self.seeds, self.out = experiment, seeds, out
        self.ran = ran
        """How many runs were made. The others were there already."""

    @property
    def files(self) -> list[Path]:
        """The files, in the order of cells and seeds."""
        return [file for _, found in self._found() for _, _, file in found]

    @property
    def values(self) -> Table:
        """A row for each number of each run, as ``Results.values``, in the order of cells and seeds.

        A number that is compared with another cell (``over_cell``) stands there undivided, for both cells."""
        tables = [table for _, found in self._found() for table in self._read(found)]
        return Table(pa.concat_tables(tables))

    def _found(self) -> Iterator[tuple[str, list[tuple[int, int, Path]]]]:
        first, last = self.seeds[0], self.seeds[-1]
        for _, key in _cells(self.experiment, first, last):
            whole = [f for f in _files(self.out, key) if f[0] <= last and f[1] >= first]
            yield key, sorted(whole)

    def _read(self, found: list[tuple[int, int, Path]]) -> Iterator[pa.Table]:
        next_seed = self.seeds[0]
        for first, last, file in found:
            last = min(last, self.seeds[-1])
            if last < next_seed:
                continue  # another machine's file has the same seeds
            table = pq.ParquetFile(file).read()
            if first < next_seed or last < self.seeds[-1]:
                seeds = table["seed"]
                table = table.filter(pc.and_(pc.greater_equal(seeds, next_seed), pc.less_equal(seeds, last)))
            next_seed = last + 1
            yield table

    def __repr__(self) -> str:
        return f"<polypath.Sweep of {self.experiment.name!r}, seeds {self.seeds[0]}..{self.seeds[-1]}, in {str(self.out)!r}>"


def sweep(
    experiment: Experiment | str | Path,
    grid: Mapping[str, list[Any]] | None = None,
    seeds: str | int | range | None = None,
    *,
    out: str | Path,
    client: Client | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Runs every combination of ``grid`` with every seed; ``out`` gets a Parquet file for every few seconds of work.

    ``grid``: values to try by key, ``{"link.a->r.rate": ["2Mbit/s", "4Mbit/s"]}``, beside the axes that the experiment has. ``client``: of a
    Dask cluster; without it this machine's cores, or ``jobs`` of them. A sweep that was interrupted goes on where it
    stopped when it is called again; what is there and whole is not run again, also when there are more cells or seeds than before.
    Files are equal byte for byte wherever they were made, and the directories of two machines join by copying.
    """
    experiment = experiment if isinstance(experiment, Experiment) else load(experiment)
    if grid is not None and not isinstance(grid, Mapping):
        raise TypeError(f'{grid!r} is no grid: give values to try by key, {{"link.a->b.delay": ["5ms", "20ms"]}}')
    for key, values in (grid or {}).items():
        experiment = experiment.grid(key, values)
    _own.check_versions(experiment.document)
    if isinstance(client, str):
        raise TypeError(f"{client!r} is no client: give distributed.Client({client!r})")
    first, last = experiment._native.seeds if seeds is None else seed_range(seeds)
    directory = Path(out)
    missing = list(_missing(experiment, first, last, directory))
    runs = sum(part.last - part.first + 1 for part in missing)
    bar = Progress(runs, "runs", progress)
    ended = 0
    made = _on_cluster(client, experiment, missing, directory) if client else _here(experiment, missing, directory, jobs)
    try:
        for part in made:
            ended += part.last - part.first + 1
            bar.show(ended)
    finally:
        bar.end()
    return Sweep(experiment, range(first, last + 1), directory, runs)


def _cells(experiment: Experiment, first: int, last: int) -> list[tuple[str, str]]:
    """Label and key of every cell, in order."""
    return list(dict.fromkeys((cell, key) for cell, key, _, _ in experiment._native.tasks(first, first)))


def _missing(experiment: Experiment, first: int, last: int, out: Path) -> Iterator[Part]:
    """What no whole file has."""
    there: dict[str, list[tuple[int, int]]] = {}
    for _, key in _cells(experiment, first, last):
        there[key] = [(a, b) for a, b, file in _files(out, key) if _is_whole(file)]
    for cell, key, begin, end in experiment._native.tasks(first, last):
        for a, b in sorted(there[key]):
            if a <= end and b >= begin:
                if a > begin:
                    yield Part(cell, key, begin, a - 1)
                begin = b + 1
        if begin <= end:
            yield Part(cell, key, begin, end)


def _files(out: Path, key: str) -> list[tuple[int, int, Path]]:
    """The files of a cell by their names: first and last seed."""
    place = out / f"part={key}"
    if not place.is_dir():
        return []
    matches = ((FILE.fullmatch(file.name), file) for file in place.iterdir())
    return [(int(match[1]), int(match[2]), file) for match, file in matches if match]


def _is_whole(file: Path) -> bool:
    """Whether the content is the one that was written; what is not is removed, and run again."""
    if hashlib.sha256(file.read_bytes()).hexdigest()[:16] == file.name.split(".")[1]:
        return True
    warnings.warn(f"{file} is damaged: its runs are made again", stacklevel=4)
    file.unlink()
    return False


def _store(part: Part, content: bytes, out: Path) -> None:
    """A file that has its name once it is whole."""
    place = out / f"part={part.key}"
    place.mkdir(parents=True, exist_ok=True)
    name = f"{part.first}-{part.last}.{hashlib.sha256(content).hexdigest()[:16]}.parquet"
    unfinished = place / f".{name}.{os.getpid()}"
    try:
        unfinished.write_bytes(content)
        unfinished.replace(place / name)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _here(experiment: Experiment, parts: list[Part], out: Path, jobs: int | None) -> Iterator[Part]:
    """On this machine's cores. Interrupted, it waits for the parts that are under way and keeps them."""

    def one(part: Part) -> Part:
        _store(part, experiment._native.task(part.cell, part.first, part.last), out)
        return part

    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        try:
            for future in as_completed([pool.submit(one, part) for part in parts]):
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _on_cluster(client: Client, experiment: Experiment, parts: list[Part], out: Path) -> Iterator[Part]:
    """On the workers of a Dask cluster, which need no file system of ours."""
    from distributed import as_completed

    experiment.check()
    try:
        versions = client.run(_version)
    except Exception as error:
        if "No module named 'polypath'" in str(error):
            message = f"a worker has no polypath, and here is {_native.version()}: install the same on all"
            raise VersionMismatch(message) from None
        raise
    for address, theirs in versions.items():
        _same_version(theirs, _native.version(), address)
    text, controllers, schedulers = _own.text(experiment.document)
    own = (tuple(controllers.items()), tuple(schedulers.items()))
    texts = tuple(experiment._native.texts.items())
    told = (text, experiment.name, own, texts, _native.version())
    futures = {}
    for part in parts:
        name = f"polypath-{part.key}-{part.first}-{part.last}"
        futures[client.submit(_work, *told, part.cell, part.first, part.last, key=name, pure=False, retries=2)] = part
    try:
        for future in as_completed(futures, loop=client.loop):
            part = futures.pop(future)
            _store(part, future.result(), out)
            future.release()
            yield part
    finally:
        client.cancel(list(futures))


Texts = tuple[tuple[str, str], ...]
Own = tuple[tuple[tuple[str, type[Any]], ...], tuple[tuple[str, type[Any]], ...]]


def _work(document: str, name: str, own: Own, texts: Texts, version: str, cell: str, first: int, last: int) -> bytes:
    """What a worker does: the values of a part as Parquet."""
    _same_version(_version(), version, "a worker")
    return _compiled(document, name, own, texts).task(cell, first, last)


@lru_cache(maxsize=8)
def _compiled(document: str, name: str, own: Own, texts: Texts) -> _native.Experiment:
    controllers, schedulers = own
    return _native.Experiment.of(document, name, None, None, dict(controllers), dict(schedulers), dict(texts))


def _version() -> str:
    return _native.version()


def _same_version(theirs: str, ours: str, who: str) -> None:
    if theirs != ours:
        raise VersionMismatch(
            f"{who} has version {theirs} of polypath, and here is {ours}: their numbers may differ; "
            "install the same on all"
        )


