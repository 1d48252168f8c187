"""The compiled part. Use what `polypath` offers instead."""

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, final

@final
class Batches:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...

@final
class Path:
    """A path as a controller or scheduler sees it. ``None`` is not known yet."""

    @property
    def id(self) -> int: ...
    @property
    def open(self) -> bool:
        """Whether it can take the parcel, or a full segment, now."""
    @property
    def active(self) -> bool: ...
    @property
    def mss(self) -> int: ...
    @property
    def room(self) -> int:
        """Window less what is in flight; negative after a reduction."""
    @property
    def window(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def earliest_send(self) -> float:
        """Not before this time, for pacing."""
    @property
    def idle_at(self) -> float:
        """When the bottleneck will have finished what it was given, by our model of it."""
    @property
    def srtt(self) -> float | None: ...
    @property
    def rttvar(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None: ...
    @property
    def one_way(self) -> float | None: ...
    @property
    def rate(self) -> int | None: ...
    @property
    def overhead(self) -> int:
        """Bytes of headers per segment, which ``rate`` counts."""

@final
class Ack:
    """What an acknowledgment says of a path."""

    @property
    def newly_acked(self) -> int: ...
    @property
    def newly_acked_segments(self) -> int: ...
    @property
    def rtt(self) -> float | None:
        """Of the latest segment, if it was not ambiguous."""
    @property
    def srtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None: ...
    @property
    def one_way_queueing(self) -> float | None: ...
    @property
    def delivery_rate(self) -> int | None: ...
    @property
    def sent_at(self) -> float | None: ...
    @property
    def prior_in_flight(self) -> int: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def window_limited(self) -> bool:
        """The window was full, so that it may grow."""
    @property
    def in_recovery(self) -> bool:
        """The path stays in a loss episode: no growth (RFC 6582, 6675)."""

@final
class Loss:
    """A loss episode begins."""

    @property
    def cause(self) -> str:
        """``dup_ack``, ``partial_ack``, ``later_delivered``, ``tail_probe``, ``timeout``, ``too_big``, ``silence``,
        ``path_removed``."""
    @property
    def episode(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def flight_size(self) -> int:
        """Outstanding before the loss was taken out (RFC 5681)."""
    @property
    def oldest_sent(self) -> float: ...

@final
class Parcel:
    """Something to send."""

    @property
    def offset(self) -> int: ...
    @property
    def len(self) -> int: ...
    @property
    def retransmission(self) -> bool: ...
    @property
    def timed_out(self) -> int | None:
        """The path that it was on, if its timer ran out."""
    @property
    def waiting(self) -> int | None:
        """Not sent yet, as far as the end is known."""
    @property
    def window(self) -> int:
        """What the peer lets us have outstanding."""

@final
class Runs:
    def __len__(self) -> int: ...
    def runs(self) -> Batches: ...
    def values(self) -> Batches: ...
    def points(self) -> Batches: ...
    def drawn(self) -> str: ...
    def verdicts(self) -> str: ...
    def lines(self) -> list[str]: ...
    def page(self) -> str: ...
    def write(self, dir: FilePath) -> None: ...

@final
class Experiment:
    @staticmethod
    def load(spec: FilePath) -> Experiment: ...
    @staticmethod
    def of(
        document: str,
        name: str,
        dir: FilePath | None,
        group: str | None,
        controllers: dict[str, type[Any]],
        schedulers: dict[str, type[Any]],
        texts: dict[str, str] | None = None,
    ) -> Experiment: ...
    @property
    def document(self) -> str: ...
    @property
    def toml(self) -> str: ...
    @property
    def place(self) -> tuple[FilePath | None, str | None]: ...
    @property
    def name(self) -> str: ...
    @property
    def texts(self) -> dict[str, str]: ...
    @property
    def cells(self) -> list[str]: ...
    @property
    def axes(self) -> list[str]: ...
    @property
    def seeds(self) -> tuple[int, int]: ...
    def run(
        self,
        first: int,
        last: int,
        cell: str | None = None,
        jobs: int | None = None,
        told: Callable[[int], object] | None = None,
        keep: dict[str, object] | None = None,
    ) -> Runs: ...
    def trace(self, seed: int, cell: str | None) -> Batches: ...
    def tasks(self, first: int, last: int) -> list[tuple[str, str, int, int]]: ...
    def task(self, cell: str, first: int, last: int) -> bytes: ...

def version() -> str:
    """Version of the package, and after ``+`` a hash of the sources that decide what a run gives."""

def link_trace(kind: str, seed: int, seconds: int, mean: str | None) -> str: ...
def names() -> list[str]: ...
def schema() -> str: ...
def template(name: str) -> str:
    """The text of a template: ``one_link``, ``two_paths``, ``shared_bottleneck``."""

def parse(text: str, file: str) -> Experiment: ...
