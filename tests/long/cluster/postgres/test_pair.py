"""Two sites write at once: each with a node tag of its own."""

import time
from itertools import pairwise

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, collect
from tests.long.cluster.postgres.server import environment_on

WORKERS_PER_SITE = 2


@pytest.mark.parametrize(
    ("what", "counters_too"),
    [("TABLE records_order", False), ("ALL TABLES", True)],
    ids=["counters stay", "counters too"],
)
def test_sites_give_different_ids_together_apart_and_together_again(
    pair, load, capsys, what, counters_too
):
    with pair.database("together") as shared:
        shared.replicate(what)
        seats = {
            tag: load.start(WORKERS_PER_SITE, environment_on([site], shared.name, tag))
            for site, tag in zip(pair.sites, "AB", strict=True)
        }
        load.wait_for_ids()
        cut_at = time.monotonic_ns()
        shared.cut()
        apart_from = time.monotonic_ns()
        load.wait_for_ids()
        apart_until = time.monotonic_ns()
        missed = assert_apart(shared, pair, collect(load.folder, apart_from))
        shared.heal()
        load.wait_for_ids()
        load.end()
        shared.wait_until_equal()

        everything = collect(load.folder)
        with capsys.disabled():
            print(f"\n{what}: {everything}; {missed} rows while apart")
        everything.assert_nothing_twice()
        for since, until in ((0, cut_at), (apart_from, apart_until)):
            phase = collect(load.folder, since, until)
            for tag, workers in seats.items():
                assert phase.drew_by_turns(f"orders/{tag}", workers)
            assert changes_of_tag(phase) >= FEWEST_CHANGES
        # Of a process that a busy machine let wait for too long.
        names = {error.partition(":")[0] for error in everything.errors()}
        assert names <= {"ReservationTimeout", "ConcurrencyError"}

        for site in pair.sites:
            assert shared.troubles(site) == {}
            assert shared.is_receiving(site)
        assert shared.orders(pair.a).keys() == everything.rows["stood"]
        ours, theirs = shared.counters(pair.a), shared.counters(pair.b)
        if counters_too:
            pair.b.wait_for(
                lambda: shared.counters(pair.a) == shared.counters(pair.b), "up to date"
            )
            assert shared.counters(pair.a).keys() == {"orders/A", "orders/B"}
        else:
            assert (ours.keys(), theirs.keys()) == ({"orders/A"}, {"orders/B"})


def changes_of_tag(evidence) -> int:
    """Return how often the next id had another node tag."""
    tags = [one.id.rpartition("-")[2] for one in sorted(evidence.given)]
    return sum(one != two for one, two in pairwise(tags))


def assert_apart(shared, pair, evidence) -> int:
    """Return how many rows of this time one site has and the other has not."""
    ours, theirs = (shared.orders(site).keys() for site in pair.sites)
    missed = 0
    for here, there, tag in ((ours, theirs, "A"), (theirs, ours, "B")):
        new = {id for id in evidence.rows["stood"] if id.endswith(tag)}
        assert new
        assert new <= here
        assert new.isdisjoint(there)
        missed += len(new)
    return missed
