"""A reservation that is tried again logs once why, and for how long."""

import logging

import pytest
from django.db import OperationalError

from django_hilo._database import retry
from django_hilo.counters import KeyColumn, reservation
from django_hilo.generator import next_number
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.counters.test_reservation import deadlock
from tests.support.databases import CHOSEN, IS_MYSQL

pytestmark = pytest.mark.django_db(transaction=True)

RETRYING = "Retrying the counter on 'default' for up to 15 s (HILO['RETRY_FOR']): "


def lost(text: str) -> Exception:
    """Return the error of a connection that was lost, or cannot be had."""
    return OperationalError(2013, text) if IS_MYSQL else OperationalError(text)


@pytest.fixture
def warnings(monkeypatch, settings, caplog):
    """Let the first tries of a reservation fail; return the warnings."""
    settings.HILO = {**settings.HILO, "RETRY_FOR": 15.0}
    monkeypatch.setattr(retry.random, "uniform", lambda *_: 0)

    def warnings(*errors: Exception) -> list[str]:
        attempt, failures = reservation._LockedChange.__call__, list(errors)

        def fail_first(*args):
            if failures:
                raise failures.pop(0)
            return attempt(*args)

        monkeypatch.setattr(reservation._LockedChange, "__call__", fail_first)
        assert next_number(Order) == 1
        return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]

    return warnings


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has no server to wait for")
class TestAServerThatIsAway:
    def test_is_named_once_however_long_it_takes(self, warnings):
        [only] = warnings(lost("it ended"), *[lost("refused")] * 5)
        assert only.startswith(RETRYING)
        assert "it ended" in only


def test_deadlocks_are_named_once_too(warnings):
    [only] = warnings(*[deadlock()] * 3)
    assert only.startswith(RETRYING)


@pytest.mark.skipif(CHOSEN != "postgres", reason="only PostgreSQL has such keys")
def test_a_process_waits_for_its_first_key_from_a_sequence(monkeypatch):
    """It reads the table first."""
    attempt, failures = KeyColumn.highest, [lost("refused")]

    def fail_first(*args):
        if failures:
            raise failures.pop()
        return attempt(*args)

    monkeypatch.setattr(KeyColumn, "highest", fail_first)
    assert next_number(Item) >= 1
    assert failures == []
