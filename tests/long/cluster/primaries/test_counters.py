"""One row for all nodes, or one for each: nothing comes twice."""

import json
import time
from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES
from tests.support.patience import PATIENCE

ROUNDS = 80
PROCESSES = 6


class Drawn:
    """What processes on all nodes reserved at the same time."""

    def __init__(self, conflicts: set[str]) -> None:
        self._conflicts = conflicts
        self.retries: Counter[str] = Counter()
        # (key, low, high, time, owner)
        self.ranges: list[tuple[str, int, int, float, int]] = []

    def add(self, outputs: list[str]) -> None:
        """Add what each process printed."""
        for owner, output in enumerate(outputs):
            said: dict[str, Any] = json.loads(output)
            self.retries.update(said["retries"])
            self.ranges += [(*one, owner) for one in said["ranges"]]

    def overlapping(self) -> list[Any]:
        return [
            (one, two)
            for one, two in pairwise(sorted(self.ranges))
            if one[0] == two[0] and two[1] <= one[2]
        ]

    def interleave(self) -> bool:
        orders = sorted(self.ranges, key=lambda one: one[3]), sorted(self.ranges)
        return all(
            sum(one[4] != two[4] for one, two in pairwise(order)) >= FEWEST_CHANGES
            for order in orders
        )

    def conflicts(self) -> int:
        """Return how many tries another node's commit undid."""
        codes = Counter(retry.split()[0] for retry in self.retries.elements())
        return sum(codes[code] for code in self._conflicts)


@pytest.fixture
def drawn(cluster, python_everywhere, no_eviction, tmp_path) -> Callable[..., Drawn]:
    """Let two processes on each node draw from counters.

    They draw again, from those of ``names`` of the next turn, until ``shown``: on a
    busy machine one may be through before the next has begun.
    """

    def run(
        names: Callable[[int], list[str]],
        tag: str,
        shown: Callable[[Drawn], object],
        rounds: int = ROUNDS,
        pause: float = 0,
    ) -> Drawn:
        both = Drawn(conflicts := cluster.kind.conflicts)
        give_up_at = time.monotonic() + PATIENCE
        for turn in count():
            folder = tmp_path / str(turn)
            folder.mkdir()
            asked = f"{names(turn)}, {tag}, {rounds}, {pause}, '{folder}', {PROCESSES}"
            both.add(python_everywhere(f"draw({asked})"))
            if shown(both):
                break
            assert time.monotonic() < give_up_at, f"Not in {PATIENCE} s: {both.retries}"
        assert both.overlapping() == []
        assert {retry.split()[0] for retry in both.retries} <= conflicts | {"1062"}
        return both

    return run


@pytest.mark.parametrize("pause", [0, 0.02])
def test_a_row_that_all_nodes_share_gives_no_number_twice(drawn, pause):
    drawn(
        lambda turn: [f"shared{pause == 0}"],
        "''",
        lambda both: both.interleave() and both.conflicts(),
        pause=pause,
    )


def test_a_row_for_each_node_is_never_fought_for(drawn, python_everywhere):
    python_everywhere("reserve('own')")
    both = drawn(lambda turn: ["own"], "None", Drawn.interleave)
    assert both.retries == {}


def test_new_rows_are_made_once(drawn, cluster):
    names: list[str] = []

    def new(turn: int) -> list[str]:
        names.extend(added := [f"new{turn}-{number}" for number in range(40)])
        return added

    drawn(new, "''", Drawn.conflicts, rounds=1)
    for node in cluster.nodes:
        rows = node.read(
            "SELECT max FROM django_hilo_hilodocument WHERE collection LIKE 'new%'"
        )
        # Each process took one range of 32 from each.
        assert rows == [(PROCESSES * 32,)] * len(names)
