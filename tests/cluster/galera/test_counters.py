"""One row for all nodes, or one for each: what it costs, and nothing comes twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

ROUNDS = 80
PROCESSES = 6
FEWEST_CHANGES = 20


class Drawn:
    """What processes on all nodes reserved at the same time."""

    def __init__(self, outputs: list[str]) -> None:
        self.retries: Counter[str] = Counter()
        self.ranges: list[tuple[str, int, int, float, int]] = []
        self.most_tries, self.longest = 0, 0.0
        for owner, output in enumerate(outputs):
            said: dict[str, Any] = json.loads(output)
            self.retries.update(said["retries"])
            self.ranges += [(*one, owner) for one in said["ranges"]]
            self.most_tries = max(self.most_tries, said["most_tries"])
            self.longest = max(self.longest, said["longest"])

    def assert_disjoint(self) -> None:
        spans = sorted(one[:3] for one in self.ranges)
        overlapping = [
            (one, two)
            for one, two in pairwise(spans)
            if one[0] == two[0] and two[1] <= one[2]
        ]
        assert overlapping == []

    def changes(self) -> tuple[int, int]:
        """Return how often the next range was another's: in time, and by number."""
        in_time = sorted(self.ranges, key=lambda one: one[3])
        in_time_, by_number = (
            sum(one[4] != two[4] for one, two in pairwise(order))
            for order in (in_time, sorted(self.ranges))
        )
        return in_time_, by_number

    def __str__(self) -> str:
        ends = [one[3] for one in self.ranges]
        tries = len(self.ranges) + self.retries.total()
        return (
            f"{len(self.ranges)} ranges, {len(ends) / (max(ends) - min(ends)):.0f} a "
            f"second, "
            f"{self.retries.total() / tries:.0%} of tries failed: "
            f"{dict(self.retries)}; "
            f"at most {self.most_tries} tries and {self.longest:.2f} s for one; "
            f"changes of owner in time / by number {self.changes()}"
        )


@pytest.fixture
def drawn(python_everywhere, tmp_path, capsys) -> Callable[..., Drawn]:
    """Let two processes on each node draw from counters; tell figures."""

    def run(
        title: str, names: list[str], tag: str, rounds: int = ROUNDS, pause: float = 0
    ) -> Drawn:
        code = f"draw({names}, {tag}, {rounds}, {pause}, '{tmp_path}', {PROCESSES})"
        both = Drawn(python_everywhere(code))
        with capsys.disabled():
            print(f"\n{title}: {both}")
        both.assert_disjoint()
        assert {retry.split()[0] for retry in both.retries} <= {"1213", "1062"}
        return both

    return run


@pytest.mark.parametrize("pause", [0, 0.02])
def test_a_row_that_all_nodes_share_gives_no_number_twice(drawn, pause):
    title = f"one row for all nodes, {pause} s between ranges"
    both = drawn(title, [f"shared{pause == 0}"], "''", pause=pause)
    assert min(both.changes()) >= FEWEST_CHANGES
    assert both.retries["1213 at commit"] >= 1, both


def test_a_row_for_each_node_is_never_fought_for(drawn, python_everywhere):
    python_everywhere("reserve('own')")
    both = drawn("a row for each node", ["own"], "None")
    assert min(both.changes()) >= FEWEST_CHANGES
    assert both.retries == {}, both


def test_new_rows_are_made_once(drawn, cluster):
    names = [f"new{number}" for number in range(40)]
    both = drawn("40 new rows", names, "''", rounds=1)
    assert both.retries["1213 at commit"] + both.retries["1213 at statement"] >= 1, both
    for node in cluster.nodes:
        rows = node.execute(
            "SET SESSION wsrep_sync_wait = 1",
            "USE hilo",
            "SELECT max FROM django_hilo_hilodocument WHERE collection LIKE 'new%'",
        )
        # Each process took one range of 32 from each.
        assert rows == [(PROCESSES * 32,)] * len(names)
