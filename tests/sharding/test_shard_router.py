"""Objects on the shards of their ids: two databases, of one kind or of two."""

from __future__ import annotations

import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from asgiref.sync import async_to_sync
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, connections, models, transaction
from django.db.models import prefetch_related_objects
from django.db.models.fields.related_descriptors import ManyToManyDescriptor
from django.forms import modelform_factory
from django.shortcuts import get_object_or_404
from django.test import TestCase, override_settings
from django.test.utils import CaptureQueriesContext

from django_hilo._allocation.target import Unplaced
from django_hilo.counters import read_max
from django_hilo.exceptions import HiLoError, ShardError
from django_hilo.generator import next_id
from django_hilo.models import HiLoDocument
from django_hilo.sharding import shard_of
from django_hilo.sharding.router import shard_router
from django_hilo.signals import range_reserved
from tests.apps.records.models import Numbered, Person, Plain
from tests.apps.spread.models import (
    Check,
    Client,
    Deal,
    Firm,
    Label,
    Parcel,
    Part,
    Profile,
    Remark,
)
from tests.support.databases import CHOSEN, OTHER

ALIASES = ["default", "other"]
HILO = {"SHARDS": {"default": None, "other": None}, "DATABASE": "default"}
ROUTERS = ["tests.apps.spread.routers.ShopRouter"]
pytestmark = [
    pytest.mark.skipif(CHOSEN == "sqlite", reason="no counters of others on SQLite"),
    pytest.mark.django_db(databases=ALIASES),
]
commits = pytest.mark.django_db(transaction=True, databases=ALIASES)


@pytest.fixture(autouse=True)
def shards(settings):
    settings.HILO = HILO
    settings.DATABASE_ROUTERS = ROUTERS


def where(instance: models.Model) -> list[str]:
    """Return the databases that have a row of an object."""
    rows = type(instance)._base_manager.filter(pk=instance.pk)
    return [alias for alias in ALIASES if rows.using(alias).exists()]


def total(model: type[models.Model]) -> int:
    rows = model._base_manager.all()
    return sum(rows.using(alias).count() for alias in ALIASES)


def one_on(alias: str, model: type[models.Model] = Deal, **values):
    """Save an object whose id belongs to a shard."""
    while shard_of(id := next_id(model)) != alias:
        pass
    return model.objects.create(id=id, **values)


@contextlib.contextmanager
def statements(**expected: list[str]):
    """Assert the first words of what each database is asked in a block."""
    with contextlib.ExitStack() as stack:
        captured = {
            alias: stack.enter_context(CaptureQueriesContext(connections[alias]))
            for alias in ALIASES
        }
        yield
    found = {
        alias: [re.match(r"\w+", each["sql"])[0] for each in queries.captured_queries]
        for alias, queries in captured.items()
    }
    assert found == {**{alias: [] for alias in ALIASES}, **expected}


@contextlib.contextmanager
def refused(*saying: str):
    """Assert that a block is refused with an explanation, and writes nothing."""
    models_ = (Client, Deal, Part, Profile, Remark)
    before = [total(model) for model in models_]
    with pytest.raises(ShardError) as error:
        yield
    for text in saying:
        assert text in str(error.value)
    assert [total(model) for model in models_] == before


