"""One row for all nodes, or one for each: nothing comes twice."""

import json
import time
from collections.abc import Callable
from itertools import count

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, Evidence, Span
from tests.long.cluster.load import SECONDS
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

    They draw again, by the ``call`` for the next turn, until ``shown``: on a busy
    machine one may be through before the next has begun.
    """

    def run(call: Callable[[int], str], shown: Callable[[Drawn], object]) -> Drawn:
        both = Drawn()
        give_up_at = time.monotonic() + PATIENCE
        for turn in count():
            folder = tmp_path / str(turn)
            folder.mkdir()
            meet = f"meet('{folder}', {PROCESSES})"
            both.add(python_everywhere(f"{meet}; {call(turn)}"))
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
        lambda turn: f"draw(['shared{pause == 0}'], '', {ROUNDS}, {pause})",
        lambda both: both.take_turns() and both.codes() - {"1062"},
    )


def test_a_row_for_each_node_is_never_fought_for(drawn, python_everywhere):
    python_everywhere("reserve('own')")
    both = drawn(lambda turn: f"draw(['own'], None, {ROUNDS}, 0)", Drawn.take_turns)
    assert both.retries == {}


def test_new_rows_are_made_once(drawn, cluster):
    names: list[str] = []

    def new(turn: int) -> str:
        names.extend(added := [f"new{turn}-{number}" for number in range(40)])
        return f"draw({added}, '', 1, 0)"

    drawn(new, lambda both: both.codes() - {"1062"})
    for node in cluster.nodes:
        rows = node.read(
            "SELECT max FROM django_hilo_hilodocument WHERE collection LIKE 'new%'"
        )
        # Each process took one range of 32 from each.
        assert rows == [(PROCESSES * 32,)] * len(names)


@pytest.mark.parametrize(
    ("take", "collection"),
    [
        ("next_gapless_number", "plain-letters"),
        ("in_transaction", "registrations"),
        ("over_rest", "letters"),
    ],
)
def test_gapless_numbers_come_once_and_without_gaps(
    drawn, cluster, capsys, take, collection
):
    seconds = SECONDS or 10
    both = drawn(
        lambda turn: f"draw_gapless({take}, '{collection}', {seconds})",
        lambda both: both.drew_by_turns(collection, range(PROCESSES)) and both.retries,
    )
    numbers = [span.low for span in sorted(both.spans[collection])]
    with capsys.disabled():
        changes, errors = both.changes(collection), dict(both.retries)
        print(f"\n{take}: {len(numbers)} numbers, {changes} changes, errors {errors}")
    # An error rolled its number back.
    assert numbers == list(range(1, len(numbers) + 1))
    if take != "in_transaction":  # whose COMMIT is the caller's
        assert {error for _, error in both.retries} == {"ConcurrencyError"}
    for node in cluster.nodes:
        counters = node.read("SELECT collection, last FROM django_hilo_gaplesscounter")
        assert dict(counters)[collection] == len(numbers)
