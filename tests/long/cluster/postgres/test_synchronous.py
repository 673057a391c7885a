"""HILO["SYNCHRONOUS_COMMIT"]: no range is used before a standby has it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, collect, number_of

WORKERS = 4


@contextmanager
def asking(asker, label: str = "records.Order") -> Iterator[list]:
    """Let a process take ids one by one in a thread until it ends; give the ids."""
    taken: list = []

    def ask() -> None:
        with suppress(AssertionError, OSError, ValueError):  # it was killed
            while len(taken) < 1000:
                taken.extend(asker.take(1, label))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield taken
    finally:
        asker.end()
        thread.join()


@pytest.mark.parametrize("commit", ["remote_write", "on", "remote_apply"])
def test_a_reservation_waits_for_a_standby(servers, process, commit):
    servers.wait_for_standby()
    asker = process(servers.environment(commit))
    asker.take(1)
    servers.lag()
    confirmed = servers.max(servers.standby)
    with asking(asker) as taken:
        servers.wait_for_waiting(servers.primary)
        assert max(map(number_of, taken), default=0) <= confirmed
        servers.standby.link_to(servers.primary)
        servers.primary.wait_for(
            lambda: max(map(number_of, taken), default=0) > confirmed, "going on"
        )


@pytest.mark.parametrize("label", ["records.Order", "numbers.Item"])
def test_nothing_is_given_because_another_has_asked_before(servers, process, label):
    """A sequence writes ahead for values that others draw after it."""
    servers.wait_for_standby()
    askers = [process(servers.environment("on")) for _ in range(2)]
    given = askers[0].take(1, label)
    servers.lag()
    with asking(askers[0], label) as first:
        servers.wait_for_waiting(servers.primary)
        with asking(askers[1], label) as second:
            time.sleep(1)
    servers.fail_over()
    after = process(servers.environment()).take(100, label)
    assert set(after).isdisjoint([*given, *first, *second])


def test_other_commits_of_the_application_wait_for_nobody(servers, process):
    servers.wait_for_standby()
    asker = process(servers.environment("on"))
    given = asker.save(1)
    servers.lag()
    # The range is 1 to 4.
    assert asker.save(2) == ["orders/2-A", "orders/3-A"], given


def test_under_load_no_id_comes_twice(servers, load, capsys):
    environment = servers.environment("remote_apply")
    servers.wait_for_standby()
    first = load.start(WORKERS, environment)
    load.wait_for_ids()
    servers.lag()
    cut_at = time.monotonic_ns()
    servers.wait_for_waiting(servers.primary)
    servers.fail_over()
    failed_at = time.monotonic_ns()
    new = load.start(2, environment)
    servers.wait_for_waiting(servers.standby)
    servers.add_standby(servers.third, servers.standby)
    added_at = time.monotonic_ns()
    load.wait_for_ids()
    load.end()

    everything = collect(load.folder)
    lagging = collect(load.folder, cut_at, failed_at)
    with capsys.disabled():
        print(f"\nremote_apply: {everything}")
        print(f"  from the cut to the failover: {lagging}")
    everything.assert_nothing_twice()
    healthy, after = collect(load.folder, 0, cut_at), collect(load.folder, added_at)
    assert healthy.seats() == set(first)
    assert after.seats() == {*first, *new}
    for phase in (healthy, after):
        assert phase.changes("orders/A") >= FEWEST_CHANGES
