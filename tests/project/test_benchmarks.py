"""The parts of benchmarks/ that make no measurement: ratios, goals, results."""

from pathlib import Path

import pytest

from benchmarks.markdown import in_words, rendered
from benchmarks.processes import in_turn
from benchmarks.questions import Goal
from benchmarks.results import (
    Report,
    Result,
    compared,
    failures,
)
from benchmarks.rounds import Spread, interleaved, ratio, ratios
from benchmarks.terminal import wanted

DOCS = Path(__file__).parents[2] / "docs/explanation"
FASTER = Goal("faster", "ours", "theirs", 2.0)
EACH = Goal("each", "ours", "theirs", 0.8, on={"SQLite": 0.9})
LESS = Goal("less", "bytes", "", 1024, "bytes", at_most=True)


class Clock:
    """Gives figures of its own, and notes who asked when."""

    def __init__(self, name, asked, figures):
        self.name, self.asked, self.figures = name, asked, iter(figures)

    def __call__(self):
        self.asked.append(self.name)
        return next(self.figures)


@pytest.fixture
def no_collections(monkeypatch):
    """Leave alone the objects of a whole test session, which take a second."""
    monkeypatch.setattr("gc.collect", lambda: 0)


@pytest.mark.usefixtures("no_collections")
class TestRounds:
    def test_each_round_asks_everybody_once_in_an_order_that_changes(self):
        asked = []
        figures = interleaved(
            {name: Clock(name, asked, range(100)) for name in "abc"}, 20
        )
        orders = [tuple(asked[n : n + 3]) for n in range(0, len(asked), 3)]
        assert all(sorted(order) == ["a", "b", "c"] for order in orders)
        assert len(set(orders)) > 1
        # The first is not counted.
        assert figures == {name: list(range(1, 21)) for name in "abc"}

    def test_a_ratio_is_taken_in_its_round(self):
        # The machine was ten times slower in the second round.
        figures = {"ours": [1.0, 10.0, 1.0], "theirs": [2.0, 20.0, 3.0]}
        assert ratios(figures, "theirs", "ours") == [2.0, 2.0, 3.0]
        assert ratio(figures, "theirs", "ours") == Spread(2.0, 2.0, 3.0, 3)

    def test_pairs_are_compared_in_their_unit(self):
        figures = {"ours": [1e-6, 2e-6], "theirs": [4e-6, 4e-6], "else": [9, 9]}
        pairs = {"next_id": ("theirs", "ours")}
        candidates = {"theirs": Spread(4, 4, 4, 2), "ours": Spread(1.5, 1, 2, 2)}
        assert list(compared(figures, pairs, "memory", "us")) == [
            Result("next_id", "memory", Spread(3, 2, 4, 2), candidates, "us")
        ]


class TestProcesses:
    def test_each_inserts_out_of_ranges_of_its_own(self):
        assert in_turn(range(1, 9), 2, 2) == [1, 3, 2, 4, 5, 7, 6, 8]
        # The last ranges may be shorter.
        assert in_turn(range(1, 7), 2, 2) == [1, 3, 2, 4, 5, 6]

    def test_one_inserts_in_order(self):
        assert in_turn(range(5), 1, 2) == [0, 1, 2, 3, 4]


class TestGoals:
    def test_sides(self):
        assert FASTER.is_met(2.0) and not FASTER.is_met(1.99)
        assert LESS.is_met(1024) and not LESS.is_met(1025)

    def test_a_database_may_have_another_bar(self):
        assert EACH.is_met(0.85, "MariaDB") and not EACH.is_met(0.85, "SQLite")
        assert wanted(EACH, "SQLite") == "≥ 0.900x"
        assert wanted(EACH, "MySQL") == "≥ 0.800x"

    def test_only_counts_fail_a_run(self):
        slow, fine, many = (
            Result("iter_ids", "memory", Spread(24.9, 1, 40, 9)),
            Result("create_statements", "SQLite", Spread(1.0, 1, 1, 1)),
            Result("create_statements", "MySQL", Spread(2.0, 2, 2, 1)),
        )
        assert failures([slow, fine, many]) == [many]


class TestPage:
    def test_ratios_in_words(self):
        assert in_words(0.8) == "25% slower"
        assert in_words(0.4) == "2.50x slower"
        assert in_words(1.39) == "39% faster"
        assert in_words(15.2) == "15.2x faster"
        assert in_words(1.019) == in_words(0.985) == "same"

    def test_it_is_that_of_the_last_results(self):
        report = Report.load(DOCS / "benchmarks/results.json")
        assert rendered(report) in (DOCS / "benchmarks.md").read_text()
