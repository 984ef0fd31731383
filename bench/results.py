"""What was measured: every round's raw figures, kept as one JSON file per run."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
from typing import Any

from bench.places import PARTIAL_RESULTS, RESULTS, ROOT

Figures = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Round:
    """One measurement of one contestant."""

    scenario: str
    contestant: str
    number: int
    figures: Figures
    """By name; the name ends in its unit: per_sec, ms, sec, mb."""
    problem: str | None = None
    """Why there are no figures."""


@dataclasses.dataclass
class Results:
    """All rounds of a run, with what one must know to judge them."""

    begun_at: str
    facts: dict[str, Any]
    rounds: list[Round] = dataclasses.field(default_factory=list)
    series: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """For pictures: sorted samples or points, by name."""
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the contestants, and what was tried to find them."""

    def add(self, scenario: str, contestant: str, number: int, /, **figures: float) -> None:
        """Adds a round."""
        self.rounds.append(Round(scenario, contestant, number, figures))

    def add_problem(self, scenario: str, contestant: str, number: int, problem: str) -> None:
        """Adds a round that failed; where this repository lies is nobody's business."""
        self.rounds.append(Round(scenario, contestant, number, {}, problem.replace(str(ROOT), ".")))

    def values(self, scenario: str, contestant: str, figure: str) -> list[float]:
        """One figure of all rounds."""
        return [
            found.figures[figure]
            for found in self.rounds
            if (found.scenario, found.contestant) == (scenario, contestant) and figure in found.figures
        ]

    def median(self, scenario: str, contestant: str, figure: str) -> float | None:
        """The median over the rounds; None when nothing was measured."""
        values = self.values(scenario, contestant, figure)
        return statistics.median(values) if values else None

    def contestants(self, scenario: str) -> list[str]:
        """Who took part, in the order of appearance."""
        return list(dict.fromkeys(found.contestant for found in self.rounds if found.scenario == scenario))

    def scenarios(self) -> list[str]:
        """What was measured, in the order of appearance."""
        return list(dict.fromkeys(found.scenario for found in self.rounds))

    def write(self, part: str = "") -> pathlib.Path:
        """Writes the file of this run, named after its beginning; answers its path.

        What is not a whole run says its `part`, and goes where nobody looks for one.
        """
        folder = PARTIAL_RESULTS if part else RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        name = self.begun_at.replace("-", "").replace(":", "")
        path = folder / f"{name}{'-' if part else ''}{part}.json"
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        return path

    @classmethod
    def read(cls, path: pathlib.Path) -> Results:
        """Reads the file of a run."""
        stored = json.loads(path.read_text())
        rounds = [Round(**found) for found in stored.pop("rounds")]
        return cls(rounds=rounds, **stored)