class TestSave:
    def test_new_objects_go_to_the_shards_of_their_ids(self):
        deals = [Deal.objects.create() for _ in range(4)]
        for _ in range(4):
            deals.append(Deal(name="x"))
            deals[-1].save()
        assert [deal.id for deal in deals] == [f"deals/{n}-A" for n in range(1, 9)]
        assert {shard_of(deal.id) for deal in deals} == set(ALIASES)
        for deal in deals:
            assert where(deal) == [shard_of(deal.id)] == [deal._state.db]
            assert type(deal.id) is str

    @pytest.mark.parametrize("alias", ALIASES)
    def test_a_new_object_costs_one_insert(self, alias):
        while shard_of(id := next_id(Deal)) != alias:
            pass
        number = int(re.search(r"\d+", id)[0])
        deal = Deal()
        while shard_of(f"deals/{number + 1}-A") != alias:
            number += 1
            next_id(Deal)
        with statements(**{alias: ["INSERT"]}):
            deal.save()
        assert where(deal) == [alias]

    def test_later_saves_update_it_there(self):
        for alias in ALIASES:
            deal = one_on(alias)
            deal.name = "new"
            with statements(**{alias: ["UPDATE"]}):
                deal.save()
            found = Deal.objects.shard(deal).get(pk=deal.pk)
            found.name = "newer"
            with statements(**{alias: ["UPDATE"]}):
                found.save(update_fields=["name"])
            assert where(deal) == [alias]
            with statements(**{alias: ["SELECT"]}):
                deal.refresh_from_db()
            assert deal.name == "newer"

    def test_explicit_ids(self):
        for number in range(50, 58):
            deal = Deal(id=f"deals/{number}-A")
            deal.save()
            made = Deal.objects.create(id=f"legacy-{number}")
            assert where(deal) == [shard_of(deal.id)]
            assert where(made) == [shard_of(made.id)]
        assert int(re.search(r"\d+", next_id(Deal))[0]) > 57

    def test_a_copy_goes_to_the_shard_of_its_own_id(self):
        deal = one_on("other", name="first")
        first = deal.id
        while deal._state.db == "other":
            deal.pk = None
            deal.save()
        assert where(deal) == ["default"]
        assert Deal.objects.using("other").filter(pk=first).exists()

    def test_a_delete(self):
        for alias in ALIASES:
            deal, other = one_on(alias), one_on(alias)
            part = deal.parts.create()
            assert deal.delete()[1] == {"spread.Part": 1, "spread.Deal": 1}
            deal.pk = part.deal_id
            assert where(deal) == where(part) == []
            assert where(other) == [alias]

    def test_a_save_without_an_id_that_must_update_is_djangos_error(self):
        for options in ({"update_fields": ["name"]}, {"force_update": True}):
            with (
                pytest.raises(ValueError, match="Cannot force an update in save"),
                transaction.atomic(),
            ):
                Deal().save(**options)

    @pytest.mark.parametrize("mine", ALIASES)
    def test_another_shard_than_its_own_is_refused(self, mine):
        deal = Deal(id=f"{one_on(mine).id}$suffix{'01'[mine == 'other']}")
        assert shard_of(deal.id) == mine
        wrong = "default" if mine == "other" else "other"
        with refused(repr(deal.id), repr(mine), repr(wrong), "without using="):
            deal.save(using=wrong)
        with refused(repr(mine)):
            Deal.objects.using(wrong).create(id=deal.id)
        deal.save(using=mine)
        assert where(deal) == [mine]

    def test_a_refused_object_is_saved_with_the_same_id_elsewhere(self):
        for _ in range(8):
            deal = Deal()
            with contextlib.suppress(ShardError):
                deal.save(using="other")
            id = deal.id
            deal.save()
            assert deal.id == id
            assert where(deal) == [shard_of(id)]

    def test_async(self):
        async def work():
            deal = await Deal.objects.acreate(name="a")
            deal.name = "b"
            await deal.asave()
            await deal.arefresh_from_db()
            assert deal.name == "b"
            many = await Deal.objects.abulk_create([Deal() for _ in range(6)])
            found = await Deal.objects.shard(deal).aget(pk=deal.pk)
            part = await found.parts.acreate()
            assert [each async for each in found.parts.all()] == [part]
            with pytest.raises(ShardError):
                await Deal.objects.acount()
            await many[0].adelete()
            return [deal, *many[1:]]

        deals = async_to_sync(work)()
        assert [where(deal) for deal in deals] == [[shard_of(d.id)] for d in deals]
        assert total(Deal) == 6


