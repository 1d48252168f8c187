"""Runs and what came out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import UnknownName
from ._experiment import Experiment, _given, load, seed_range
from ._table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Results:
    """What an ensemble of runs gave.

    >>> results = run("foundation/one_link", seeds="1..2")
    >>> [verdict["met"] for verdict in results.verdicts]
    [True]
    >>> utilisation = results.values.where(metric="utilisation", claim=None)["value"]
    >>> all(0.95 < u.as_py() < 0.97 for u in utilisation)
    True
    """

    def __init__(self, experiment: Experiment, native: _native.Runs) -> None:
        self.experiment = experiment
        self._native = native

    @property
    def runs(self) -> Table:
        """A row for each run and flow: ``run``, ``cell``, ``seed``, ``flow``, ``bytes``, ``goodput_bps``, ``utilisation``,
        ``completion_s``, ``retransmissions``, ``out_of_order``, ``timeouts``, ``loss_rate``, ``intact``."""
        return Table(self._native.runs())

    @property
    def values(self) -> Table:
        """A row for each number of each run: ``run``, ``cell``, a column for each axis of the grid, ``seed``, ``claim``,
        ``metric``, ``flow``, ``path``, ``link``, ``from_s``, ``to_s``, ``over``, ``value``, ``unit`` (rates in bit/s)."""
        return Table(self._native.values())

    @property
    def points(self) -> Table:
        """A row for each point of each figure: ``figure``, ``title``, ``series``, ``source``, ``x``, ``y``, ``low``,
        ``high`` and what they are, in the units of the axes."""
        return Table(self._native.points())

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The answer to each expectation in each cell: ``claim``, ``cell``, ``value``, ``ci95``, ``met``, ``finding`` …"""
        verdicts: list[dict[str, Any]] = json.loads(self._native.verdicts())
        return verdicts

    @property
    def met(self) -> bool:
        """Whether every expectation is met, or unmet where the experiment says why."""
        return all(verdict["met"] == (verdict["unmet"] is None) for verdict in self.verdicts)

    def figure(self, which: int | str = 0) -> Figure:
        """A figure of the experiment as ``matplotlib.figure.Figure``, by its number, from 0, or by its title."""
        from ._figure import draw

        charts = json.loads(self._native.drawn())
        titles = [chart["title"] for chart in charts]
        if isinstance(which, str):
            if which not in titles:
                raise UnknownName(f'no figure is named "{which}"', f"there are: {', '.join(titles) or 'none'}")
            which = titles.index(which)
        if not 0 <= which < len(charts):
            remedy = f"there are {len(charts)}, from 0" if charts else "add one with Experiment.figure"
            raise UnknownName(f"there is no figure {which}", remedy)
        return draw(charts[which])

    def figures(self) -> list[Figure]:
        """All of them."""
        from ._figure import draw

        return [draw(chart) for chart in json.loads(self._native.drawn())]

    def write(self, dir: str | Path) -> None:
        """Writes the tables into ``dir``: ``values``, ``results``, ``figures`` as Parquet, CSV and Arrow IPC, as
        ``polypath lab run --out`` does."""
        self._native.write(Path(dir))

    def report(self, file: str | Path) -> None:
        """Writes a page that needs nothing but a browser, as ``polypath lab report`` does: claims and verdicts on its first
        screen, figures with zoom and tooltips, set-up, readings and bands below."""
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(self._native.page(), encoding="utf-8")

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        lines = [f"<polypath.Results of {len(self)} runs of {self.experiment.name!r}>", *self._native.lines()]
        return "\n".join(lines)


def run(
    experiment: Experiment | str | Path,
    seeds: str | int | range | None = None,
    *,
    cell: str | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
    trace: str | Path | None = None,
    pcap: str | Path | None = None,
    pcap_links: list[str] | None = None,
    pcap_bytes: int | None = None,
) -> Results:
    """Runs every cell with every seed, on all cores or ``jobs`` of them. Other threads of Python run meanwhile; Ctrl-C stops it.

    ``seeds``: ``"1..20"``, the last included, or ``range(1, 21)``; without it those of the experiment. ``cell``: only the one with this
    label. ``progress``: a bar on standard error; without it where that is a terminal. ``trace``, ``pcap``: directories
    for every observation and every packet of every run. ``pcap_links``: only packets at these links and directions,
    ``["a->r"]``. ``pcap_bytes``: at most so many of each packet; 96 are all headers.
    """
    experiment = experiment if isinstance(experiment, Experiment) else load(experiment)
    native = experiment._native
    first, last = native.seeds if seeds is None else seed_range(seeds)
    total = (last - first + 1) * (1 if cell is not None else len(native.cells))
    keep: dict[str, object] = {"trace": trace is not None, "pcap": pcap is not None}
    if trace is not None and pcap is not None and Path(trace) != Path(pcap):
        raise ValueError("trace and pcap go into one directory: give the same")
    if pcap is None and (pcap_links or pcap_bytes):
        raise ValueError("pcap_links and pcap_bytes say what is captured: say where to with pcap")
    keep |= _given({"links": pcap_links, "snap": pcap_bytes})
    if (dir := trace if trace is not None else pcap) is not None:
        keep["dir"] = Path(dir)
    if jobs is not None and not (isinstance(jobs, int) and jobs > 0):
        raise ValueError(f"jobs is how many runs at once, a whole number from 1: not {jobs!r}")
    bar = Progress(total, "runs", progress)
    try:
        return Results(experiment, native.run(first, last, cell, jobs, bar.show, keep))
    finally:
        bar.end()


def trace(experiment: Experiment | str | Path, seed: int = 1, *, cell: str | None = None) -> Table:
    """Every observation of one run: ``time_ns``, ``source`` (a host or hop), ``flow``, ``path``, ``event``, ``detail``, and
    numbers as far as they apply, times in ns, sizes in bytes, ``rate_bps`` in bit/s (``docs/experiments.md``)."""
    experiment = experiment if isinstance(experiment, Experiment) else load(experiment)
    cells = experiment.cells
    first, last = seed_range(seed)
    if first != last:
        raise ValueError(f"{seed!r} are several seeds: a trace is of one run")
    if cell is None and len(cells) > 1:
        raise UnknownName("a trace is of one cell", f"give cell=…; there are: {', '.join(cells)}")
    return Table(experiment._native.trace(first, cell if cell is not None else cells[0]))


class Progress:
    """A bar on standard error."""

    def __init__(self, total: int, of: str, wanted: bool | None) -> None:
        self.total, self.of = total, of
        self.wanted = sys.stderr.isatty() if wanted is None else wanted

    def show(self, ended: int) -> None:
        """So many have ended."""
        if self.wanted:
            filled = 30 * ended // max(self.total, 1)
            print(f"\r{'━' * filled}{'─' * (30 - filled)} {ended} of {self.total} {self.of}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Removes it."""
        if self.wanted:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
