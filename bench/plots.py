"""Pictures of a run, as SVG; the same results give the same files."""

from __future__ import annotations

import pathlib

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.contestants import grown, is_ours
from bench.results import Results
from bench.samples import POINTS

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "task-executor"  # ids inside the file are random otherwise
mpl.rcParams["font.size"] = 9
OURS, OTHERS = "#1f6feb", ("#8c959f", "#bf8700", "#cf222e", "#8250df")


def draw_all(results: Results, folder: pathlib.Path) -> list[pathlib.Path]:
    """Draws what was measured; answers the files."""
    folder.mkdir(exist_ok=True)
    drawn = {
        "performance-drain": draw_drain(results),
        "performance-lateness": draw_lateness(results),
        "performance-growth": draw_growth(results),
    }
    paths = []
    for name, figure in drawn.items():
        if figure is None:
            continue
        path = folder / f"{name}.svg"
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
        paths.append(path)
    return paths


def draw_drain(results: Results) -> Figure | None:
    """Deliveries per second, a bar each, with the spread over the rounds."""
    names = [name for name in results.contestants("drain") if "alone" not in name]
    if not names:
        return None
    figure, axes = plt.subplots(figsize=(7, 0.35 * len(names) + 1))
    for place, name in enumerate(reversed(names)):
        values = results.values("drain", name, "per_sec")
        if not values:
            continue
        median = results.median("drain", name, "per_sec") or 0.0
        colour = OURS if is_ours(name) else OTHERS[0]
        axes.barh(place, median, color=colour, xerr=[[median - min(values)], [max(values) - median]], ecolor="#24292f")
        axes.text(max(values), place, f"  {median:,.0f}", va="center")
    axes.set_yticks(range(len(names)), list(reversed(names)))
    axes.set_xlabel("deliveries per second")
    _tidy(axes)
    return figure


def draw_lateness(results: Results) -> Figure | None:
    """How many of the jobs were later than so much: both axes logarithmic, so that the tail is seen."""
    series = {
        name.removeprefix("lateness: "): values
        for name, values in results.series.items()
        if name.startswith("lateness: ") and "steady" in name
    }
    if not series:
        return None
    figure, axes = plt.subplots(figsize=(7, 4))
    others = iter(OTHERS)
    for name, late in series.items():
        count = results.median("lateness", name, "samples") or len(late)
        shares = _shares_later(len(late), int(count))
        style = ("-" if "1,000,000" not in name else "--") if is_ours(name) else ":"
        colour = OURS if is_ours(name) else next(others)
        axes.plot([max(value, 0.5) for value in late], shares, style, color=colour, label=name, linewidth=1.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arrival minus due time, ms")
    axes.set_ylabel("share of jobs that were later")
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def draw_growth(results: Results) -> Figure | None:
    """What claiming and recording a batch of 200 costs, over how many executions wait."""
    sizes = [size for size in results.facts["plan"]["waiting_rows"] if _of_size(results, size, "stale", "claim_p50_ms")]
    if not sizes:
        return None
    figure, axes = plt.subplots(figsize=(7, 3.5))
    lines = (("claim", OURS), ("finalise", OTHERS[1]))
    for what, colour in lines:
        for statistics, style in (("stale", "-"), ("fresh", ":")):
            points = [_of_size(results, size, statistics, f"{what}_p50_ms") or 0.0 for size in sizes]
            axes.plot(sizes, points, style, marker="o", color=colour, label=f"{what}, statistics {statistics}")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("executions waiting")
    axes.set_ylabel("ms per batch of 200, median")
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def _shares_later(kept: int, count: int) -> list[float]:
    """For each kept sample the share of all `count` that are later, at least half of one (see samples.thinned)."""
    tail = min(kept, POINTS // 2)
    body = kept - tail
    step = max(1, (count - tail) // (POINTS // 2))
    ranks = [n * step for n in range(body)] + [count - tail + n for n in range(tail)]
    return [max(count - 1 - rank, 0.5) / count for rank in ranks]


def _of_size(results: Results, size: int, statistics: str, figure: str) -> float | None:
    return results.median("growth", grown(size, statistics), figure)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
