"""Ids while the caller's connection can take no statement, or none that commits."""

from contextlib import nullcontext
from itertools import repeat

import pytest
from django.db import connection, transaction

from django_hilo.counters import next_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_id, next_number
from tests.apps.numbers.models import Item
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.servers

transactional = pytest.mark.django_db(transaction=True)
postgres_only = pytest.mark.skipif(CHOSEN != "postgres", reason="PostgreSQL's")


@pytest.fixture(params=[Order, Item])
def model(request):
    return request.param


def executemany(cursor, table, ids):
    rows = ((id, "") for id in ids)
    cursor.executemany(f"INSERT INTO {table} (id, name) VALUES (%s, %s)", rows)


def copy(cursor, table, ids):
    sql = f"COPY {table} (id, name) FROM STDIN"
    if hasattr(cursor.cursor, "copy"):
        with cursor.cursor.copy(sql) as rows:
            for id in ids:
                rows.write_row((id, ""))
        return

    class File:
        def read(self, size):
            return f"{id}\t\n" if (id := next(ids, None)) else ""

    cursor.copy_expert(sql, File())


def stream(cursor, table, ids):
    rows = cursor.cursor.stream("SELECT generate_series(1, 40)")
    ids = [id for _, id in zip(rows, ids, strict=False)]
    executemany(cursor, table, ids)


def pipeline(cursor, table, ids):
    with connection.connection.pipeline():
        cursor.execute("SELECT 1")
        ids = list(ids)
    executemany(cursor, table, ids)


@transactional
class TestAStatementThatIsUnderWay:
    @pytest.mark.parametrize("around", [nullcontext, transaction.atomic])
    @pytest.mark.parametrize(
        "run",
        [
            executemany,
            pytest.param(copy, marks=postgres_only),
            pytest.param(stream, marks=postgres_only),
            pytest.param(pipeline, marks=postgres_only),
        ],
    )
    def test_ids(self, model, run, around):
        with around(), connection.cursor() as cursor:
            if run in {stream, pipeline} and not hasattr(cursor.cursor, "stream"):
                pytest.skip("psycopg 3's")
            run(cursor, model._meta.db_table, (next_id(model) for _ in range(40)))
        assert model.objects.count() == 40
        assert model.objects.create()

    @pytest.mark.django_db(transaction=False)
    @postgres_only
    def test_in_a_test_case(self, model):
        # A test's ranges are bound to its own connection.
        with connection.cursor() as cursor:
            # psycopg 2 gives the text of ours in an error of its own.
            refused = pytest.raises(
                (HiLoError, connection.Database.Error), match="next_ids"
            )
            with refused, transaction.atomic():
                copy(cursor, model._meta.db_table, map(next_id, repeat(model, 40)))
            ids = [next_id(model) for _ in range(40)]
            copy(cursor, model._meta.db_table, iter(ids))
        assert model.objects.count() == 40


@transactional
@postgres_only
def test_a_gapless_number_is_refused():
    # It has to come from the caller's transaction.
    with connection.cursor() as cursor:
        if not hasattr(cursor.cursor, "stream"):
            pytest.skip("psycopg 3's")
        ids = (f"orders/{next_gapless_number('orders')}" for _ in range(2))
        with pytest.raises(HiLoError, match="next_gapless_numbers"):
            executemany(cursor, Order._meta.db_table, ids)
    assert next_gapless_number("orders") == 1


@transactional
class TestATransactionOfPlainSQL:
    @pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
    def test_numbers(self, model, end, new_process):
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            mine = [next_number(model) for _ in range(3)]
            model.objects.create(id=50 if model is Item else "orders/50-A")
            mine.append(next_number(model))
            cursor.execute(end)
        later = [next_number(model) for _ in range(40)]
        new_process()
        later += [next_number(model) for _ in range(40)]

        assert len(set(mine)) == 4
        assert len(set(later)) == 80
        if end == "COMMIT" or CHOSEN != "sqlite":
            assert not {*mine, 50} & {*later}


@transactional
@postgres_only
def test_a_living_connection_of_the_callers_is_kept(model):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
        cursor.execute("SET default_transaction_read_only = on")
        driver = connection.connection
        assert next_id(model)
        assert connection.connection is driver
        cursor.execute(
            "SELECT current_setting('transaction_read_only'), pg_advisory_unlock(7)"
        )
        assert cursor.fetchone() == ("on", True)
    connection.close()
