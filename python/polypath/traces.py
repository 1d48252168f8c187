"""Traces of links, drawn by seed: their rates move as those of LTE, Starlink and Wi-Fi do.

``docs/experiments.md`` says where the numbers come from. ``polypath lab trace`` draws the same.

>>> lte(seed=1, seconds=10) == lte(seed=1, seconds=10)
True
>>> lte(seed=1, seconds=10).seconds
10.0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import _native


@dataclass(frozen=True, repr=False)
class Trace:
    """When packets may leave a link, in mahimahi's format. It repeats after its end."""

    text: str
    """On each line the millisecond at which 1500 bytes may leave."""

    @cached_property
    def times_ms(self) -> list[int]:
        """The same as numbers."""
        return [int(line) for line in self.text.split()]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.times_ms[-1] / 1000

    @property
    def mean_rate(self) -> float:
        """Mbit/s."""
        return len(self.times_ms) * 1500 * 8 / self.seconds / 1e6

    def write(self, file: str | Path) -> dict[str, str]:
        """Writes it, and returns what is the ``rate`` of a link then: ``exp.link("a", "b", lte().write("lte.trace"), "30ms")``."""
        Path(file).write_text(self.text)
        return {"trace": str(file)}

    def __repr__(self) -> str:
        return f"<polypath.traces.Trace of {self.seconds:g} s, {self.mean_rate:.1f} Mbit/s>"


def lte(seed: int = 1, seconds: int = 60, mean: str | None = None) -> Trace:
    """A cellular link: the rate is a Brownian motion, and outages stick. ``mean`` of a long one, 7 Mbit/s without it."""
    return Trace(_native.link_trace("lte", seed, seconds, mean))


def starlink(seed: int = 1, seconds: int = 60, mean: str | None = None) -> Trace:
    """A link over satellites: another rate every 15 s, after a pause. ``mean`` of a long one, 150 Mbit/s without it."""
    return Trace(_native.link_trace("starlink", seed, seconds, mean))


def wifi(seed: int = 1, seconds: int = 60, mean: str | None = None) -> Trace:
    """A station on a shared channel: bursts of frames. ``mean`` of a long one, 37 Mbit/s without it."""
    return Trace(_native.link_trace("wifi", seed, seconds, mean))
