"""HILO["SYNCHRONOUS_COMMIT"]: no range is used before a standby has it."""

from __future__ import annotations

import threading
import time

import pytest

from tests.long.cluster.postgres.evidence import collect, number_of
from tests.long.cluster.postgres.limits import LOCK_TIMEOUT
from tests.long.cluster.postgres.replicated import DATABASE
from tests.long.cluster.postgres.verdict import (
    FEWEST_CHANGES,
    assert_nothing_twice,
    figures,
)
from tests.support.patience import PATIENCE

WORKERS = 4
# What a call may last: the wait for the lock, and that for a standby; and for its
# turn, on a busy machine.
LONGEST = 2 * LOCK_TIMEOUT + PATIENCE


@pytest.fixture(params=["psycopg", "psycopg2"])
def driver(request, monkeypatch) -> str:
    pytest.importorskip(request.param)
    monkeypatch.setenv("HILO_TEST_POSTGRES_DRIVER", request.param)
    return request.param


def assert_unconfirmed(told) -> None:
    """All calls failed, for want of a standby, and in time."""
    for seconds, error in told:
        assert error.startswith("ReservationTimeout: No standby confirmed"), error
        assert LOCK_TIMEOUT <= seconds < LONGEST


def until_an_error(asker, label: str = "records.Order") -> list:
    """Take ids as long as there are; return them."""
    taken = []
    while len(taken) < 1000:
        [(id, fate)] = asker.try_to_take(1, label, brief=True)
        if fate != "taken":
            return taken
        taken.append(id)
    raise AssertionError("Nobody waits for the standby.")


@pytest.mark.parametrize("commit", ["remote_write", "remote_apply"])
def test_without_a_standby_that_answers_there_are_errors_and_no_ids(
    servers, process, commit
):
    servers.wait_for_standby()
    asker = process(servers.environment(commit))
    before = asker.take(5)
    servers.lag()
    confirmed = servers.max(servers.standby)
    while number_of(before[-1]) < confirmed:
        before += asker.take(1)
    assert_unconfirmed(asker.try_to_take(2, brief=True))
    burnt = servers.max(servers.primary)
    assert burnt > confirmed, "PostgreSQL has committed all the same"
    servers.standby.link_to(servers.primary)
    after = asker.take(5)
    assert min(map(number_of, after)) > burnt
    assert len({*before, *after}) == len(before) + len(after)


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
def test_an_administrator_who_ends_the_wait_confirms_nothing(
    servers, process, driver, function
):
    servers.wait_for_standby()
    asker = process(servers.environment("on"))
    asker.take(1)
    servers.lag()
    confirmed = servers.max(servers.standby)
    ended = threading.Event()
    query = f"SELECT {function}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

    def end_waits() -> None:
        while not ended.is_set():
            servers.primary.execute(query)
            time.sleep(0.01)

    thread = threading.Thread(target=end_waits)
    thread.start()
    try:
        taken = until_an_error(asker)
    finally:
        ended.set()
        thread.join()
    assert max(map(number_of, taken), default=0) <= confirmed


def test_the_wait_is_that_of_the_session_that_commits(servers, process, driver):
    """A health check replaces a dead session right before its transaction."""
    servers.wait_for_standby()
    environment = servers.environment("on")
    asker = process({**environment, "HILO_POSTGRES_HEALTH_CHECKS": "1"})
    given = asker.take(1)
    servers.lag()
    confirmed = servers.max(servers.standby)
    while number_of(given[-1]) < confirmed:
        given += asker.take(1)
    ended = servers.primary.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{DATABASE}' AND state = 'idle'"
    )
    assert ended, "no session was idle"
    assert_unconfirmed(asker.try_to_take(1, brief=True))


@pytest.mark.parametrize("label", ["records.Order", "numbers.Item"])
def test_nothing_is_given_because_another_has_asked_before(servers, process, label):
    """A sequence writes ahead for values that others draw after it."""
    servers.wait_for_standby()
    askers = [process(servers.environment("on")) for _ in range(2)]
    given = askers[0].take(1, label)
    servers.lag()
    for asker in askers * 2:
        given += until_an_error(asker, label)
    for asker in askers:
        asker.kill()
    servers.fail_over()
    after = process(servers.environment()).take(100, label)
    assert set(after).isdisjoint(given)


def test_a_server_that_names_no_standby_is_an_error(servers, process):
    [(_, error)] = process(servers.environment("on")).try_to_take(1)
    assert error.startswith("StandbyMissing: ")
    assert "synchronous_standby_names" in error
    rows = servers.primary.execute("SELECT max FROM django_hilo_hilodocument", DATABASE)
    assert all(row["max"] == 0 for row in rows)


def test_other_commits_of_the_application_wait_for_nobody(servers, process):
    servers.wait_for_standby()
    asker = process(servers.environment("on"))
    asker.save(1)
    servers.lag()
    assert "stood" in {fate for _, fate in asker.try_to_save(2, brief=True)}


def test_under_load_no_id_comes_twice(servers, load, capsys):
    environment = servers.environment("remote_apply")
    servers.wait_for_standby()
    first = load.start(WORKERS, environment)
    load.wait_for_ids()
    servers.lag()
    cut_at = time.monotonic_ns()
    load.wait_for("error", count=2)
    servers.fail_over()
    failed_at = time.monotonic_ns()
    new = load.start(2, environment)
    load.wait_for("error", new)
    servers.add_standby(servers.third, servers.standby)
    added_at = time.monotonic_ns()
    load.wait_for_ids()
    load.end()

    everything = collect(load.folder)
    lagging = collect(load.folder, cut_at, failed_at)
    with capsys.disabled():
        print(f"\nremote_apply: {figures(everything)}")
        print(f"  from the cut to the failover: {figures(lagging)}")
    assert_nothing_twice(everything)
    assert lagging.errors["ReservationTimeout"] >= WORKERS
    healthy, after = collect(load.folder, 0, cut_at), collect(load.folder, added_at)
    assert healthy.seats() == set(first)
    assert after.seats() == {*first, *new}
    for phase in (healthy, after):
        assert min(phase.changes("A")) >= FEWEST_CHANGES