class TestQueries:
    @pytest.mark.parametrize(
        "query",
        [
            list,
            len,
            bool,
            repr,
            lambda deals: deals.count(),
            lambda deals: deals.get(id__iexact="deals/1-A"),
            lambda deals: deals.filter(pk=models.F("name")).get(),
            lambda deals: deals.filter(client="deals/1-A").get(),
            lambda deals: deals.filter(client__id="deals/1-A", name="x").get(),
            lambda deals: deals.exclude(pk="deals/1-A").get(),
            lambda deals: deals.get(models.Q(pk="deals/1-A") | models.Q(name="x")),
            lambda deals: deals.filter(pk="d1").union(deals.filter(pk="d2")).count(),
            lambda deals: deals.filter(name="x").exists(),
            lambda deals: deals.first(),
            lambda deals: deals.in_bulk(["deals/1-A"]),
            lambda deals: deals.aggregate(models.Max("id")),
            lambda deals: deals.update(name="x"),
            lambda deals: deals.delete(),
            lambda deals: deals.bulk_update([Deal(pk="deals/1-A")], ["name"]),
            lambda deals: deals.get_or_create(name="x"),
            lambda deals: deals.update_or_create(name="x"),
            lambda deals: list(deals.iterator()),
            lambda deals: list(deals.values_list("pk").order_by("-pk")),
            lambda deals: list(deals.raw("SELECT * FROM spread_deal")),
            lambda deals: deals.explain(),
        ],
    )
    def test_those_that_name_no_shard_are_refused(self, query):
        one_on("default")
        one_on("other")
        with refused("spread.Deal", "Deal.objects.shard(id)", ".using(alias)"):
            query(Deal.objects.all())

    def test_those_of_one_id_go_to_its_shard(self):
        for alias in ALIASES:
            deal = one_on(alias, name="old")
            deals = Deal.objects.all()
            for found in (
                lambda pk=deal.pk, deals=deals: deals.get(pk=pk),
                lambda pk=deal.pk, deals=deals: deals.get(name="old", id=pk),
                lambda pk=deal.pk: get_object_or_404(Deal, models.Q(pk=pk)),
                lambda pk=deal.pk, deals=deals: deals.filter(
                    models.Q(pk=pk) & ~models.Q(name="x")
                ).first(),
            ):
                with statements(**{alias: ["SELECT"]}):
                    assert found() == deal
            assert deals.get_or_create(pk=deal.pk) == (deal, False)
            assert deals.filter(pk=deal.pk).update(name="new") == 1
            made, _ = deals.update_or_create(pk=deal.pk, defaults={"name": "newer"})
            assert (made, made.name) == (deal, "newer")
            assert deals.filter(pk=deal.pk).delete()[0] == 1
            made, created = deals.update_or_create(pk=deal.pk)
            assert created and where(made) == [alias]
            with pytest.raises(Deal.DoesNotExist):
                deals.get(pk=f"none${deal.pk}")

    def test_those_of_one_id_that_is_a_relation(self):
        for alias in ALIASES:
            client = one_on(alias, Client)
            profile = Profile.objects.create(client=client)
            assert Profile.objects.get(pk=client.pk) == profile
            assert Profile.objects.get(client=client) == profile
        firms = [Firm.objects.create() for _ in range(8)]
        assert [Firm.objects.get(pk=firm.pk) for firm in firms] == firms
        assert [Firm.objects.get(id=firm.id) for firm in firms] == firms

    def test_that_of_nothing_asks_nothing(self):
        with statements():
            assert list(Deal.objects.none()) == []
            assert Deal.objects.none().count() == 0

    def test_shard(self):
        for alias in ALIASES:
            deal = one_on(alias)
            part = deal.parts.create()
            for given in (deal, deal.pk, part, part.pk):
                assert Deal.objects.shard(given).get() == deal
                assert Part.objects.shard(given).get() == part
        assert Deal.objects.filter(pk=deal.pk).shard(deal).get() == deal
        with pytest.raises(HiLoError, match="no id yet"):
            Deal.objects.shard(Deal())

    def test_using(self):
        here, there = one_on("default"), one_on("other")
        assert list(Deal.objects.using("default")) == [here]
        assert list(Deal.objects.using("other")) == [there]
        assert Deal.objects.using("other").in_bulk([here.pk, there.pk]) == {
            there.pk: there
        }
        assert Deal.objects.using("other").update(name="x") == 1
        assert Deal.objects.shard(there).delete()[0] == 1
        assert where(there) == [] and where(here) == ["default"]

    def test_on_a_shard_get_or_create_and_update_or_create(self):
        deal = one_on("other")
        rows = Part.objects.shard(deal)
        part, made = rows.get_or_create(deal=deal, size=1)
        assert made and where(part) == ["other"]
        assert rows.get_or_create(deal=deal, size=1) == (part, False)
        again, made = rows.update_or_create(deal=deal, defaults={"size": 2})
        assert (again, again.size, made) == (part, 2, False)
        other, made = Deal.objects.shard("x").get_or_create(id="x")
        assert made and where(other) == [shard_of("x")]

    def test_prefetches_and_joins(self):
        for alias in ALIASES:
            deal = one_on(alias, name="with parts")
            part = deal.parts.create()
            with statements(**{alias: ["SELECT", "SELECT"]}):
                (found,) = Deal.objects.using(alias).prefetch_related("parts")
                assert list(found.parts.all()) == [part]
            with statements(**{alias: ["SELECT", "SELECT"]}):
                (found,) = Part.objects.using(alias).prefetch_related("deal")
                assert found.deal == deal
            with statements(**{alias: ["SELECT"]}):
                (found,) = Part.objects.using(alias).select_related("deal")
                assert found.deal == deal
            named = Deal.objects.filter(name="with parts")
            assert Part.objects.using(alias).get(deal__in=named) == part
            prefetch_related_objects([deal], "parts")
            assert list(deal.parts.all()) == [part]

    def test_manual_ids(self):
        assert Deal.objects.next_id() == "deals/1-A"
        assert Deal.objects.next_ids(2) == ["deals/2-A", "deals/3-A"]
        assert Deal.objects.using("other").next_id() == "deals/4-A"


