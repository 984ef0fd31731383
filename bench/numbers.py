"""How figures are written."""

from __future__ import annotations

UNITS = {"per_sec": "per s", "ms": "ms", "sec": "s", "percent": "%", "mb": "MB"}


def shown(value: float) -> str:
    """Three digits that matter, thousands marked: 12,300 or 4.06."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def label(figure: str) -> str:
    """The name of a figure for a reader: `p99_9_ms` is `p99.9, ms`."""
    for ending, unit in UNITS.items():
        if figure.endswith(ending):
            name = figure.removesuffix(ending).strip("_").replace("p99_9", "p99.9").replace("_", " ")
            return f"{name}, {unit}" if name else unit
    if figure == "cpu_ms_per_job":
        return "CPU, ms per job"
    return figure.replace("_", " ")
