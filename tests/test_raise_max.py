from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from django_hilo import tables
from django_hilo.generator import next_number
from django_hilo.models import HiLoDocument
from django_hilo.reservation import read_max, reserve, return_range
from tests.records.models import Bistro, Claim, Letter, Order

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def run(*arguments: str, **options: object) -> str:
    out = StringIO()
    call_command("hilo_raise_max", *arguments, stdout=out, **options)
    return out.getvalue()


def insert_by_sql(*keys: str, using: str = "default") -> None:
    with connections[using].cursor() as cursor:
        for key in keys:
            cursor.execute(
                "INSERT INTO records_order (id, name) VALUES (%s, '')", [key]
            )


def test_it_raises_to_the_highest_id_of_the_own_counter():
    insert_by_sql("orders/7-A", "orders/90-A$x", "orders/500-B", "users/900-A", "x")
    assert "was raised: 0 to 90" in run()
    assert read_max("orders") == 90
    assert next_number(Order) == 91


def test_it_reads_every_row(monkeypatch):
    monkeypatch.setattr(tables, "_CHUNK", 2)
    insert_by_sql(*(f"orders/{number}-A" for number in (1, 2, 3, 4, 50)))
    call_command("hilo_raise_max")
    assert read_max("orders") == 50


def test_a_dry_run_changes_nothing():
    insert_by_sql("orders/7-A")
    assert "would be raised from 0 to 7" in run("orders", dry_run=True)
    assert not HiLoDocument.objects.exists()


def test_it_never_lowers():
    reserve("orders", 100)
    insert_by_sql("orders/7-A")
    assert "is 100, the highest id has 7" in run("ORDERS")
    assert read_max("orders") == 100


def test_a_range_in_other_hands_cannot_go_back_under_it():
    reservation = reserve("orders", 32)
    insert_by_sql("orders/60-A")
    run()
    with pytest.raises(Exception, match="not the newest"):
        return_range("orders", 32, 5, reservation.ticket)


def test_each_field_and_database_has_its_own():
    Bistro.objects.create(code="bistro-codes/44-A")
    HiLoDocument.objects.all().delete()
    insert_by_sql("orders/7-B", using="other")
    out = run("bistro-codes") + run(database="other")
    assert "Bistro.code: Max of 'bistro-codes' on 'default' was raised: 0 to 44" in out
    assert "Order.id: Max of 'orders' on 'other' was raised: 0 to 7" in out
    assert read_max("orders", "other") == 7


def test_unknown_collections_and_quiet_runs():
    with pytest.raises(CommandError, match=r"has ids of .nothing..*orders"):
        run("nothing")
    assert run(verbosity=0) == ""


def test_a_database_without_ids_is_no_success(settings):
    class NothingOnDefault:
        def allow_migrate(self, db, app_label, **hints):
            return db != "default"

    settings.DATABASE_ROUTERS = [NothingOnDefault()]
    with pytest.raises(CommandError, match="each that has: other"):
        run()
    insert_by_sql("orders/7-B", using="other")
    assert "was raised: 0 to 7" in run(database="other")


def test_gapless_counters_too(transactional_db):
    Letter.objects.create()
    with connection.cursor() as cursor:
        for key in ("letters/40", "letters/90-A", "other/70"):
            cursor.execute("INSERT INTO records_letter (id) VALUES (%s)", [key])
        cursor.execute("INSERT INTO records_claim (id) VALUES ('claims/7')")
    assert "would be raised from 1 to 40" in run("letters", dry_run=True)
    out = run()
    assert (
        "the last gapless number of 'letters' on 'default' was raised: 1 to 40" in out
    )
    assert "the last gapless number of 'claims' on 'default' was raised: 0 to 7" in out
    assert Letter.objects.create().pk == "letters/41"
    assert Claim.objects.create(id="claims|").pk == "claims/8"
    assert "is 41, the highest id has 41" in run("letters")
