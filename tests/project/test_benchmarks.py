"""The parts of benchmarks/ that make no measurement: ratios, goals, results."""

from pathlib import Path

from benchmarks.markdown import rendered
from benchmarks.questions import Goal
from benchmarks.results import (
    Report,
    Result,
    compared,
    failures,
)
from benchmarks.rounds import Spread, ratio, ratios
from benchmarks.terminal import wanted

DOCS = Path(__file__).parents[2] / "docs/explanation"
EACH = Goal("each", "ours", "theirs", 0.8, on={"SQLite": 0.9})


class TestRounds:
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


class TestGoals:
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
    def test_it_is_that_of_the_last_results(self):
        report = Report.load(DOCS / "benchmarks/results.json")
        assert rendered(report) in (DOCS / "benchmarks.md").read_text()