class TestAnchored:
    def test_they_are_with_their_anchor(self):
        next_id(Part)  # no reservation is counted
        for alias in ALIASES:
            deal = one_on(alias)
            with statements(**{alias: ["INSERT"] * 2}):
                parts = [deal.parts.create(), Part.objects.create(deal=deal)]
            parts.append(Part.objects.create(deal_id=deal.id))
            parts.append(Part(deal=deal))
            parts[-1].save()
            assert all(where(part) == [alias] for part in parts)
            assert {part.deal for part in Part.objects.using(alias)} == {deal}
            assert set(deal.parts.all()) == set(parts)
            part = Part.objects.shard(deal).first()
            with statements(**{alias: ["SELECT"]}):
                assert part.deal == deal
            assert Part.objects.shard(deal).anchored_to(deal).count() == 4

    def test_through_relations(self):
        for alias in ALIASES:
            part = Part.objects.create(deal=one_on(alias))
            checks = [Check.objects.create(part=part), part.checks.create()]
            # Its deal is not in memory yet.
            checks.append(Check.objects.create(part_id=part.id))
            assert [where(check) for check in checks] == [[alias]] * 3
            assert all(check.id.endswith(f"-A${part.deal_id}") for check in checks)
            assert shard_router().shard_of(Check(part=part)) == alias
        assert shard_router().shard_of(Check(part_id=part.id)) is None

    def test_reverse_sets(self):
        deal = one_on("other")
        part, made = deal.parts.get_or_create(size=7)
        assert made and where(part) == ["other"]
        assert deal.parts.get_or_create(size=7) == (part, False)
        assert deal.parts.update_or_create(size=7, defaults={"size": 8})[0] == part
        deal.parts.add(Part(size=9), bulk=False)
        deal.parts.bulk_create([Part(deal=deal), Part(deal=deal)])
        assert deal.parts.count() == 4
        assert deal.parts.filter(size=8).update(size=0) == 1
        assert deal.parts.all().delete()[0] == 4
        assert total(Part) == 0

    def test_a_graph_has_its_ids_first(self):
        deals = Deal.objects.assign_ids([Deal() for _ in range(8)])
        parts = [Part(deal=deal) for deal in deals for _ in range(2)]
        Part.objects.assign_ids(parts)
        assert [part.id.split("$")[1] for part in parts[::2]] == [d.id for d in deals]
        assert total(Deal) == total(Part) == 0
        Deal.objects.bulk_create(deals)
        Part.objects.bulk_create(parts)
        assert {alias for deal in deals for alias in where(deal)} == set(ALIASES)
        for part in parts:
            assert where(part) == where(part.deal) == [shard_of(part.deal_id)]

    def test_a_prefix_may_hold_more_than_the_collection(self, settings):
        shards = {**HILO["SHARDS"], "parts/North/": ["other"]}
        settings.HILO = {**HILO, "SHARDS": shards}
        deal = one_on("default")
        assert shard_router().shard_of(Part(deal=deal)) is None
        part = Part.objects.create(deal=deal)
        assert where(part) == ["default"]

    def test_a_prefix_of_one_alone_parts_them(self, settings):
        shards = {**HILO["SHARDS"], "parts/": ["other"]}
        settings.HILO = {**HILO, "SHARDS": shards}
        deal = one_on("default")
        with refused("anchored to the other already", "prefixes of both"):
            Part.objects.create(deal=deal)

    def test_of_one_without_an_id_no_shard_is_known(self):
        assert shard_router().shard_of(Part()) is None
        assert shard_router().shard_of(Part(deal=Deal())) is None
        with pytest.raises(HiLoError, match="anchor 'deal' is empty"):
            Part().save()


class TestRelations:
    def test_to_another_shard_by_object(self):
        here, there = one_on("default"), one_on("other")
        remark = one_on("default", Remark)
        with refused("'default'", "'other'", "anchor=", "db_constraint=False"):
            remark.deal = there
        remark.deal = here
        remark.save()
        assert list(here.remarks.all()) == [remark]

    def test_of_a_new_object_are_looked_up_where_they_are(self):
        for alias in ALIASES:
            deal = one_on(alias)
            assert Remark(deal_id=deal.id).deal == deal
        client = one_on("other", Client)
        assert Deal(client_id=client.id).client == client

    def test_without_a_constraint_are_looked_up_where_they_are(self):
        for mine in ALIASES:
            client, there = one_on("other", Client), one_on("other")
            deal = one_on(mine, client_id=client.id)
            assert Deal.objects.get(pk=deal.pk).client == client
            parcel = Parcel.objects.using(mine).create(deal_id=there.id)
            assert Parcel.objects.using(mine).get(pk=parcel.pk).deal == there

    def test_to_another_shard_by_object_without_an_id(self):
        there = one_on("other")
        while shard_of(f"remarks/{next_id(Remark)[8:-2]}-A") != "other":
            pass
        for _ in range(8):
            remark = Remark(deal=there)
            known = Remark.objects.assign_ids([remark])[0].id
            if shard_of(known) == "other":
                remark.save()
                assert where(remark) == ["other"]
            else:
                with refused(repr(known), repr(there.id), "another database"):
                    remark.save()
        assert 0 < total(Remark) < 8

    def test_to_another_shard_by_id(self):
        there = one_on("other")
        remark = one_on("default", Remark)
        remark.deal_id = there.id
        with refused(repr(there.id), "'default'", "'other'", "another database"):
            remark.save()
        with refused(repr(there.id)):
            remark.save(update_fields=["deal"])

    def test_through_the_set_of_an_object(self):
        there = one_on("other")
        for _ in range(8):
            try:
                made = there.remarks.create()
            except ShardError as error:
                assert "through a relation must be anchored" in str(error)
            else:
                assert where(made) == ["other"]
        assert 0 < total(Remark) < 8

    def test_in_bulk(self):
        there = one_on("other")
        remarks = Remark.objects.assign_ids([Remark() for _ in range(8)])
        for remark in remarks:
            remark.deal_id = there.id
        with refused(repr(there.id), "another database"):
            Remark.objects.bulk_create(remarks)
        late = Deal()
        remarks = [Remark(deal=late) for _ in range(8)]
        late.save()
        with refused(repr(late.id), "another database"):
            Remark.objects.bulk_create(remarks)

    def test_a_reference_by_id_alone(self):
        client = one_on("other", Client)
        deal = one_on("default", client_id=client.id)
        assert where(deal) == ["default"]
        found = Deal.objects.shard(deal.id).get(pk=deal.id)
        assert Client.objects.shard(found.client_id).get(pk=found.client_id) == client
        with refused("db_constraint=False, set by its _id"):
            found.client = client

    def test_a_key_that_is_anothers(self):
        for alias in ALIASES:
            client = one_on(alias, Client)
            profile = Profile.objects.create(client=client)
            assert where(profile) == [alias]
            assert client.profile == profile
            profile.text = "new"
            profile.save()
            assert Profile.objects.shard(client).get(text="new").client == client
        others = [one_on(alias, Client) for alias in ALIASES]
        made = Profile.objects.bulk_create(
            [Profile(client_id=client.pk) for client in others]
        )
        assert [where(profile) for profile in made] == [["default"], ["other"]]
        with refused("Profile.objects.shard(id)"):
            Profile.objects.count()

    def test_children(self):
        firms = [Firm.objects.create(name="n", vat="v") for _ in range(8)]
        assert {alias for firm in firms for alias in where(firm)} == set(ALIASES)
        for firm in firms:
            assert where(firm) == where(firm.client_ptr) == [shard_of(firm.pk)]
            firm.name = firm.vat = "new"
            firm.save()
            found = Client.objects.shard(firm).get(pk=firm.pk)
            assert (found.name, found.firm.vat) == ("new", "new")
        with refused("Firm.objects.shard(id)"):
            Firm.objects.first()
        firms[0].delete()
        assert total(Firm) == total(Client) == 7


