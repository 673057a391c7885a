"""A primary is lost with ranges that its standby never heard of."""

import time

from tests.long.cluster.evidence import FEWEST_CHANGES, collect, number_of
from tests.long.cluster.postgres.process import django

WORKERS = 4


def numbers(ids: list[str]) -> set[int]:
    return {number_of(id) for id in ids}


class TestAProcessThatSurvives:
    def test_gives_no_number_again_and_heals_the_counter(self, servers, process):
        survivor = process(servers.environment())
        before = survivor.save(5)
        servers.lag()
        lost = survivor.save(50)
        fallen_to = servers.max(servers.standby)
        servers.fail_over()
        assert fallen_to < max(numbers(lost))
        # The first finds out that its connection is gone.
        told = survivor.try_to_save(60)
        after = [id for id, fate in told if fate == "stood"]
        assert len(after) >= 59, told
        assert min(numbers(after)) > max(numbers(lost))
        assert servers.orders(servers.standby) == {*before, *after}
        assert servers.max(servers.standby) >= max(numbers(after))
        [warning] = [text for text in survivor.warned if "fell back" in text]
        assert "hilo_raise_max --database=default" in warning
        new = process(servers.environment()).save(20)
        assert numbers(new).isdisjoint(numbers(before + lost + after))

    def test_heals_it_for_what_it_has_seen_itself(self, servers, process):
        """Another may hold more: that is what the run-book is for."""
        first, second = (process(servers.environment()) for _ in range(2))
        first.save(5)
        servers.lag()
        first.save(5)
        highest = max(numbers(second.save(50)))
        servers.fail_over()
        first.try_to_save(1)
        after = first.take(50)
        assert min(numbers(after)) < highest


class TestANewProcess:
    def test_meets_the_rows_that_survivors_save_out_of_lost_ranges(
        self, servers, process
    ):
        survivor = process(servers.environment())
        survivor.save(5)
        servers.lag()
        while servers.max(servers.primary) < 30:
            survivor.take(1)
        servers.fail_over()
        survivor.try_to_save(1)
        saved = survivor.save(1)
        told = process(servers.environment()).try_to_save(40)
        assert [id for id, fate in told if fate == "refused"] == saved
        assert {fate for _, fate in told} == {"stood", "refused"}


class TestRaiseMax:
    def test_covers_the_rows_and_nothing_else(self, servers, process):
        survivor = process(servers.environment())
        survivor.save(5)
        servers.lag()
        lost = survivor.take(25)
        servers.fail_over()
        survivor.try_to_save(1)
        saved = survivor.save(1)
        said = django(servers.environment(), "hilo_raise_max", "orders")
        assert f"to {max(numbers(saved))}." in said
        new = process(servers.environment()).save(20)
        assert min(numbers(new)) == max(numbers(saved)) + 1
        assert numbers(new).isdisjoint(numbers(lost))


def test_under_load_ids_come_twice_where_nobody_follows_the_run_book(
    servers, load, capsys
):
    """So the load of the other tests would show it."""
    load.start(WORKERS, servers.environment())
    load.wait_for_ids()
    servers.lag()
    cut_at = time.monotonic_ns()
    load.wait_for_ids(count=50)
    # Or who has seen most might be the first to reserve, and heal the counter.
    load.kill()
    servers.fail_over()
    load.start(2, servers.environment())
    load.wait_for_ids()
    load.end()
    everything = collect(load.folder)
    with capsys.disabled():
        print(f"\nno run-book: {everything}")
    assert everything.repeated()
    assert everything.overlapping()
    assert everything.failures == []
    assert collect(load.folder, 0, cut_at).repeated() == []
    assert collect(load.folder, 0, cut_at).changes("orders/A") >= FEWEST_CHANGES
