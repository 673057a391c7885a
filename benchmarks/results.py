"""What a run found: kept as JSON, so that tables and plots can be made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS
from benchmarks.questions import Goal
from benchmarks.rounds import Figures, Spread, ratio, spreads

# How many there are in a second.
UNITS = {"ns": 1e9, "us": 1e6, "us a row": 1e6, "ms": 1e3, "s": 1}


@dataclass(frozen=True)
class Result:
    """The figure of a goal, on one database or in memory."""

    key: str
    where: str
    figure: Spread
    # What each candidate took or gave, in ``unit``.
    candidates: dict[str, Spread] = field(default_factory=dict)
    unit: str = ""

    @property
    def goal(self) -> Goal:
        """The bar it is held against."""
        return GOALS[self.key]

    @property
    def is_met(self) -> bool:
        """Whether its median reaches the goal."""
        return self.goal.is_met(self.figure.median, self.where)


def compared(
    figures: Figures, pairs: Mapping[str, tuple[str, str]], where: str, unit: str
) -> Iterator[Result]:
    """Yield the ratio of each pair of candidates, whose figures are seconds."""
    candidates = spreads(figures, UNITS[unit])
    for key, pair in pairs.items():
        those = {name: candidates[name] for name in pair}
        yield Result(key, where, ratio(figures, *pair), those, unit)


@dataclass(frozen=True)
class Peers:
    """Candidates side by side, without a goal."""

    title: str
    unit: str
    candidates: dict[str, Spread]
    # That of its plot or its table on the page.
    name: str


@dataclass(frozen=True)
class Curve:
    """How something grows: points (x, y) of each series."""

    name: str
    title: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Seen:
    """Ids as people see them, by the kind of key."""

    name: str
    title: str
    ids: dict[str, list[str]]


@dataclass(frozen=True)
class Skipped:
    """A sentence on what could not be measured."""

    sentence: str


Finding = Result | Peers | Curve | Seen | Skipped
KINDS = {kind.__name__: kind for kind in (Result, Peers, Curve, Seen, Skipped)}


@dataclass
class Report:
    """All findings of a run, with the machine they were made on."""

    machine: dict[str, Any]
    findings: list[Finding]

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the findings of a kind, in the order they were made."""
        return [found for found in self.findings if isinstance(found, kind)]

    @property
    def results(self) -> list[Result]:
        """What has a goal, in the order of the goals."""
        return sorted(self.of(Result), key=lambda found: list(GOALS).index(found.key))

    def save(self, path: Path) -> None:
        """Write as JSON, with a finding a line."""
        findings = ",\n".join(
            json.dumps({"kind": type(found).__name__, **asdict(found)})
            for found in self.findings
        )
        machine = json.dumps(self.machine)
        path.write_text(f'{{"machine": {machine},\n"findings": [\n{findings}\n]}}\n')

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read what `save` wrote."""
        content = json.loads(path.read_text())
        return cls(content["machine"], [_finding(each) for each in content["findings"]])


def failures(results: Iterable[Result]) -> list[Result]:
    """Return the counts and sizes that miss their goal; times depend on the machine."""
    return [found for found in results if found.goal.exact and not found.is_met]


def _finding(content: dict[str, Any]) -> Finding:
    kind = KINDS[content.pop("kind")]
    if "candidates" in content:
        content["candidates"] = {
            name: Spread(**each) for name, each in content["candidates"].items()
        }
    if "figure" in content:
        content["figure"] = Spread(**content["figure"])
    if "series" in content:
        content["series"] = {
            name: [(x, y) for x, y in points]
            for name, points in content["series"].items()
        }
    return kind(**content)