class TestCopies:
    """Tables that each shard has a copy of: those that a router's subclass excludes."""

    @pytest.fixture
    def label(self):
        label = Label.objects.create(name="red")
        label.save(using="other")
        return label

    def test_they_are_read_and_written_as_without_shards(self, label):
        assert where(label) == ["default", "other"]
        assert Label.objects.get() == label
        assert Label.objects.using("other").get() == label

    def test_objects_refer_to_the_copy_of_their_shard(self, label):
        for alias in ALIASES:
            deal = one_on(alias, label=label)
            with statements(**{alias: ["SELECT"] * 2}):
                assert Deal.objects.shard(deal).get(pk=deal.pk).label == label
            copy = Label.objects.using(alias).get()
            deal.label = copy
            deal.save()
            assert copy.deal_set.using(alias).get() == deal

    def test_the_set_of_a_copy_is_that_of_no_shard(self, label):
        one_on("other", label=label)
        with refused("spread.Deal"):
            list(label.deal_set.all())

    def test_many_to_many(self, label):
        blue = Label.objects.create(name="blue")
        blue.save(using="other")
        for alias in ALIASES:
            deal = one_on(alias)
            deal.labels.add(label, blue.pk)
            assert set(deal.labels.values_list("name", flat=True)) == {"red", "blue"}
            assert Deal.labels.through._base_manager.using(alias).count() == 2
            found = Deal.objects.using(alias).prefetch_related("labels").get(pk=deal.pk)
            assert set(found.labels.all()) == {label, blue}
            deal.labels.set([blue])
            assert deal.labels.get() == blue
            deal.labels.clear()
            assert deal.labels.count() == 0
            deal.labels.create(name="made there")
            assert Label.objects.using(alias).filter(name="made there").exists()

    def test_many_to_many_from_the_copys_side(self, label):
        for alias in ALIASES:
            deal = one_on(alias)
            copy = Label.objects.using(alias).get()
            rows = Deal.labels.through._base_manager.using(alias)
            # As copy.deals, which the model gives no name.
            deals = ManyToManyDescriptor(Deal.labels.rel, reverse=True).__get__(copy)
            deals.add(deal)
            assert rows.get().deal_id == deal.pk
            deals.remove(deal)
            assert rows.count() == 0
            deals.add(deal.pk)
            deals.clear()
            assert rows.count() == 0
        assert isinstance(
            shard_router().db_for_write(Deal.labels.through, instance=Label()), Unplaced
        )

    def test_what_no_shard_has_a_table_of(self, settings):
        """Another router keeps the labels elsewhere: Django asks for one database."""
        settings.DATABASE_ROUTERS = [
            "tests.sharding.test_shard_router.LabelsOnDefault",
            *ROUTERS,
        ]
        label = Label.objects.create()
        deal = one_on("other")
        with pytest.raises(ValueError, match="current database router prevents"):
            deal.label = label


class LabelsOnDefault:
    def allow_migrate(self, db, app_label, model_name=None, **hints):
        return db == "default" if model_name == "label" else None


