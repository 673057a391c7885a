"""A node of Galera without quorum, whose sessions have wsrep_sync_wait.

It answers 1205 to each query, as soon as Django connects: nothing is locked.
"""

from collections.abc import Iterator
from unittest.mock import MagicMock

import pytest
from django.db import OperationalError, connections

from django_hilo._database.dialects.base import Dialect
from django_hilo._database.dialects.mariadb import MariaDB
from django_hilo._database.dialects.mysql import MySQL
from django_hilo.exceptions import ConcurrencyError
from django_hilo.generator import next_number
from tests.apps.records.models import Order
from tests.support.databases import IS_MYSQL

UNSYNCED = (1205, "Lock wait timeout exceeded; try restarting transaction")


def answering(error: Exception | None) -> MagicMock:
    """Return a connection whose queries raise an error, or none."""
    connection = MagicMock()
    connection.cursor().__enter__().execute.side_effect = error
    return connection


@pytest.mark.parametrize("dialect", [MariaDB(), MySQL()])
def test_a_node_that_answers_so_to_any_query_has_locked_nothing(dialect):
    with pytest.raises(OperationalError, match="no quorum.*1205") as caught:
        dialect.confirm_locked(answering(OperationalError(*UNSYNCED)))
    assert dialect.classify(caught.value).name == "RECONNECT"


@pytest.mark.parametrize("dialect", [MariaDB(), MySQL(), Dialect()])
@pytest.mark.parametrize("error", [None, OperationalError(2013, "Lost connection")])
def test_a_row_of_another_server_is_locked(dialect, error):
    dialect.confirm_locked(answering(error))


@pytest.fixture
def without_quorum(monkeypatch) -> Iterator[list[str]]:
    """Let each query of the database fail while the list has elements.

    Each takes one away.
    """
    from django.db.backends.mysql.base import CursorWrapper

    execute, left = CursorWrapper.execute, []

    def fail(self, query, args=None):
        if left and query.startswith("SELECT"):
            left.pop()
            raise OperationalError(*UNSYNCED)
        return execute(self, query, args)

    connections["default"].close()
    monkeypatch.setattr(CursorWrapper, "execute", fail)
    return left


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(not IS_MYSQL, reason="MariaDB's and MySQL's numbers of errors")
class TestReservations:
    def test_it_is_tried_again_until_there_is_a_quorum(self, without_quorum, settings):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 3600}
        without_quorum += "four"
        assert next_number(Order) == 1
        assert without_quorum == []

    def test_it_gives_up_after_retry_for(self, without_quorum, settings):
        settings.HILO = {**settings.HILO, "RETRY_FOR": 0.1}
        without_quorum += "x" * 100_000
        with pytest.raises(ConcurrencyError, match=r"0.1 s.*RETRY_FOR.*no quorum"):
            next_number(Order)
