"""One row for all nodes, or one for each: nothing comes twice."""

import json
import time
from collections.abc import Callable
from itertools import count

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, Evidence, Span
from tests.support.patience import PATIENCE

ROUNDS = 80
PROCESSES = 6


class Drawn(Evidence):
    """What processes on all nodes reserved at the same time."""

    def add(self, outputs: list[str]) -> None:
        """Add what each process printed."""
        for seat, said in enumerate(map(json.loads, outputs)):
            self.retries.update(map(tuple, said["retries"]))
            for key, low, high, at in said["ranges"]:
                self.spans[key].append(Span(low, high, seat, at))

    def take_turns(self) -> bool:
        return all(self.changes(key) >= FEWEST_CHANGES for key in self.spans)

    def codes(self) -> set[str]:
        return {code for code, _ in self.retries}


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
        both = Drawn()
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
        assert both.codes() <= cluster.kind.conflicts | {"1062"}
        return both

    return run


@pytest.mark.parametrize("pause", [0, 0.02])
def test_a_row_that_all_nodes_share_gives_no_number_twice(drawn, pause):
    drawn(
        lambda turn: [f"shared{pause == 0}"],
        "''",
        lambda both: both.take_turns() and both.codes() - {"1062"},
        pause=pause,
    )


def test_a_row_for_each_node_is_never_fought_for(drawn, python_everywhere):
    python_everywhere("reserve('own')")
    both = drawn(lambda turn: ["own"], "None", Drawn.take_turns)
    assert both.retries == {}


def test_new_rows_are_made_once(drawn, cluster):
    names: list[str] = []

    def new(turn: int) -> list[str]:
        names.extend(added := [f"new{turn}-{number}" for number in range(40)])
        return added

    drawn(new, "''", lambda both: both.codes() - {"1062"}, rounds=1)
    for node in cluster.nodes:
        rows = node.read(
            "SELECT max FROM django_hilo_hilodocument WHERE collection LIKE 'new%'"
        )
        # Each process took one range of 32 from each.
        assert rows == [(PROCESSES * 32,)] * len(names)