class TestBulkCreate:
    def test_it_splits_and_keeps_the_order(self):
        seen = []

        def receive(reservation, **kwargs):
            seen.append(reservation)

        range_reserved.connect(receive)
        try:
            deals = [Deal(name=str(n)) for n in range(100)]
            made = Deal.objects.bulk_create(deals)
        finally:
            range_reserved.disconnect(receive)
        assert len(seen) == 1
        assert all(one is two for one, two in zip(made, deals, strict=True))
        assert [deal.id for deal in made] == [f"deals/{n}-A" for n in range(1, 101)]
        for deal in made:
            assert deal._state.db == shard_of(deal.id)
            assert not deal._state.adding
        for alias in ALIASES:
            found = set(Deal.objects.using(alias).values_list("pk", flat=True))
            assert found == {deal.id for deal in deals if shard_of(deal.id) == alias}
            assert len(found) > 20

    def test_batches_and_options(self):
        deals = [Deal(id=f"x{n}", name="old") for n in range(20)]
        Deal.objects.bulk_create(deals, batch_size=3)
        assert total(Deal) == 20
        Deal.objects.bulk_create([Deal(id="x1"), Deal(id="y")], ignore_conflicts=True)
        assert total(Deal) == 21

    def test_on_one_shard(self):
        deal = one_on("other")
        Part.objects.using("other").bulk_create([Part(deal=deal), Part(deal=deal)])
        assert deal.parts.count() == 2
        with refused("belongs to the shard 'other', not to 'default'"):
            Part.objects.using("default").bulk_create([Part(deal=deal)])

    def test_of_nothing(self):
        with statements():
            assert Deal.objects.bulk_create([]) == []

    def test_an_update_of_many_is_that_of_one_shard(self):
        here, there = one_on("default"), one_on("other")
        remark = one_on("other", Remark)
        here.name = there.name = "new"
        remark.deal = there
        assert Deal.objects.using("other").bulk_update([there], ["name"]) == 1
        with refused(repr(here.id), "belongs to the shard 'default', not to 'other'"):
            Deal.objects.using("other").bulk_update([there, here], ["name"])
        with refused(repr(there.id), "not to 'default'"):
            Deal.objects.filter(pk=here.pk).bulk_update([there], ["name"])
        assert Remark.objects.using("other").bulk_update([remark], ["deal"]) == 1
        remark.deal_id = here.id
        with refused(repr(here.id), "another database"):
            Remark.objects.using("other").bulk_update([remark], ["deal"])

    def test_anchored_objects_of_several_shards(self):
        deals = [one_on(alias) for alias in ALIASES]
        parts = [Part(deal=deal) for deal in deals * 3]
        Part.objects.bulk_create(parts)
        assert [where(part) for part in parts] == [["default"], ["other"]] * 3

    @commits
    def test_a_manager_that_does_not_split_is_refused(self):
        plain = models.Manager()
        plain.model = Deal
        with pytest.raises(ShardError, match="HiLoManager"):
            plain.bulk_create([Deal()])
        with pytest.raises(ShardError, match="HiLoManager"):
            Plain.objects.bulk_create([Plain(id=f"plain-things/{n}") for n in "1234"])
        assert total(Deal) == total(Plain) == 0

    @commits
    def test_what_one_refuses_no_other_keeps(self):
        for alias in ALIASES:
            there = one_on(alias)
            deals = [Deal(id=f"d{n}") for n in range(8)]
            with pytest.raises(IntegrityError):
                Deal.objects.bulk_create([*deals, Deal(id=there.id)])
            assert where(there) == [alias]
            assert not any(where(deal) for deal in deals)

    @commits
    def test_nor_what_one_refuses_at_its_commit(self):
        """PostgreSQL looks at foreign keys then."""
        for alias in ALIASES:
            deals = {alias: one_on(alias) for alias in ALIASES}
            missing = deals[alias].id
            deals[alias].delete()
            parts = [Part(deal_id=deals[a].id or missing) for a in (*ALIASES, "other")]
            with pytest.raises(IntegrityError):
                Part.objects.bulk_create(parts)
            assert total(Part) == 0


@commits
class TestTransactions:
    def test_each_shard_has_its_own(self):
        class Undo(Exception):
            pass

        with contextlib.suppress(Undo), transaction.atomic(using="other"):
            lost, kept = one_on("other"), one_on("default")
            part = lost.parts.create()
            raise Undo
        assert (where(lost), where(part), where(kept)) == ([], [], ["default"])
        again = one_on("other")
        assert again.id not in (lost.id, kept.id)

    def test_a_savepoint(self):
        with transaction.atomic(using="other"):
            first = one_on("other")
            with (
                pytest.raises(IntegrityError),
                transaction.atomic(using="other"),
            ):
                Deal.objects.create(id=first.id)
            first.parts.create()
        assert first.parts.count() == 1

    def test_bulk_create_in_a_callers_transaction(self):
        with (
            contextlib.suppress(ZeroDivisionError),
            transaction.atomic(using="other"),
        ):
            deals = Deal.objects.bulk_create([Deal() for _ in range(8)])
            1 / 0  # noqa: B018
        assert {alias for deal in deals for alias in where(deal)} == {"default"}

    def test_a_part_before_its_deal(self):
        """Where foreign keys are looked at the end, a caller may count on it."""
        if CHOSEN != "postgres":
            return
        with transaction.atomic(using="default"):
            deal = Deal.objects.assign_ids([Deal() for _ in range(8)])
            here = next(each for each in deal if shard_of(each.id) == "default")
            there = one_on("other")
            Part.objects.bulk_create([Part(deal_id=here.id), Part(deal_id=there.id)])
            here.save()
        assert here.parts.count() == there.parts.count() == 1


