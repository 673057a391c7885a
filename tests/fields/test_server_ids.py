"""Ids that ask for another, and ids with leading zeros."""

from contextlib import suppress

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, models, transaction
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_hilo.counters import next_gapless_number, seed_gapless_number
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.generator import next_id, next_ids, next_number
from django_hilo.identifiers import parse
from django_hilo.managers import HiLoManager
from django_hilo.models import GaplessCounter
from tests.apps.records.models import Claim, Numbered, Order, Reply, Sortable

pytestmark = pytest.mark.django_db

WIDE = "claims/0000000000000000001-A"


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
    @pytest.mark.parametrize("asking", ["claims/", "CLAIMS/"])
    def test_a_separator_at_the_end_asks_for_19_digits(self, asking):
        claim = Claim(id=asking)
        with CaptureQueriesContext(connection) as queries:
            claim.save()
        assert claim.pk == WIDE
        assert Claim.objects.get().pk == WIDE
        assert "INSERT" in queries[-1]["sql"]
        assert Claim.objects.create().pk == "claims/2-A"

    def test_in_bulk_and_assigned(self):
        made = Claim.objects.bulk_create([Claim(id="claims/"), Claim()])
        assert {each.pk for each in made} == {
            "claims/1-A",
            "claims/0000000000000000002-A",
        }
        later = Claim(id="claims/")
        Claim.objects.assign_ids([later])
        assert later.pk == "claims/0000000000000000003-A"

    def test_the_separator_of_the_settings(self, settings):
        settings.HILO = {"SEPARATOR": ":"}
        assert Claim.objects.create(id="claims:").pk == "claims:" + WIDE[7:]

    def test_full_clean_burns_nothing(self):
        for asking in ("claims/", "claims|"):
            Claim(id=asking, name="a").full_clean()
        assert next_number(Claim) == 1
        assert next_gapless_number("claims") == 1


class TestIdentities:
    def test_ravendbs_vectors(self):
        made = [Claim.objects.create(id="claims|").pk]
        assert Claim.objects.create().pk == "claims/1-A"
        assert next_gapless_number("claims") == 2
        made.append(Claim.objects.create(id="claims|").pk)
        assert made == ["claims/1", "claims/3"]
        assert GaplessCounter.objects.get().last == 3
        assert seed_gapless_number("claims", 1990) == 1990
        assert Claim.objects.create(id="Claims|").pk == "claims/1991"
        assert seed_gapless_number("claims", 1975) == 1991
        assert seed_gapless_number("claims", 1975, force=True) == 1975
        assert Claim.objects.create(id="claims|").pk == "claims/1976"

    def test_a_failed_insert_gives_the_number_back_and_the_request_stays(self):
        Claim.objects.create(id="claims|", name="a")
        second = Claim(id="claims|", name="a")
        with pytest.raises(IntegrityError):
            second.save()
        assert second.pk == "claims|"
        second.name = "b"
        second.save()
        assert second.pk == "claims/2"

    @pytest.mark.parametrize(
        "again", [Claim.save, lambda it: Claim.objects.bulk_create([it])]
    )
    def test_a_rollback_leaves_no_gap(self, again):
        claim = Claim(id="claims|")
        with suppress(ZeroDivisionError), transaction.atomic():
            claim.save()
            assert claim.pk == "claims/1"
            raise ZeroDivisionError
        again(claim)
        assert Claim.objects.get().pk == "claims/1"

    def test_in_bulk_beside_explicit_ones(self):
        ids = ["claims|", "claims/1", "claims|"]
        made = Claim.objects.bulk_create([Claim(id=text) for text in ids])
        assert [each.pk for each in made] == ["claims/2", "claims/1", "claims/3"]
        assert GaplessCounter.objects.get().last == 3

    def test_assign_ids_leaves_it_to_the_save(self):
        claim = Claim(id="claims|")
        Claim.objects.assign_ids([claim])
        assert claim.pk == "claims|"
        assert not GaplessCounter.objects.exists()

    def test_they_are_anchored_too(self):
        claim = Claim.objects.create(id="claims|")
        assert Reply.objects.create(id="Replies|", claim=claim).pk.endswith(
            "/1$claims/1"
        )
        wide = Reply.objects.create(id="replies/", claim=claim).pk
        assert wide.endswith("/0000000000000000001-A$claims/1")

    def test_an_explicit_one_keeps_the_numbers_clear(self):
        Claim.objects.create(id="claims/7")
        assert Claim.objects.create(id="claims|").pk == "claims/8"


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
        # The transaction can go on.
        assert not Order.objects.exists()
        assert order.pk == asking

    @pytest.mark.parametrize("asking", ["orders|", "orders/", "claims/x/", "|"])
    def test_another_collection(self, asking):
        for save in (Claim(id=asking).save, Claim(id=asking).full_clean):
            with pytest.raises(ValidationError, match="collection other than"):
                save()

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

    @pytest.mark.parametrize("asking", ["orders|", "orders/"])
    def test_a_loaded_object_under_another_key(self, asking):
        order = Order.objects.create()
        order.pk = asking
        with (
            pytest.raises(ValidationError, match="server_ids=True"),
            transaction.atomic(),
        ):
            order.save()
        claim = Claim.objects.create()
        claim.pk = "claims/"
        with pytest.raises(HiLoError, match="of a new object"), transaction.atomic():
            claim.save()

    def test_a_row_that_exists_can_be_saved(self):
        Order.objects.bulk_create([Order(id="orders/1-A")])
        Order.objects.update(id="old/")
        order = Order.objects.get()
        order.name = "new"
        order.save()
        assert Order.objects.get(pk="old/").name == "new"


def test_a_number_beyond_the_column_is_refused(monkeypatch):
    monkeypatch.setattr(Claim._meta.pk, "max_length", 10)
    with pytest.raises(HiLoError, match="allows 10"):
        Claim(id="claims/").save()


@pytest.mark.django_db(transaction=True)
@isolate_apps("tests.apps.records")
def test_what_an_update_was_given_and_its_rollback_gave_back_is_given_once():
    class Code(models.Model):
        code = HiLoField(collection="codes", server_ids=True)
        objects = HiLoManager()

        class Meta:
            app_label = "records"

    with connection.schema_editor() as editor:
        editor.create_model(Code)
    try:
        with suppress(KeyError), transaction.atomic():
            Code.objects.create(pk=5, code="codes/900-A")
            again = Code(pk=5, code="codes|")
            again.save()
            raise KeyError
        Code.objects.bulk_create([again])
        after = Code.objects.create(code="codes|")
        assert (again.code, after.code) == ("codes/1", "codes/2")
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(Code)
