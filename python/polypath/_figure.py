"""Figures with the look of the reports."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#007a5a", "#a8488a", "#8a6d00", "#56606b")
INK, DIM, GRID = "#1d232a", "#5b6673", "#d9dee4"
MARKED = 40
"""Lines of no more points than this have their points marked."""


class Shown(Figure):
    """A figure that a notebook shows where it is the value of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        png = io.BytesIO()
        self.savefig(png, format="png")
        return png.getvalue()


def draw(chart: dict[str, Any]) -> Figure:
    """A chart of a report: lines with their bands, published points as triangles."""
    figure = Shown(figsize=(6.8, 3.9), layout="constrained")
    axes = figure.add_subplot()
    for n, line in enumerate(chart["lines"]):
        _line(axes, line, COLOURS[n % len(COLOURS)])
    if chart["level"] is not None:
        axes.axhline(chart["level"], color=INK, linewidth=1, linestyle=(0, (6, 5)))
    _scales(axes, chart)
    axes.set_title(chart["title"], loc="left", color=INK, fontsize=11)
    axes.set_xlabel(chart["x_label"], color=DIM)
    axes.set_ylabel(chart["y_label"], color=DIM)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if chart["lines"]:
        axes.legend(frameon=False, fontsize=9)
    return figure


def _line(axes: Axes, line: dict[str, Any], colour: str) -> None:
    xs, ys = [p[0] for p in line["points"]], [p[1] for p in line["points"]]
    if line["band"]:
        low, high = [b[0] for b in line["band"]], [b[1] for b in line["band"]]
        axes.fill_between(xs[: len(low)], low, high, color=colour, alpha=0.22, linewidth=0)
    marker = "o" if len(xs) <= MARKED else None
    axes.plot(xs, ys, color=colour, marker=marker, markersize=4, label=line["label"])
    paper = line["published"]
    if paper:
        label = None if xs else line["label"]
        ends = [p[0] for p in paper], [p[1] for p in paper]
        axes.plot(*ends, "^", color=colour, markerfacecolor="none", markersize=8, label=label)


def _scales(axes: Axes, chart: dict[str, Any]) -> None:
    log_x, log_y = chart["log"]
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _below_zero(chart) else 0.0)
    if chart["y_max"] is not None:
        axes.set_ylim(top=chart["y_max"])
    if chart["places"]:
        axes.set_xticks(range(len(chart["places"])), chart["places"])
        axes.set_xlim(-0.5, len(chart["places"]) - 0.5)


def _below_zero(chart: dict[str, Any]) -> bool:
    return any(y < 0 for line in chart["lines"] for _, y in [*line["points"], *line["band"], *line["published"]])