@commits
class TestFixtures:
    def test_each_shard_loads_its_own(self, tmp_path):
        deals = [one_on(alias, name="kept") for alias in ALIASES]
        for alias in ALIASES:
            out = tmp_path / f"{alias}.json"
            call_command("dumpdata", "spread.deal", database=alias, output=str(out))
            Deal.objects.using(alias).all().delete()
        for alias in ALIASES:
            call_command(
                "loaddata", tmp_path / f"{alias}.json", database=alias, verbosity=0
            )
        assert [where(deal) for deal in deals] == [["default"], ["other"]]

    def test_the_rows_of_another_are_refused(self):
        data = serializers.serialize("json", [one_on("other")])
        Deal.objects.using("other").all().delete()
        (loaded,) = serializers.deserialize("json", data)
        with refused("belongs to the shard 'other', not to 'default'"):
            loaded.save(using="default")
        loaded.save(using="other")
        assert total(Deal) == 1


class TestValidation:
    def test_forms_and_full_clean(self):
        for alias in ALIASES:
            deal = one_on(alias)
            part = Part(deal=deal)
            part.full_clean()
            part.save()
            part.full_clean()
            with pytest.raises(ValidationError) as error:
                Part(deal_id=deal.id + "0").full_clean()
            assert list(error.value.error_dict) == ["deal"]

    def test_that_of_unique_values_is_refused(self):
        person = Person(email="a@example.org")
        with pytest.raises(ShardError):
            person.full_clean()
        person.full_clean(validate_unique=False)
        person.save()
        with pytest.raises(IntegrityError), transaction.atomic(using=person._state.db):
            one_on(person._state.db, Person, email="a@example.org")

    def test_forms_and_pages_that_offer_all_rows_are_refused(self, admin_client):
        form = modelform_factory(Part, fields="__all__")()
        with pytest.raises(ShardError):
            str(form["deal"])
        with pytest.raises(ShardError):
            admin_client.get("/admin/records/order/")


@commits
class TestCounters:
    def test_they_are_on_the_home_database_alone(self):
        Deal.objects.bulk_create([Deal() for _ in range(50)])
        Part.objects.create(deal=one_on("other"))
        assert not HiLoDocument.objects.using("other").exists()
        found = set(HiLoDocument.objects.values_list("pk", flat=True))
        assert found == {"deals/A", "parts/A"}

    def test_another_home(self, settings):
        settings.HILO = {**HILO, "DATABASE": "other"}
        Deal.objects.bulk_create([Deal() for _ in range(8)])
        assert not HiLoDocument.objects.using("default").exists()
        assert HiLoDocument.objects.using("other").get().pk == "deals/A"

    def test_the_home_of_a_router(self, settings):
        settings.HILO = {"SHARDS": HILO["SHARDS"]}
        settings.DATABASE_ROUTERS = [*ROUTERS, "tests.support.routers.CountersOnOther"]
        Deal.objects.bulk_create([Deal() for _ in range(8)])
        assert HiLoDocument.objects.using("other").get().pk == "deals/A"
        assert not HiLoDocument.objects.using("default").exists()

    def test_raise_max_looks_at_each_shard(self, new_process):
        for number in range(1000, 1020):
            id = f"deals/{number}-A"
            with connections[shard_of(id)].cursor() as cursor:
                cursor.execute(
                    "INSERT INTO spread_deal (id, name) VALUES (%s, '')", [id]
                )
        highest = {
            alias: max(
                n for n in range(1000, 1020) if shard_of(f"deals/{n}-A") == alias
            )
            for alias in ALIASES
        }
        for alias in sorted(ALIASES, key=highest.get):
            out = StringIO()
            call_command("hilo_raise_max", "deals", database=alias, stdout=out)
            assert "was raised" in out.getvalue()
            assert read_max("deals") == highest[alias]
        assert next_id(Deal) == "deals/1020-A"

    def test_the_admin_shows_them(self, admin_client):
        for alias in ALIASES:
            one_on(alias)
        page = admin_client.get("/admin/django_hilo/hilodocument/")
        assert "deals" in page.content.decode()
        change = admin_client.get("/admin/django_hilo/hilodocument/deals_2FA/change/")
        assert change.status_code == 200
        page = admin_client.get("/admin/")
        assert page.status_code == 200

    def test_lowering_is_refused_while_a_shard_has_the_row(self):
        from django_hilo._operations import edit_counter
        from django_hilo.exceptions import CounterNotLowered

        deal = one_on("other")
        document = HiLoDocument.objects.get(pk="deals/A")
        with pytest.raises(CounterNotLowered, match=rf"'other' has the id '{deal.id}'"):
            edit_counter.check_unused(document, 0)

    def test_processes_that_write_to_both_shards(self, python):
        code = (
            "from django.conf import settings\n"
            f"settings.HILO = {HILO!r}\n"
            f"settings.DATABASE_ROUTERS = {ROUTERS!r}\n"
            "from tests.apps.spread.models import Deal, Part\n"
            "deals = []\n"
            "for _ in range(20):\n"
            "    deals += [Deal.objects.create() for _ in range(5)]\n"
            "    deals += Deal.objects.bulk_create([Deal() for _ in range(20)])\n"
            "    Part.objects.bulk_create([Part(deal=deal) for deal in deals[-9:]])\n"
            "print(*(deal.id for deal in deals))\n"
        )
        with ThreadPoolExecutor(2) as pool:
            printed = list(pool.map(python, [code, code]))
        ids = " ".join(printed).split()
        assert len(set(ids)) == len(ids) == 1000
        for alias in ALIASES:
            found = set(Deal.objects.using(alias).values_list("pk", flat=True))
            assert found == {id for id in ids if shard_of(id) == alias}
            for part in Part.objects.using(alias).select_related("deal"):
                assert part.id.endswith(f"${part.deal.id}")
        assert total(Part) == 360
        assert not HiLoDocument.objects.using("other").exists()


