"""What a question of the page and a goal are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """A bar for one figure; ``at_most`` where less is better.

    ``exact`` figures are counts and sizes, which are the same on a busy machine.
    """

    key: str
    what: str
    beside: str
    goal: float
    unit: str = "x"
    at_most: bool = False
    exact: bool = False
    # Whether the page has its row; results.json has all.
    is_shown: bool = True
    # Other bars, by the database.
    on: Mapping[str, float] = field(default_factory=dict)

    def bar(self, where: str) -> float:
        """Return what a figure should reach in a place."""
        return self.on.get(where, self.goal)

    def is_met(self, figure: float, where: str = "") -> bool:
        """Whether a figure reaches the goal."""
        bar = self.bar(where)
        return figure <= bar if self.at_most else figure >= bar


@dataclass(frozen=True)
class Question:
    """What a reader asks; ``answer`` says what was run, and holds with any figures."""

    title: str
    answer: str
    goals: tuple[Goal, ...]
    # The plot below the table, by its file's name.
    picture: str = ""
    # Candidates side by side in a table above it, by the name of their `Peers`.
    peers: str = ""
    # Ids as people see them, by the name of their `Seen`.
    seen: str = ""
