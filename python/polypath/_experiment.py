"""Experiments: read from a file, built, and changed."""

from __future__ import annotations

import copy
import json
from difflib import get_close_matches
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from . import _native, _own
from ._errors import SpecError, UnknownName

Keys = dict[str, Any]


class Experiment:
    """A topology, flows over it, values to try, seeds, and what must come out.

    ``docs/experiments.md`` describes every key of it. An experiment never changes: each method returns another one. It
    is checked when its cells are asked for or it is run; ``check()`` does only that.

    >>> exp = Experiment("one link", duration="5s", seeds="1..3")
    >>> exp = exp.link("a", "b", rate="8Mbit/s", delay="30ms", queue="1bdp")
    >>> exp = exp.flow("bulk", "a", "b")
    >>> exp = exp.grid("link.a->b.delay", ["10ms", "100ms"], name="delay")
    >>> exp.cells
    ['10ms', '100ms']
    """

    def __init__(
        self,
        title: str,
        *,
        duration: str,
        measure_from: str | None = None,
        seeds: str | int | range | None = None,
        connection: Keys | None = None,
        **more: Any,
    ) -> None:
        """``duration``: virtual time of one run, ``"20s"``. ``measure_from``: numbers count from here, so that the start
        can be left out. ``seeds``: ``"1..20"``, the last included, or ``range(1, 21)``. ``connection``: what every TCP flow has."""
        keys = {"measure_from": measure_from, "connection": connection, **more}
        self._doc: Keys = {"version": 1, "title": title, "duration": duration, **_given(keys)}
        if seeds is not None:
            first, last = seed_range(seeds)
            self._doc["seeds"] = f"{first}..{last}"
        self._name = title
        self._dir: Path | None = None
        self._group: str | None = None
        self._loaded: _native.Experiment | None = None

    @classmethod
    def _of(cls, doc: Keys, name: str, dir: Path | None, group: str | None) -> Experiment:
        made = cls.__new__(cls)
        made._doc, made._name, made._dir, made._group, made._loaded = doc, name, dir, group, None
        return made

    # What it is.

    @cached_property
    def _native(self) -> _native.Experiment:
        if self._loaded is not None:
            return self._loaded
        text, controllers, schedulers = _own.text(self._doc)
        return _native.Experiment.of(text, self._name, self._dir, self._group, controllers, schedulers)

    @property
    def document(self) -> Keys:
        """The spec as a dictionary, as in a file: a copy, to look at or to change and give to ``from_dict``."""
        return copy.deepcopy(self._doc)

    @property
    def toml(self) -> str:
        """The spec as a file: give it to ``polypath lab run``, which has no controllers in Python: there only their names stand."""
        return self._native.toml

    @property
    def name(self) -> str:
        """``group/name`` of one that was loaded; the title of one that was built."""
        return self._name

    @property
    def title(self) -> str:
        """What is shown, in one line."""
        return str(self._doc["title"])

    @property
    def cells(self) -> list[str]:
        """The labels of the cells, ``["min_rtt,20s", …]``: one per combination of the grid, ``[""]`` without a grid."""
        return self._native.cells

    @property
    def axes(self) -> list[str]:
        """The names of the axes of the grid: columns of ``Results.values``."""
        return self._native.axes

    @property
    def seeds(self) -> range:
        """The seeds of the ensemble."""
        first, last = self._native.seeds
        return range(first, last + 1)

    def check(self) -> Experiment:
        """Itself, or a ``SpecError`` with line, key and remedy."""
        _ = self._native
        return self

    def __repr__(self) -> str:
        return f"<polypath.Experiment {self._name!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and self._doc == other._doc

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return Experiment._of, (self._doc, self._name, self._dir, self._group)

    # Others like it.

    def link(self, a: str, b: str, rate: str, delay: str, **more: Any) -> Experiment:
        """One more link: ``rate`` such as ``"8Mbit/s"``, ``delay`` one way, ``queue`` in packets, bytes or round trips
        (``"144p"``, ``"90kB"``, ``"1.5bdp"``), ``loss`` from 0 to 1, ``back`` what differs in the other direction."""
        return self._with("link", {"from": a, "to": b, "rate": rate, "delay": delay, **more})

    def flow(
        self,
        name: str,
        a: str,
        b: str,
        paths: list[list[str]] | None = None,
        *,
        controller: type[_own.Controller] | str | None = None,
        scheduler: type[_own.Scheduler] | str | None = None,
        **more: Any,
    ) -> Experiment:
        """One more flow from ``a`` to ``b``, over ``paths``, each by the nodes between; without it over the direct link.
        ``start`` a time or a range, ``size`` such as ``"10MB"``, ``connection`` what differs from the experiment's, in
        which ``controller`` and ``scheduler`` name an algorithm or give a class of your own."""
        algorithms = {"cc": (controller, "algorithm"), "scheduler": (scheduler, "policy")}
        given = {key: {tag: a} if isinstance(a, str) else a for key, (a, tag) in algorithms.items() if a is not None}
        if given:
            more["connection"] = {**more.get("connection", {}), **given}
        return self._with("flow", {"name": name, "from": a, "to": b, "paths": paths, **more})

    def host(self, name: str, **more: Any) -> Experiment:
        """What is not ideal about a host: ``jitter``, ``clock_offset``, ``clock_drift_ppm``."""
        return self._with("host", {"name": name, **more})

    def grid(
        self, key: str | None, values: list[Any], *, labels: list[str] | None = None, name: str | None = None
    ) -> Experiment:
        """One more axis: ``values`` to try for ``key``, such as ``"connection.scheduler.policy"``, ``"link.a->r.rate"``
        or ``"flow.bulk.mss"``. An axis of the same key or name is replaced."""
        if isinstance(values, (str, bytes, dict)):
            raise TypeError(f"the values of {name or key} are a list, even if there is one: not {values!r}")
        if labels is None and any(map(_own.is_own, values)):
            labels = [_own.called(value) if _own.is_own(value) else _label(value) for value in values]
        axis = _given({"key": key, "name": name, "values": list(values), "labels": labels})
        called = {name or key} if key is None else {name or key, key}
        others = [a for a in self._doc.get("grid", []) if not called & {a.get("name"), a.get("key")}]
        return self._changed({**self._doc, "grid": [*others, axis]})

    def expect(self, metric: str, **more: Any) -> Experiment:
        """One more expectation: ``flow``, ``path``, ``over`` (another flow: a ratio), ``from_`` and ``to`` (the measured
        time), ``statistic``, ``cell``, ``claim``, and what must come out: ``min`` and ``max`` (rates in bit/s), ``ascending``, or
        ``published`` with ``margin``. Its number of each run is in ``Results.values``."""
        more = {key.rstrip("_"): value for key, value in more.items()}
        if not {"min", "max", "published", "ascending"} & more.keys():
            raise ValueError(
                f"whatever {metric} is meets this expectation: give min or max, ascending, or published with margin; "
                "measure(…) with the same arguments only measures"
            )
        return self._with("expect", {"metric": metric, **more})

    def measure(self, metric: str, **more: Any) -> Experiment:
        """One more number of each run in ``Results.values``, of which nothing is expected: the arguments of ``expect``
        without those that say what must come out. What every flow has is there anyway."""
        return self._with("measure", {"metric": metric, **{key.rstrip("_"): value for key, value in more.items()}})

    def figure(self, kind: str, title: str, series: list[Keys], **more: Any) -> Experiment:
        """One more figure: ``kind`` is ``"time"``, ``"sweep"``, ``"box"`` or ``"violin"`` (with ``axis``), ``"heat"`` (with ``axis`` and
        ``rows``) or ``"cdf"``, ``series`` a list of ``{"flow": …, "path": …, "label": …}``."""
        more = {key.rstrip("_"): value for key, value in more.items()}
        return self._with("figure", {"kind": kind, "title": title, "series": series, **more})

    def set(self, key: str, value: Any) -> Experiment:
        """The same with another value of ``key``, named as in a grid: ``"duration"``, ``"connection.cc"``,
        ``"flow.bulk.mss"``, ``"link.a->r.rate"``. ``None`` removes the key."""
        doc = self.document
        table, last = _walk(doc, key)
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value
        return self._changed(doc)

    def _with(self, section: str, entry: Keys) -> Experiment:
        return self._changed({**self._doc, section: [*self._doc.get(section, []), _given(entry)]})

    def _changed(self, doc: Keys) -> Experiment:
        return Experiment._of(doc, self._name, self._dir, self._group)


