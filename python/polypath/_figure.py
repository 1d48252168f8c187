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
    """A chart of a report: lines with their bands, stairs, boxes, densities or squares; published points as triangles."""
    figure = Shown(figsize=(6.8, 3.9), layout="constrained")
    axes = figure.add_subplot()
    if chart["mark"] == "heat":
        _squares(axes, chart)
    elif chart["mark"] in ("box", "violin"):
        _of_runs(axes, chart)
    else:
        for n, line in enumerate(chart["lines"]):
            _line(axes, line, COLOURS[n % len(COLOURS)], chart["mark"] == "step")
    if chart["level"] is not None:
        axes.axhline(chart["level"], color=INK, linewidth=1, linestyle=(0, (6, 5)))
    _scales(axes, chart)
    axes.set_title(chart["title"], loc="left", color=INK, fontsize=11)
    axes.set_xlabel(chart["x_label"], color=DIM)
    axes.set_ylabel(chart["y_label"], color=DIM)
    if chart["mark"] != "heat":
        axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if chart["lines"] and chart["mark"] != "heat":
        axes.legend(frameon=False, fontsize=9)
    return figure


def _squares(axes: Axes, chart: dict[str, Any]) -> None:
    """A square for each value, with its number."""
    rows = [dict(line["points"]) for line in chart["lines"]]
    values = [[row.get(float(x), float("nan")) for x in range(len(chart["places"]))] for row in rows]
    known = [y for row in rows for y in row.values()]
    least, most = min(known), max(known)
    axes.imshow(values, cmap="YlGnBu", origin="lower", aspect="auto")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if value == value:
                light = value < least + 0.6 * (most - least)
                axes.text(x, y, f"{value:.4g}", ha="center", va="center", color="black" if light else "white", fontsize=9)
    axes.set_yticks(range(len(rows)), [line["label"] for line in chart["lines"]])


def _of_runs(axes: Axes, chart: dict[str, Any]) -> None:
    """Boxes or densities of the runs at each place, those of several lines beside one another."""
    count = len(chart["lines"])
    wide = min(0.32, 0.8 / count)
    for n, line in enumerate(chart["lines"]):
        colour, aside = COLOURS[n % len(COLOURS)], (n - (count - 1) / 2) * 0.5 / count
        at = [x + aside for x, _ in line["points"]]
        if chart["mark"] == "box":
            styles = {key: {"color": colour} for key in ("medianprops", "whiskerprops", "capprops")}
            box = {"facecolor": f"{colour}38", "edgecolor": colour}
            flier = {"markeredgecolor": colour, "markersize": 4}
            axes.boxplot(line["samples"], positions=at, widths=wide, patch_artist=True, boxprops=box, flierprops=flier, manage_ticks=False, **styles)  # type: ignore[arg-type]
        else:
            different = [(x, runs) for x, runs in zip(at, line["samples"], strict=True) if len(set(runs)) > 1]
            if different:
                drawn = axes.violinplot([runs for _, runs in different], positions=[x for x, _ in different], widths=wide, showextrema=False)
                for body in drawn["bodies"]:  # type: ignore[attr-defined]
                    body.set(facecolor=colour, alpha=0.3)
            axes.vlines(at, *zip(*line["band"], strict=True), color=colour, linewidth=2)
            axes.plot(at, [y for _, y in line["points"]], "o", color=colour, markersize=4)
        axes.plot([], [], color=colour, linewidth=4, label=line["label"])


def _line(axes: Axes, line: dict[str, Any], colour: str, stairs: bool) -> None:
    xs, ys = [p[0] for p in line["points"]], [p[1] for p in line["points"]]
    if line["band"]:
        low, high = [b[0] for b in line["band"]], [b[1] for b in line["band"]]
        axes.fill_between(xs[: len(low)], low, high, color=colour, alpha=0.22, linewidth=0)
    marker = "o" if len(xs) <= MARKED else None
    style = "steps-post" if stairs else "default"
    axes.plot(xs, ys, color=colour, marker=marker, markersize=4, label=line["label"], drawstyle=style)
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
    elif chart["mark"] in ("line", "step"):
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _below_zero(chart) else 0.0)
    if chart["y_max"] is not None:
        axes.set_ylim(top=chart["y_max"])
    if chart["places"]:
        axes.set_xticks(range(len(chart["places"])), chart["places"])
        axes.set_xlim(-0.5, len(chart["places"]) - 0.5)


def _below_zero(chart: dict[str, Any]) -> bool:
    return any(y < 0 for line in chart["lines"] for _, y in [*line["points"], *line["band"], *line["published"]])
