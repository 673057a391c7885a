"""One row for all nodes, or one for each: what it costs, and nothing comes twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from tests.support.patience import PATIENCE

ROUNDS = 80
PROCESSES = 6
FEWEST_CHANGES = 20


class Drawn:
    """What processes on all nodes reserved at the same time."""

    def __init__(self) -> None:
        self.retries: Counter[str] = Counter()
        self.ranges: list[tuple[str, int, int, float, int]] = []
        self.most_tries, self.longest = 0, 0.0

    def add(self, outputs: list[str]) -> None:
        """Add what each process printed."""
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

    def interleave(self) -> bool:
        return min(self.changes()) >= FEWEST_CHANGES

    def conflicts(self) -> int:
        """Return how many tries another node's commit undid: at COMMIT or before.

        A range reserved by one statement meets both in that statement.
        """
        return self.retries["1213 at commit"] + self.retries["1213 at statement"]

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
def drawn(python_everywhere, no_eviction, tmp_path, capsys) -> Callable[..., Drawn]:
    """Let two processes on each node draw from counters; tell figures.

    They draw again, from those of ``names`` of the next turn, until ``shown``: on a
    busy machine one may be through before the next has begun.
    """

    def run(
        title: str,
        names: Callable[[int], list[str]],
        tag: str,
        shown: Callable[[Drawn], object],
        rounds: int = ROUNDS,
        pause: float = 0,
    ) -> Drawn:
        both = Drawn()
        give_up_at = time.monotonic() + PATIENCE
        for turn in count():
            folder = tmp_path / str(turn)
            folder.mkdir()
            asked = f"{names(turn)}, {tag}, {rounds}, {pause}, '{folder}', {PROCESSES}"
            both.add(python_everywhere(f"draw({asked})"))
            if shown(both):
                break
            late = time.monotonic() > give_up_at
            assert not late, f"Not in {PATIENCE} s: {title}: {both}"
        with capsys.disabled():
            print(f"\n{title}: {both}")
        both.assert_disjoint()
        assert {retry.split()[0] for retry in both.retries} <= {"1213", "1062"}
        return both

    return run


@pytest.mark.parametrize("pause", [0, 0.02])
def test_a_row_that_all_nodes_share_gives_no_number_twice(drawn, pause):
    title = f"one row for all nodes, {pause} s between ranges"
    drawn(
        title,
        lambda turn: [f"shared{pause == 0}"],
        "''",
        lambda both: both.interleave() and both.conflicts(),
        pause=pause,
    )


def test_a_row_for_each_node_is_never_fought_for(drawn, python_everywhere):
    python_everywhere("reserve('own')")
    both = drawn("a row for each node", lambda turn: ["own"], "None", Drawn.interleave)
    assert both.retries == {}, both


def test_new_rows_are_made_once(drawn, cluster):
    names: list[str] = []

    def new(turn: int) -> list[str]:
        names.extend(added := [f"new{turn}-{number}" for number in range(40)])
        return added

    drawn(
        "40 new rows",
        new,
        "''",
        Drawn.conflicts,
        rounds=1,
    )
    for node in cluster.nodes:
        rows = node.execute(
            "SET SESSION wsrep_sync_wait = 1",
            "USE hilo",
            "SELECT max FROM django_hilo_hilodocument WHERE collection LIKE 'new%'",
        )
        # Each process took one range of 32 from each.
        assert rows == [(PROCESSES * 32,)] * len(names)