def load(spec: str | Path) -> Experiment:
    """The experiment in a file, or the one of this name: ``"foundation/two_paths"``, below ``experiments/`` where there is
    such a directory, otherwise built in. ``names()`` lists the built-in ones.

    >>> load("foundation/one_link").title
    'One NewReno on one link fills it'
    """
    if not isinstance(spec, (str, Path)):
        raise TypeError(f"an Experiment, a file or a name says what to run, not {spec!r}")
    return _as_written(_native.Experiment.load(Path(spec)))


def from_toml(text: str, name: str = "experiment") -> Experiment:
    """The experiment that TOML describes, as a file would; errors call it ``name``."""
    return _as_written(_native.parse(text, name))


def from_dict(document: Keys, name: str = "experiment") -> Experiment:
    """The experiment that a dictionary describes, with the keys of a file: the opposite of ``Experiment.document``."""
    return Experiment._of(copy.deepcopy(document), name, None, None)


def _as_written(native: _native.Experiment) -> Experiment:
    dir, group = native.place
    made = Experiment._of(json.loads(native.document), native.name, dir, group)
    made._loaded = native
    return made


def names() -> list[str]:
    """The names of the built-in experiments."""
    return _native.names()


def schema() -> Keys:
    """The JSON Schema of spec files."""
    schema: Keys = json.loads(_native.schema())
    return schema


