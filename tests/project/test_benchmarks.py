"""The parts of benchmarks/ that make no measurement: ratios, goals, results."""

from pathlib import Path

from benchmarks import costs
from benchmarks.markdown import rendered
from benchmarks.questions import Goal
from benchmarks.results import (
    Report,
    Result,
    compared,
    failures,
)
from benchmarks.rounds import Spread, Taken, by_clock, ratio, ratios
from benchmarks.terminal import wanted

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs/explanation"
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

    def test_each_turn_has_two_clocks(self):
        assert by_clock({"ours": [Taken(1.0, 3.0), Taken(2.0, 4.0)]}) == {
            "": {"ours": [1.0, 2.0]},
            "_wall": {"ours": [3.0, 4.0]},
        }


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
        assert costs.rendered(report) in (PROJECT / "README.md").read_text()


class TestCosts:
    def test_a_cell_goes_from_postgresql_to_the_worst_of_its_row(self):
        results = [
            _faster("create_text", "PostgreSQL", 0.9),
            _faster("create_text", "MySQL", 0.8),
            _faster("create_text_wall", "SQLite", 0.5),
            _faster("create_text_uuid7", "SQLite", 0.1),
            _faster("create_integer", "SQLite", 0.1),
        ]
        cell = costs.cell(results, "`create()`, `HiLoField`", "`BigAutoField`")
        assert cell == "11% to 25% slower"

    def test_each_way_to_get_the_others_keys_is_named(self):
        results = [
            _faster("load_text", "PostgreSQL", 1.25),
            _faster("load_text_unknown", "PostgreSQL", 0.4),
        ]
        cell = costs.cell(results, "bulk rows, `HiLoField`", "`BigAutoField`")
        assert cell == "`nextval()`: 25% faster; keys unknown: 2.50x slower"


def _faster(key, where, times):
    return Result(key, where, Spread(times, times, times, 1))
