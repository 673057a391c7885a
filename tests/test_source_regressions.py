"""What a review found in counters of other systems, and must not come back."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test.utils import isolate_apps
from rest_framework.test import APIClient

from django_hilo.checks.settings import check_settings
from django_hilo.checks.sources import check_sources
from django_hilo.exceptions import CounterExhausted, HiLoError, RangeNotLent
from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.generator import next_id
from django_hilo.lending import known_gapless_target
from django_hilo.models import HiLoDocument
from django_hilo.signals import range_reserved
from django_hilo.sources import hibernate
from tests import foreign
from tests.foreign import needs_postgresql
from tests.numbers.models import Item
from tests.records.models import Order, Plain

pytestmark = pytest.mark.django_db(transaction=True)
make = foreign.make

HILO = hibernate.HiLo(9, max_number=1000)


@pytest.fixture
def row(make) -> None:
    make(
        "CREATE TABLE hibernate_unique_key (next_hi bigint)",
        "INSERT INTO hibernate_unique_key VALUES (2)",
    )


def stored() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT next_hi FROM hibernate_unique_key")
        return int(cursor.fetchone()[0])


def named(settings, **sources: object) -> None:
    settings.HILO = {"NODE_TAG": {"default": "A", "other": "B"}, "SOURCES": sources}


def adopt(*arguments: str) -> str:
    output = StringIO()
    call_command("hilo_adopt", *arguments, stdout=output)
    return output.getvalue()


class TestMaxNumber:
    """One explicit id must not drive all partners over their type."""

    def test_an_explicit_key_over_it_is_refused(self, settings, row):
        named(settings, numbers_item=HILO)
        with pytest.raises(HiLoError, match=r"'1001' is over 1000 \(max_number\)"):
            Item.objects.create(pk=1001)
        assert not Item.objects.exists()
        assert stored() == 2

    def test_so_is_an_explicit_text_id(self, settings, row):
        named(settings, orders=HILO)
        with pytest.raises(HiLoError, match="orders/5000"):
            Order.objects.create(id="orders/5000")
        Order.objects.create(id="orders/700")
        assert Order.objects.create().pk > "orders/700"

    def test_nobody_raises_it_over_that(self, row):
        with pytest.raises(CounterExhausted, match="max_number"):
            HILO.raise_floor("default", 1001)
        assert stored() == 2

    def test_steps_of_an_import_end_there(self, settings, row):
        named(settings, numbers_item=HILO)
        for number in range(960, 970):
            Item.objects.create(pk=number)
        assert stored() <= 101


class TestAdopting:
    def test_ids_of_our_own_counter_count(self, settings, row, new_process):
        Order.objects.create(id="orders/70-A")
        HiLoDocument.objects.all().delete()
        named(settings, orders=HILO)
        assert "records.Order on 'default': up to 70" in adopt("orders")
        named(settings)
        new_process()
        assert Order.objects.create().pk == "orders/71-A"

    def test_all_models_of_a_collection_count(self, settings, row, monkeypatch):
        monkeypatch.setattr(Plain._meta.pk, "collection", "orders")
        monkeypatch.setattr("django_hilo.targets._index", ([], {}))
        Plain.objects.create(id="orders/900-A")
        named(settings, orders=HILO)
        for target in ("orders", "records.Order"):
            assert "records.Plain on 'default': up to 900" in adopt(target, "--dry-run")

    def test_a_table_with_text_keys(self):
        Order.objects.create()
        with pytest.raises(CommandError, match=r"records_order\.id .*no integer"):
            adopt("tickets", "--table", "records_order.id")

    @needs_postgresql
    def test_a_table_in_a_schema(self):
        Item.objects.create(pk=Item.objects.create().pk + 50)
        highest = Item.objects.latest("pk").pk
        text = adopt("tickets", "--table", "public.numbers_item.id")
        assert f"up to {highest}" in text


class TestGapless:
    """A gapless id of the same collection would be the same text."""

    def test_over_rest(self, settings, row):
        named(settings, orders=HILO)
        client = APIClient()
        client.force_authenticate(User.objects.create_superuser("boss"))
        answer = client.post("/hilo/gapless/orders/next/", {}, format="json")
        assert answer.status_code == 409
        assert "hibernate_unique_key" in str(answer.data)

    def test_a_collection_with_a_source_gives_none(self, settings, row):
        named(settings, Tickets=HILO)
        with pytest.raises(RangeNotLent, match="same texts"):
            known_gapless_target("tickets")

    @isolate_apps("tests.records")
    @pytest.mark.parametrize(
        "field", [HiLoField("orders", server_ids=True), GaplessIdField("orders")]
    )
    def test_a_check_tells(self, settings, field):
        class Bill(models.Model):
            number = field.clone()

            class Meta:
                app_label = "records"

        checked = Bill._meta.get_field("number")
        assert "django_hilo.E108" not in [message.id for message in checked.check()]
        named(settings, ORDERS=HILO)
        assert "django_hilo.E108" in [message.id for message in checked.check()]


def test_names_that_differ_in_case_only(settings):
    named(settings, Orders=HILO, orders=hibernate.HiLo(5))
    (message,) = check_settings(None)
    assert message.id == "django_hilo.E022"


def test_an_error_that_a_migration_mends_says_how(settings, make):
    make("CREATE TABLE hibernate_unique_key (other bigint)")
    named(settings, orders=HILO)
    (message,) = check_sources(None, databases=["default"])
    assert message.id == "django_hilo.E023"
    assert "migrate --skip-checks" in message.hint


def test_receivers_get_the_collection(settings, row):
    named(settings, orders=HILO)
    told = []

    def receive(reservation, **kwargs):
        told.append(reservation.collection)

    range_reserved.connect(receive)
    try:
        next_id(Order)
    finally:
        range_reserved.disconnect(receive)
    assert told == ["orders"]


@pytest.mark.parametrize("version", ["3.6.10.Final", "4.3.10-SNAPSHOT", "4.3"])
def test_versions_as_people_write_them(version):
    old = hibernate.Pooled(10, sequence="s", version="3.6")
    assert hibernate.Pooled(10, sequence="s", version=version) == old


@pytest.mark.parametrize("version", ["", "five", None, 5.2])
def test_versions_that_are_none(version):
    with pytest.raises(ValueError, match="version must be"):
        hibernate.Pooled(10, sequence="s", version=version)
