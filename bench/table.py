"""One table on the terminal: medians, spread, and what they are beside the ceiling and the best peer."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from bench.contestants import HEADLINES, best_peer, ceiling_of
from bench.numbers import label, shown
from bench.results import Results
from bench.targets import verdicts

WIDTH = 150


def rows(results: Results, scenario: str) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Contestant, figure, median, least and most, times the ceiling, times the best peer."""
    for contestant in results.contestants(scenario):
        for figure in HEADLINES[scenario]:
            values = results.values(scenario, contestant, figure)
            median = results.median(scenario, contestant, figure)
            if median is None:
                continue
            spread = f"{shown(min(values))} – {shown(max(values))}" if len(values) > 1 else ""
            yield (
                contestant,
                label(figure),
                shown(median),
                spread,
                *_ratios(results, scenario, contestant, figure, median),
            )


def print_table(results: Results) -> None:
    """Prints all scenarios, what failed, and how the targets stand."""
    console = Console(width=WIDTH)
    table = Table(
        "scenario", "contestant", "figure", "median", "least – most", "/ ceiling", "/ best peer", box=box.SIMPLE_HEAD
    )
    for column in table.columns[3:]:
        column.justify = "right"
    for scenario in results.scenarios():
        for row in rows(results, scenario):
            table.add_row(scenario, *row)
        table.add_section()
    console.print(table)
    for found in results.rounds:
        if found.problem:
            console.print(f"{found.scenario}, round {found.number}, {found.contestant}: {found.problem}", markup=False)
    console.print(_targets(results))


def _targets(results: Results) -> Table:
    table = Table("target", "wanted", "measured", "", box=box.SIMPLE_HEAD)
    for verdict in verdicts(results):
        bound = "≥" if verdict.at_least else "≤"
        state = "[green]met[/green]" if verdict.is_met else f"[red]missed by {-verdict.margin_percent:.0f} %[/red]"
        table.add_row(verdict.text, f"{bound} {shown(verdict.wanted)} {verdict.unit}", shown(verdict.measured), state)
    return table


def _ratios(results: Results, scenario: str, contestant: str, figure: str, median: float) -> tuple[str, str]:
    ceiling = ceiling_of(scenario, contestant)
    ceiling_median = results.median(scenario, ceiling, figure) if ceiling else None
    peer = best_peer(results, scenario, contestant, figure)
    return (
        f"{median / ceiling_median:.2f}" if ceiling_median and figure == "per_sec" else "",
        f"{median / peer[1]:.2f} {peer[0].partition(',')[0]}" if peer and peer[1] else "",
    )