@override_settings(HILO=HILO, DATABASE_ROUTERS=ROUTERS)
class TestInATestCase(TestCase):
    databases = set(ALIASES)

    def test_objects_are_on_their_shards(self):
        deals = Deal.objects.bulk_create([Deal() for _ in range(8)])
        made = [Deal.objects.create() for _ in range(8)]
        for deal in [*deals, *made]:
            assert where(deal) == [shard_of(deal.id)]
        for alias in ALIASES:
            one_on(alias).parts.create()
        assert total(Part) == 2

    def test_they_are_gone_after_the_test(self):
        assert total(Deal) == 0
        self.test_objects_are_on_their_shards()


class TestMigrations:
    def test_sharded_tables_are_on_the_shards_alone(self, settings):
        settings.HILO = {**HILO, "SHARDS": {"other": None}}
        router = shard_router()

        def allowed(model):
            meta = model._meta
            return [
                router.allow_migrate(
                    alias, meta.app_label, model_name=meta.model_name, model=model
                )
                for alias in ALIASES
            ]

        for model in (Deal, Part, Firm, Profile, Deal.labels.through):
            assert allowed(model) == [False, True]
        for model in (Label, Numbered, HiLoDocument):
            assert allowed(model) == [None, None]
        assert router.allow_migrate("default", "spread", "deal") is False
        assert router.allow_migrate("default", "spread", "no_more") is None
        assert router.allow_migrate("default", "spread") is None

    @commits
    def test_two_new_databases(self, python):
        names = {alias: f"test_hilo_new_{alias}_{os.getpid()}" for alias in ALIASES}
        code = (
            "from django.conf import settings\n"
            f"settings.HILO = {{**{HILO!r}, 'SHARDS': {{'other': None}}}}\n"
            f"settings.DATABASE_ROUTERS = {ROUTERS!r}\n"
            "from django.core.management import call_command\n"
            "from django.db import connections\n"
            f"for alias, name in {names!r}.items():\n"
            "    connections[alias].settings_dict['NAME'] = name\n"
            "    for app in ('spread', 'django_hilo'):\n"
            "        call_command('migrate', app, database=alias, verbosity=0)\n"
            "    print(*connections[alias].introspection.table_names())\n"
            "from tests.apps.spread.models import Deal, Part\n"
            "deals = Deal.objects.bulk_create([Deal() for _ in range(4)])\n"
            "Part.objects.create(deal=deals[0])\n"
            "print(Deal.objects.using('other').count())\n"
        )
        with contextlib.ExitStack() as stack:
            for alias, name in names.items():
                cursor = stack.enter_context(connections[alias].cursor())
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                cursor.execute(f"CREATE DATABASE {name}")
                stack.callback(cursor.execute, f"DROP DATABASE {name}")
            default, other, rows = python(code).splitlines()
        common = "django_migrations spread_label spread_parcel"
        counters = ["gaplesscounter", "hilodocument", "serverprefix"]
        common = {*common.split(), *(f"django_hilo_{name}" for name in counters)}
        sharded = [
            "check",
            "client",
            "deal",
            "deal_labels",
            "firm",
            "part",
            "profile",
            "remark",
        ]
        assert set(default.split()) == common
        assert set(other.split()) == common | {f"spread_{name}" for name in sharded}
        assert rows == "4"


def test_the_databases_are_what_the_run_says():
    vendors = {"postgres": "postgresql", "mariadb": "mysql"}
    assert connections["default"].vendor == vendors[CHOSEN]
    assert connections["other"].vendor == vendors[OTHER]
