"""Controllers and schedulers of your own, written in Python: prototypes, some ten times as slow as those in Rust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Ack, Loss, Parcel, Path


class _Named:
    name: str = ""
    """What specs and errors call it; without it the name of the class."""
    version: str = ""
    """Raise it with every change of what the class does: run ids and the files of a sweep are named by ``name`` and
    ``version``, for nobody can compare two pieces of Python. A sweep needs it."""


class Controller(_Named):
    """Congestion control of one connection over all its paths, in Python.

    Give the class, not an instance, wherever an experiment names a controller: ``flow(…, controller=Mine)``,
    ``set("connection.cc", Mine)``, ``grid("connection.cc", [Mine, {"algorithm": "newreno"}])``. Each end of each
    connection has an instance of its own, made without arguments. After each event it is asked for its windows.

    Times are seconds of virtual time, sizes bytes, rates bit/s; a path is its id, a number. ``on_path_added``, ``on_ack``, ``on_loss`` and
    ``window`` must be there, the rest may be left out. What it does may follow from nothing but what it is told and ``seed``: no
    clock, no state shared between instances. An exception ends the run and is raised where it was started.

    >>> import polypath as pp
    >>> class Fixed(pp.Controller):
    ...     def on_path_added(self, now, path, mss):
    ...         self.size = 10 * mss
    ...     def on_ack(self, now, path, ack, paths): ...
    ...     def on_loss(self, now, path, loss, paths): ...
    ...     def window(self, path):
    ...         return self.size
    >>> exp = pp.Experiment("ten segments", duration="5s").link("a", "b", "8Mbit/s", "50ms")
    >>> goodput = pp.run(exp.flow("bulk", "a", "b", controller=Fixed)).values.where(metric="goodput")
    >>> round(goodput["value"][0].as_py() / 1e6, 1)  # Mbit/s: ten segments in a round trip of some 100 ms
    1.1
    """

    seed: int
    """For those that throw dice: set before the first event, ``random.Random(self.seed)``."""

    def on_path_added(self, now: float, path: int, mss: int) -> None:
        """A path joined; ``mss`` is its largest payload."""
        raise NotImplementedError(f"{type(self).__name__}.on_path_added(now, path, mss)")

    def on_ack(self, now: float, path: int, ack: Ack, paths: list[Path]) -> None:
        """Data was delivered; once per path and acknowledgment."""
        raise NotImplementedError(f"{type(self).__name__}.on_ack(now, path, ack, paths)")

    def on_loss(self, now: float, path: int, loss: Loss, paths: list[Path]) -> None:
        """A loss episode began, or the retransmission timer ran out: ``loss.cause`` is ``"timeout"`` then."""
        raise NotImplementedError(f"{type(self).__name__}.on_loss(now, path, loss, paths)")

    def window(self, path: int) -> float:
        """Congestion window of ``path``."""
        raise NotImplementedError(f"{type(self).__name__}.window(path)")

    def on_path_removed(self, path: int) -> None:
        """A path left for good."""

    def on_mss(self, path: int, mss: int) -> None:
        """The largest payload of a path changed."""

    def on_sent(self, now: float, path: int, size: int) -> None:
        """Data left."""

    def on_lost(self, now: float, path: int, offset: int, size: int, sent_at: float) -> None:
        """A segment was judged lost."""

    def on_undo(self, now: float, path: int, episode: int) -> None:
        """The episode was for nothing: restore what was saved for it."""

    def limit_window(self, path: int, size: int) -> None:
        """The window is at most ``size`` now and grows from there: several SYNs were lost, or a failed path came back."""

    def next_timeout(self) -> float | None:
        """When the next periodic update is due."""

    def on_timeout(self, now: float, paths: list[Path]) -> None:
        """It is due."""

    def pacing_rate(self, path: int) -> float | None:
        """How fast ``path`` may send, payload; ``None`` as fast as the window allows."""

    def total_window(self) -> float:
        """Most in flight on all paths together. Without this method the windows of the paths alone limit."""
        raise NotImplementedError

    def ssthresh(self, path: int) -> float | None:
        """Slow start threshold, for traces."""


class Scheduler(_Named):
    """Chooses the path of the next segment, in Python. Give the class: ``flow(…, scheduler=Mine)``,
    ``set("connection.scheduler", Mine)``.

    >>> import polypath as pp
    >>> class Fastest(pp.Scheduler):
    ...     def pick(self, now, parcel, paths):
    ...         open = [path for path in paths if path.open]
    ...         return min(open, key=lambda path: path.srtt or 0.0).id if open else None
    >>> exp = pp.Experiment("two paths", duration="3s").link("a", "x", "8Mbit/s", "5ms").link("x", "b", "1Gbit/s", "1ms")
    >>> exp = exp.link("a", "y", "4Mbit/s", "20ms").link("y", "b", "1Gbit/s", "1ms")
    >>> exp = exp.flow("bulk", "a", "b", paths=[["x"], ["y"]], scheduler=Fastest)
    >>> goodput = pp.run(exp).values.where(metric="goodput", path=None)["value"][0].as_py()
    >>> goodput == pp.run(exp.set("flow.bulk.connection.scheduler", {"policy": "min_rtt"})).values["value"][0].as_py()
    True
    """

    def pick(self, now: float, parcel: Parcel, paths: list[Path]) -> int | Sequence[int] | None:
        """The id of a path that is ``open``, several for a copy on each, or ``None`` to wait."""
        raise NotImplementedError(f"{type(self).__name__}.pick(now, parcel, paths)")


Classes = dict[str, type[Any]]


def called(own: type[_Named]) -> str:
    """The name of a class in specs."""
    return own.name or own.__name__


def is_own(value: object) -> bool:
    """Whether it is a class of the user's."""
    return isinstance(value, type) and issubclass(value, _Named)


def text(doc: dict[str, Any]) -> tuple[str, Classes, Classes]:
    """``doc`` as JSON, with names in place of classes; the controllers and the schedulers."""
    controllers: Classes = {}
    schedulers: Classes = {}

    def named(value: object) -> dict[str, str]:
        if isinstance(value, (Controller, Scheduler)):
            raise TypeError(f"{type(value).__name__} is wanted, not an instance of it: each connection makes its own")
        if not (isinstance(value, type) and issubclass(value, (Controller, Scheduler))):
            raise TypeError(f"{type(value).__name__} is none of these")
        known, key = (controllers, "algorithm") if issubclass(value, Controller) else (schedulers, "policy")
        name = called(value)
        if known.setdefault(name, value) is not value:
            raise ValueError(f'two classes are called "{name}": give one of them another `name`')
        return {key: "external", "name": name, "version": str(value.version)}

    try:
        return json.dumps(doc, allow_nan=False, default=named), controllers, schedulers
    except ValueError as error:
        if "two classes" in str(error):
            raise
        raise TypeError(f"a spec holds text, numbers, lists and dictionaries: {error}") from None
    except TypeError as error:
        raise TypeError(f"a spec holds text, numbers, lists and dictionaries, and classes of controllers and schedulers: {error}") from None


def check_versions(doc: dict[str, Any]) -> None:
    """Every class in ``doc`` says which version it is."""
    _, *classes = text(doc)
    for own in (own for known in classes for own in known.values()):
        if not own.version:
            raise ValueError(
                f"the files of a sweep are named by what decides them: give {own.__name__} a `version`, "
                "and another one with every change of what it does"
            )