def seed_range(seeds: str | int | range) -> tuple[int, int]:
    """First and last of ``"1..20"``, ``range(1, 21)`` or a number."""
    first, last = _ends(seeds)
    if not 0 <= first <= last:
        raise ValueError(f"{seeds!r} are no seeds: the first is the smaller one, and none is below 0")
    return first, last


def _ends(seeds: str | int | range) -> tuple[int, int]:
    if isinstance(seeds, SupportsIndex) and not isinstance(seeds, bool):
        return index(seeds), index(seeds)
    if isinstance(seeds, range):
        if seeds.step != 1 or not seeds:
            raise ValueError(f"{seeds!r} are no seeds: give a range such as range(1, 21), without a step")
        return seeds.start, seeds[-1]
    if not isinstance(seeds, str):
        raise TypeError(f'{seeds!r} are no seeds: write "1..20", the last included, or range(1, 21)')
    first, _, last = seeds.partition("..")
    try:
        return int(first), int((last or first).removeprefix("="))
    except ValueError:
        raise ValueError(f'{seeds!r} are no seeds: write "1..20", the last included, or range(1, 21)') from None


def _given(keys: Keys) -> Keys:
    return {key: value for key, value in keys.items() if value is not None}


def _label(value: Any) -> str:
    """What the cell of ``value`` is called."""
    return "+".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _walk(doc: Keys, key: str) -> tuple[Keys, str]:
    """The table in which the last part of ``key`` stands, and that part."""
    *way, last = key.split(".")
    table: Any = doc
    for n, part in enumerate(way):
        if isinstance(table, list):
            table = _element(table, way[n - 1], part)
        else:
            table = table.setdefault(part, {})
    if isinstance(table, list):
        table = _element(table, way[-1], last)
        raise TypeError(f"{key} is a table: name a key of it, for example {key}.{next(iter(table))}")
    if not isinstance(table, dict):
        raise TypeError(f"{'.'.join(way)} is a value, not a table")
    return table, last


def _element(elements: list[Keys], section: str, which: str) -> Keys:
    def name(entry: Keys) -> str:
        return f"{entry.get('from')}->{entry.get('to')}" if section == "link" else str(entry.get("name"))

    wanted = "->".join(end.strip() for end in which.split("->"))
    for n, entry in enumerate(elements):
        if wanted in (name(entry), str(n)):
            return entry
    names = [name(entry) for entry in elements]
    nearest = get_close_matches(wanted, names, 1)
    remedy = f'did you mean "{nearest[0]}"? There are: ' if nearest else "there are: "
    raise UnknownName(f'no {section} is named "{which}"', remedy + ", ".join(names))


__all__ = ["Experiment", "SpecError", "from_dict", "from_toml", "load", "names", "schema"]
