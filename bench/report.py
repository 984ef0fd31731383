"""Rewrites the figures in docs/performance.md: `python -m bench.report [FILE]`, from the newest whole run without a file.

The page's prose is written by hand. Generated parts stand between `<!-- figures NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Callable

from bench.contestants import HEADLINES
from bench.numbers import shown
from bench.places import PAGE, PICTURES, RESULTS
from bench.plots import draw_all
from bench.results import Results
from bench.table import rows
from bench.targets import Verdict, verdicts

PART = re.compile(r"(<!-- figures (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Entry point. Exits 1 when there is no results file."""
    path = pathlib.Path(sys.argv[1]) if sys.argv[1:] else newest()
    if path is None:
        sys.exit(f"no whole run in {RESULTS}; `make bench` makes one")
    results = Results.read(path)
    PAGE.write_text(rewritten(PAGE.read_text(), results, path.name))
    drawn = [picture.name for picture in draw_all(results, PICTURES)]
    print(f"{PAGE.name} and {', '.join(drawn)} show {path.name}")


def newest() -> pathlib.Path | None:
    """The newest file of a whole run."""
    return max(RESULTS.glob("*.json"), default=None)


def rewritten(text: str, results: Results, source: str) -> str:
    """The page with the parts made anew that these results have figures for. Raises KeyError for a part that nobody makes."""
    parts: dict[str, Callable[[], str]] = {
        "targets": lambda: targets(results),
        "machine": lambda: machine(results, source),
        **{name: lambda name=name: scenario(results, name) for name in HEADLINES},  # type: ignore[misc]
    }
    measured = {*results.scenarios(), *(("targets", "machine") if "drain" in results.scenarios() else ())}
    return PART.sub(
        lambda found: found[1] + parts[found["name"]]() + found[3] if found["name"] in measured else found[0], text
    )


def targets(results: Results) -> str:
    """A row per target."""
    lines = ["| target | wanted | aim | measured | |", "| --- | ---: | ---: | ---: | --- |"]
    return _table(lines + [_target(verdict) for verdict in verdicts(results)])


def machine(results: Results, source: str) -> str:
    """What it was measured on, and with."""
    facts = results.facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    postgres = ", ".join(f"{name} {value}" for name, value in facts.get("postgres", {}).items())
    changed = ", ".join(f"`{name}={value}`" for name, value in facts["changed_settings"].items()) or "none"
    plan = facts["plan"]
    return _table(
        [
            "| | |",
            "| --- | --- |",
            f"| results | `bench/results/{source}`, begun {results.begun_at}, revision `{facts['revision']}` |",
            f"| kind of run | {plan['kind']}, {plan['rounds']} rounds |",
            f"| machine | {facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, Linux {facts['kernel']} |",
            f"| load average | {_loads(facts['load_before'])} before, {_loads(facts.get('load_after', ()))} after |",
            f"| versions | {versions} |",
            f"| PostgreSQL | {postgres} |",
            f"| settings of the system that were changed | {changed} |",
        ]
    )


def scenario(results: Results, name: str) -> str:
    """Medians and spread, and the ratios where there are any."""
    lines = [
        "| contestant | figure | median | least – most | / ceiling | / best peer |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        *(f"| {' | '.join(row)} |" for row in rows(results, name)),
    ]
    failed = [
        f"- {r.contestant}, round {r.number}: {r.problem}" for r in results.rounds if r.scenario == name and r.problem
    ]
    return _table(lines) + ("\nFailed:\n\n" + "\n".join(failed) + "\n\n" if failed else "")


def _target(verdict: Verdict) -> str:
    bound = "≥" if verdict.at_least else "≤"
    aim = "" if verdict.aim is None else f"{bound} {shown(verdict.aim)}"
    state = "met" if verdict.is_met else f"**missed by {-verdict.margin_percent:.0f} %**"
    wanted = f"{bound} {shown(verdict.wanted)}"
    return f"| {verdict.text} | {wanted} | {aim} | {shown(verdict.measured)} {verdict.unit} | {state} |"


def _table(lines: list[str]) -> str:
    return "\n" + "\n".join(lines) + "\n\n"


def _loads(loads: object) -> str:
    return ", ".join(f"{load:.1f}" for load in loads) if isinstance(loads, list | tuple) else ""


if __name__ == "__main__":
    main()
