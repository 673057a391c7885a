"""Ids that ask for another, and ids with leading zeros."""

from __future__ import annotations

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_hilo.exceptions import HiLoError
from django_hilo.gapless import next_gapless_number, seed_gapless_number
from django_hilo.generator import next_id, next_ids, next_number
from django_hilo.identifiers import parse
from django_hilo.models import GaplessCounter
from tests.records.models import Numbered, Order, Reply, Sortable, Ticket

pytestmark = pytest.mark.django_db

WIDE = "tickets/0000000000000000001-A"


class TestWidth:
    def test_numbers_have_leading_zeros_wherever_ids_are_made(self):
        made = [Sortable.objects.create().pk, next_id(Sortable), *next_ids(Sortable, 2)]
        made.append(Sortable.objects.next_id())
        made += [each.pk for each in Sortable.objects.bulk_create([Sortable()])]
        assert made == [f"sortables/{n:019}-A" for n in range(1, 7)]

    def test_the_order_of_texts_is_that_of_numbers(self):
        Sortable.objects.bulk_create([Sortable() for _ in range(120)])
        in_order = Sortable.objects.order_by("id").values_list("id", flat=True)
        assert [parse(text).number for text in in_order] == list(range(1, 121))

    def test_an_explicit_one_keeps_the_counter_clear(self):
        Sortable.objects.create(id="sortables/0000000000000000040-A")
        assert next_number(Sortable) == 41


class TestServerSideIds:
    @pytest.mark.parametrize("asking", ["tickets/", "TICKETS/"])
    def test_a_separator_at_the_end_asks_for_19_digits(self, asking):
        ticket = Ticket(id=asking)
        with CaptureQueriesContext(connection) as queries:
            ticket.save()
        assert ticket.pk == WIDE
        assert Ticket.objects.get().pk == WIDE
        assert "INSERT" in queries[-1]["sql"]
        assert Ticket.objects.create().pk == "tickets/2-A"

    def test_in_bulk_and_assigned(self):
        made = Ticket.objects.bulk_create([Ticket(id="tickets/"), Ticket()])
        assert {each.pk for each in made} == {
            "tickets/1-A",
            "tickets/0000000000000000002-A",
        }
        later = Ticket(id="tickets/")
        Ticket.objects.assign_ids([later])
        assert later.pk == "tickets/0000000000000000003-A"

    def test_the_separator_of_the_settings(self, settings):
        settings.HILO = {"SEPARATOR": ":"}
        assert Ticket.objects.create(id="tickets:").pk == "tickets:" + WIDE[8:]

    def test_full_clean_burns_nothing(self):
        for asking in ("tickets/", "tickets|"):
            Ticket(id=asking, name="a").full_clean()
        assert next_number(Ticket) == 1
        assert next_gapless_number("tickets") == 1


class TestIdentities:
    def test_ravendbs_vectors(self):
        made = [Ticket.objects.create(id="tickets|").pk]
        assert next_gapless_number("tickets") == 2
        made.append(Ticket.objects.create(id="tickets|").pk)
        assert made == ["tickets/1", "tickets/3"]
        assert GaplessCounter.objects.get().last == 3
        assert seed_gapless_number("tickets", 1990) == 1990
        assert Ticket.objects.create(id="Tickets|").pk == "tickets/1991"
        assert seed_gapless_number("tickets", 1975) == 1991
        assert seed_gapless_number("tickets", 1975, force=True) == 1975
        assert Ticket.objects.create(id="tickets|").pk == "tickets/1976"

    def test_a_failed_insert_gives_the_number_back_and_the_request_stays(self):
        Ticket.objects.create(id="tickets|", name="a")
        second = Ticket(id="tickets|", name="a")
        with pytest.raises(IntegrityError):
            second.save()
        assert second.pk == "tickets|"
        second.name = "b"
        second.save()
        assert second.pk == "tickets/2"

    def test_in_bulk(self):
        made = Ticket.objects.bulk_create([Ticket(id="tickets|") for _ in range(3)])
        assert [each.pk for each in made] == ["tickets/1", "tickets/2", "tickets/3"]
        assert GaplessCounter.objects.get().last == 3

    def test_assign_ids_leaves_it_to_the_save(self):
        ticket = Ticket(id="tickets|")
        Ticket.objects.assign_ids([ticket])
        assert ticket.pk == "tickets|"
        assert not GaplessCounter.objects.exists()

    def test_they_are_anchored_too(self):
        ticket = Ticket.objects.create(id="tickets|")
        assert Reply.objects.create(id="Replies|", ticket=ticket).pk.endswith(
            "/1$tickets/1"
        )
        wide = Reply.objects.create(id="replies/", ticket=ticket).pk
        assert wide.endswith("/0000000000000000001-A$tickets/1")

    def test_an_explicit_one_keeps_the_numbers_clear(self):
        Ticket.objects.create(id="tickets/7")
        assert Ticket.objects.create(id="tickets|").pk == "tickets/8"

    def test_hilo_ids_go_on(self):
        Ticket.objects.create(id="tickets|")
        assert Ticket.objects.create().pk == "tickets/1-A"
        assert Ticket.objects.create(id="tickets|").pk == "tickets/2"


class TestRefused:
    @pytest.mark.parametrize("asking", ["orders|", "orders/", "x/", "|", "/"])
    def test_without_server_ids(self, asking):
        order = Order(id=asking)
        for save in (
            order.save,
            order.full_clean,
            lambda: Order.objects.bulk_create([order]),
            lambda: Order.objects.assign_ids([order]),
            lambda: Order.objects.create(id=asking),
        ):
            with pytest.raises(ValidationError, match="server_ids=True"):
                save()
        assert not Order.objects.exists()
        assert order.pk == asking

    @pytest.mark.parametrize("asking", ["orders|", "orders/", "tickets/x/", "|"])
    def test_another_collection(self, asking):
        for save in (Ticket(id=asking).save, Ticket(id=asking).full_clean):
            with pytest.raises(ValidationError, match="another collection"):
                save()

    def test_the_callers_transaction_can_go_on(self):
        with transaction.atomic():
            with pytest.raises(ValidationError):
                Order(id="orders|").save()
            Order.objects.create()
        assert Order.objects.count() == 1

    @pytest.mark.parametrize("asking", ["orders|", "orders/"])
    def test_in_fixtures(self, asking):
        text = f'[{{"model": "records.order", "pk": "{asking}", "fields": {{}}}}]'
        with pytest.raises(ValidationError, match="server_ids=True"):
            for item in serializers.deserialize("json", text):
                item.save()

    def test_beside_the_key(self):
        with pytest.raises(ValidationError, match="server_ids=True"):
            Numbered(number="numbers|").save()

    def test_an_anchor_may_end_so(self):
        assert Order.objects.create(id="orders/5-A$docs/").pk == "orders/5-A$docs/"

    def test_a_row_that_exists_can_be_saved(self):
        Order.objects.bulk_create([Order(id="orders/1-A")])
        Order.objects.update(id="old/")
        order = Order.objects.get()
        order.name = "new"
        order.save()
        assert Order.objects.get(pk="old/").name == "new"


def test_a_number_beyond_the_column_is_refused(monkeypatch):
    monkeypatch.setattr(Ticket._meta.pk, "max_length", 10)
    with pytest.raises(HiLoError, match="takes 10"):
        Ticket(id="tickets/").save()
