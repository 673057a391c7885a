"""Which shard has which ids, and what settings may say of it; no database is asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.test.utils import isolate_apps
from django_hilo.checks.shards import are_shards, check_shards
from django_hilo.sharding.bucket_count import BUCKETS

from django_hilo.checks.databases import check_homes
from django_hilo.checks.fields import check_field
from django_hilo.checks.settings import check_settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.managers import HiLoManager
from django_hilo.sharding import ShardRouter, shard_of
from django_hilo.sharding import shards as module
from django_hilo.sharding.shards import read_shards
from tests.sharding.test_buckets import VECTORS

LAST = BUCKETS - 1
# Of three shards, the one that RavenDB has an id on.
THIRDS = {
    "users/1": 2,
    "USERS/1": 2,
    "users/1-A": 2,
    "orders/1-A": 0,
    "orders/2-A": 2,
    "orders/4-A": 1,
    "orders/33-A": 1,
    "invoices/7-A$orders/33-A": 1,
    "Users/4": 1,
    "Users/70$Users/4": 1,
    "Users/71$users/4": 1,
    "foo": 0,
    "Users/1$foo": 0,
    "Users/2$foo": 0,
    "x$$foo": 0,
    "$foo": 2,
    "a$b$c": 1,
    "c": 1,
    "$": 2,
    "abc$": 1,
    "users/1$": 1,
    "Raven/Hilo/users": 2,
    "Raven/Hilo/orders": 1,
    "Ü/1": 1,
    "ü/1": 1,
    "ΟΔΟΣ/1": 2,
    "suffix0": 0,
    "suffix1": 1,
    "suffix2": 1,
    "eu/0": 2,
    "asia/1": 0,
    "asia/2": 2,
}


@pytest.fixture(autouse=True)
def aliases(monkeypatch):
    """Three databases, of which nobody asks anything."""
    monkeypatch.setattr(module, "connections", {"0": None, "1": None, "2": None})
    module._read.cache_clear()
    yield
    module._read.cache_clear()


THREE = {"0": None, "1": None, "2": None}


class TestDefaultRanges:
    def test_three_shards(self):
        assert read_shards(THREE).ranges == ((0, 349525, 699050), ("0", "1", "2"))

    def test_the_last_takes_the_rest(self):
        ranges = read_shards(THREE).ranges
        found = [ranges.shard(b) for b in (0, 349524, 349525, 699049, 699050, LAST)]
        assert found == ["0", "0", "1", "1", "2", "2"]

    def test_the_order_is_that_of_the_settings(self):
        assert read_shards({"2": None, "0": None}).ranges == ((0, 524288), ("2", "0"))

    def test_one_shard_has_all(self):
        ranges = read_shards({"1": None}).ranges
        assert {ranges.shard(bucket) for bucket in (0, LAST)} == {"1"}

    @pytest.mark.parametrize("id", VECTORS)
    def test_vectors(self, settings, id):
        settings.HILO = {"SHARDS": THREE}
        assert shard_of(id) == str(THIRDS[id])


class TestExplicitRanges:
    def test_first_to_last(self, settings):
        settings.HILO = {
            "SHARDS": {"0": (0, 151_326), "1": [151_327, 800_000], "2": (800_001, LAST)}
        }
        assert [shard_of(f"orders/{n}-A") for n in (1, 4, 2)] == ["0", "1", "2"]

    def test_a_shard_has_several(self):
        ranges = read_shards({"0": [(0, 9), (20, LAST)], "1": (10, 19)}).ranges
        assert [ranges.shard(b) for b in (9, 10, 19, 20)] == ["0", "1", "1", "0"]

    def test_a_shard_of_prefixes_alone_has_none(self):
        found = read_shards({"0": (0, LAST), "1": [], "eu/": ["1"]})
        assert set(found.ranges.shards) == {"0"}
        assert found.ranges_of("eu/1").shards == ("1",)


class TestPrefixes:
    def test_vectors(self, settings):
        """Asserted by a test of RavenDB's own."""
        settings.HILO = {"SHARDS": {**THREE, "eu/": ["0"], "asia/": ["1", "2"]}}
        assert [shard_of(id) for id in ("eu/0", "asia/1", "asia/2")] == ["0", "1", "2"]
        assert shard_of("orders/2-A") == "2"

    def test_the_longest_is_tried_first(self, settings):
        given = {**THREE, "eu/": ["0"], "eu/de/": ["1"], "eu-": ["2"]}
        settings.HILO = {"SHARDS": given}
        ids = ("eu/1", "eu/de/1", "EU/DE/1", "eu-1", "eu/d/1")
        assert [shard_of(id) for id in ids] == ["0", "1", "1", "2", "0"]

    def test_case_does_not_count(self, settings):
        settings.HILO = {"SHARDS": {**THREE, "EU/": ["1"]}}
        assert shard_of("eu/0") == shard_of("Eu/7") == "1"

    def test_they_are_looked_for_in_the_whole_id(self, settings):
        settings.HILO = {"SHARDS": {**THREE, "eu/": ["1"]}}
        assert shard_of("eu/7$orders/1-A") == shard_of("eu/0") == "1"
        assert shard_of("orders/1-A$eu/0") == "2"

    def test_shards_share_them_in_the_order_of_the_settings(self):
        found = read_shards({**THREE, "eu/": ["2", "0"]})
        assert found.ranges_of("eu/1") == ((0, 524288), ("0", "2"))


MALFORMED = {
    "no dict": (["0", "1"], r"\['0', '1'\]: a dict"),
    "a text": ("01", "'01': a dict"),
    "no shard": ({"eu/": ["0"]}, "names no shard"),
    "no alias": ({"0": None, "nowhere": None}, "'nowhere': neither an alias"),
    "no text": ({"0": None, 7: None}, "key 7"),
    "a bare end of a prefix": ({"0": None, "/": ["0"]}, "the key '/'"),
    "a number": ({"0": 5}, r"\['0'\] is 5: buckets"),
    "a mix": ({"0": None, "1": (0, LAST)}, r"\['0'\] is None: buckets"),
    "three numbers": ({"0": (0, 1, LAST)}, r"\['0'\] is \(0, 1, 1048575\)"),
    "texts": ({"0": ("0", "9")}, r"\['0'\] is \('0', '9'\)"),
    "true": ({"0": (False, LAST)}, "False"),
    "a set": ({"0": {1, 2}}, "unhashable"),
    "negative": ({"0": (-1, LAST)}, "-1"),
    "backwards": ({"0": (9, 0), "1": (10, LAST)}, r"\(9, 0\)"),
    "a gap": (
        {"0": (0, 9), "1": (11, LAST)},
        "11 to 1048575 of '1' should start at 10",
    ),
    "twice": ({"0": (0, 9), "1": (9, LAST)}, "9 to 1048575 of '1' should start at 10"),
    "late": ({"0": (1, LAST)}, "should start at 0"),
    "short": ({"0": (0, LAST - 1)}, "the ranges end at 1048574"),
    "long": ({"0": (0, LAST + 1)}, "the ranges end at 1048576"),
    "none at all": ({"0": [], "1": []}, "the ranges end at -1"),
    "a prefix of none": ({**THREE, "eu/": []}, r"\['eu/'\] is \(\): a list"),
    "a prefix of a text": ({**THREE, "eu/": "0"}, r"\['eu/'\] is '0': a list"),
    "a prefix of None": ({**THREE, "eu/": None}, r"\['eu/'\] is None: a list"),
    "a prefix of no shard": ({"0": None, "eu/": ["1"]}, "'1', which is no key"),
    "a prefix twice": ({**THREE, "eu/": ["0"], "EU/": ["1"]}, "twice"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_settings_are_named(settings, what):
    given, message = MALFORMED[what]
    assert not are_shards(given)
    with pytest.raises(ImproperlyConfigured, match=rf"HILO\['SHARDS'\].*{message}"):
        read_shards(given)
    settings.HILO = {"SHARDS": given}
    with pytest.raises(ImproperlyConfigured, match=message):
        shard_of("orders/1-A")


def test_without_shards_no_id_has_one(settings):
    settings.HILO = {}
    with pytest.raises(ImproperlyConfigured, match="names no shard"):
        shard_of("orders/1-A")


@pytest.mark.parametrize("id", [None, 7])
def test_what_is_no_text_has_no_shard(settings, id):
    settings.HILO = {"SHARDS": THREE}
    with pytest.raises(InvalidDocumentId):
        shard_of(id)


class Spread(models.Model):
    id = HiLoField(primary_key=True)
    objects = HiLoManager()

    class Meta:
        abstract = True
        app_label = "spread"


class TestChecks:
    @pytest.fixture(autouse=True)
    def isolated(self, aliases, monkeypatch, settings):
        monkeypatch.undo()
        module._read.cache_clear()
        settings.HILO = {
            "SHARDS": {"default": None, "other": None},
            "DATABASE": "default",
        }
        settings.DATABASE_ROUTERS = ["django_hilo.sharding.ShardRouter"]
        with isolate_apps("tests.apps.spread") as apps:
            monkeypatch.setattr("django_hilo.checks.shards.apps", apps)
            yield

    def found(self) -> list[tuple[str, Any]]:
        return [(str(each.id)[-4:], each.obj) for each in check_shards(None)]

    def test_right_settings(self):
        assert self.found() == []

    @pytest.mark.parametrize("given", [given for given, _ in MALFORMED.values()])
    def test_malformed_shards(self, settings, given):
        settings.HILO = {**settings.HILO, "SHARDS": given}
        assert self.found() == []
        (error,) = check_settings(None)
        assert error.id == "django_hilo.E012"
        with pytest.raises(ImproperlyConfigured) as raised:
            read_shards(given)
        assert error.msg == str(raised.value)
        # What another check raised would hide it.
        assert check_homes(None) == []
        assert error in run_checks()

    def test_no_home_for_the_counters(self, settings):
        settings.HILO = {"SHARDS": {"default": None, "other": None}}
        assert self.found() == [("E013", None)]
        settings.HILO = {"SHARDS": {"default": None}}
        assert self.found() == []

    def test_a_router_may_name_the_home(self, settings):
        settings.HILO = {"SHARDS": {"default": None, "other": None}}
        settings.DATABASE_ROUTERS += ["tests.support.routers.CountersOnOther"]
        assert self.found() == []

    def test_no_router(self, settings):
        settings.DATABASE_ROUTERS = ["tests.support.routers.CountersOnOther"]
        assert self.found() == [("E014", None)]
        settings.HILO = {}
        assert self.found() == []

    def test_gapless_numbers(self):
        class Ticket(Spread):
            number = GaplessIdField("numbers", unique=True)

        class Bill(Spread):
            id = HiLoField(primary_key=True, server_ids=True)

        class Count(Spread):
            id = GaplessIdField(primary_key=True)

        found = [
            [each.id for each in check_field(field)]
            for field in (
                Ticket._meta.get_field("number"),
                Bill._meta.get_field("id"),
                Count._meta.get_field("id"),
            )
        ]
        assert found == [["django_hilo.E015"], ["django_hilo.E015"], []]

    def test_relations_that_may_leave_the_shard(self):
        class Order(Spread):
            friends = models.ManyToManyField("self")
            tags = models.ManyToManyField("Tag", related_name="+")
            far = models.ManyToManyField("self", db_constraint=False)

        class Tag(models.Model):
            class Meta:
                app_label = "spread"

        class Line(Spread):
            order = models.ForeignKey(Order, models.CASCADE)
            later = models.ForeignKey(
                Order, models.DO_NOTHING, related_name="+", db_constraint=False
            )
            tag = models.ForeignKey(Tag, models.CASCADE, related_name="+")

        class Memo(models.Model):
            order = models.ForeignKey(Order, models.CASCADE)

            class Meta:
                app_label = "spread"

        class Detail(models.Model):
            order = models.OneToOneField(Order, models.CASCADE, primary_key=True)
            objects = HiLoManager()

            class Meta:
                app_label = "spread"

        class Sale(Order):
            pass

        assert self.found() == [
            ("W016", Order._meta.get_field("friends")),
            ("W016", Line._meta.get_field("order")),
            ("W016", Memo._meta.get_field("order")),
        ]

    def test_anchored_relations_do_not_leave_it(self):
        class Buyer(Spread):
            pass

        class Order(Spread):
            id = HiLoField(primary_key=True, anchor="buyer")
            buyer = models.ForeignKey(Buyer, models.CASCADE)

        class Line(Spread):
            id = HiLoField(primary_key=True, anchor="order__buyer")
            order = models.ForeignKey(Order, models.CASCADE)
            other = models.ForeignKey(Order, models.CASCADE, related_name="+")

        class Free(Spread):
            id = HiLoField(primary_key=True, anchor=str)
            order = models.ForeignKey(Order, models.CASCADE)

        assert self.found() == [("W016", Line._meta.get_field("other"))]

    def test_a_plain_manager(self):
        class Order(Spread):
            objects = models.Manager()

        class Detail(models.Model):
            order = models.OneToOneField(Order, models.CASCADE, primary_key=True)

            class Meta:
                app_label = "spread"

        assert self.found() == [("E017", Order), ("E017", Detail)]

    def test_a_router_that_answers_first(self, settings):
        class Order(Spread):
            pass

        assert self.found() == []
        settings.DATABASE_ROUTERS.append("tests.sharding.test_shards.AllOnOther")
        settings.DATABASE_ROUTERS = [*settings.DATABASE_ROUTERS]
        assert self.found() == []
        settings.DATABASE_ROUTERS = settings.DATABASE_ROUTERS[::-1]
        (error,) = check_shards(None)
        assert error.id == "django_hilo.E018"
        assert "spread.Order" in error.msg and "first" in error.hint

    def test_a_composite_key(self):
        class Order(models.Model):
            pk = models.CompositePrimaryKey("id", "size")
            id = HiLoField()
            size = models.IntegerField()

            class Meta:
                app_label = "spread"

        class Pair(models.Model):
            pk = models.CompositePrimaryKey("one", "two")
            one = models.IntegerField()
            two = models.IntegerField()

            class Meta:
                app_label = "spread"

        assert self.found() == [("E019", Order)]

    def test_a_child_with_a_key_of_its_own(self):
        class Order(Spread):
            objects = HiLoManager()

        class Sale(Order):
            pass

        class Gift(Order):
            code = HiLoField(primary_key=True)

        class Box(Spread):
            id = None
            code = HiLoField(primary_key=True)

        class Both(Order, Box):
            pass

        assert self.found() == [("E020", Gift), ("E020", Both)]

    def test_models_that_are_not_spread_have_a_message_of_their_own(self):
        class Order(Spread):
            pass

        class Memo(models.Model):
            order = models.ForeignKey(Order, models.CASCADE)

            class Meta:
                app_label = "spread"

        (warning,) = check_shards(None)
        assert warning.id == "django_hilo.W016"
        assert "no shard of their own" in warning.msg
        assert "nchor" not in warning.hint

    @pytest.mark.parametrize(
        ("prefixes", "ids"),
        [
            ({}, []),
            ({"orders/": ["other"]}, ["W021"]),
            ({"Lines/": ["other"]}, ["W021"]),
            ({"orders/": ["other"], "lines/": ["other"]}, []),
            ({"orders/": ["other"], "lines/": ["default"]}, ["W021"]),
        ],
    )
    def test_prefixes_that_part_what_is_anchored(self, settings, prefixes, ids):
        class Order(Spread):
            pass

        class Line(Spread):
            id = HiLoField(primary_key=True, anchor="order")
            order = models.ForeignKey(Order, models.CASCADE)

        settings.HILO = {
            **settings.HILO,
            "SHARDS": {"default": None, "other": None, **prefixes},
        }
        assert [id for id, _ in self.found()] == ids

    def test_on_delete_that_does_not_reach_all(self):
        class Order(Spread):
            pass

        def order(on_delete):
            return models.ForeignKey(
                Order, on_delete, db_constraint=False, related_name="+", null=True
            )

        class Line(Spread):
            gone = order(models.DO_NOTHING)
            kept = order(models.PROTECT)

        class Memo(models.Model):
            its = order(models.CASCADE)

            class Meta:
                app_label = "spread"

        class Near(Spread):
            id = HiLoField(primary_key=True, anchor="its")
            its = order(models.CASCADE)

        assert self.found() == [
            ("W022", Line._meta.get_field("kept")),
            ("W022", Memo._meta.get_field("its")),
        ]

    def test_what_is_unique_per_shard_only(self):
        class Order(Spread):
            number = HiLoField("numbers", unique=True)
            email = models.CharField(max_length=9, unique=True)
            a = models.IntegerField()
            b = models.IntegerField()

            class Meta:
                app_label = "spread"
                constraints = [
                    models.UniqueConstraint(fields=["a", "b"], name="ab"),
                    models.UniqueConstraint(fields=["a", "id"], name="ai"),
                ]

        class Line(Spread):
            id = HiLoField(primary_key=True, anchor="order")
            order = models.OneToOneField(Order, models.CASCADE)
            place = models.IntegerField()

            class Meta:
                app_label = "spread"
                unique_together = [("order", "place")]

        class Free(models.Model):
            email = models.CharField(max_length=9, unique=True)

            class Meta:
                app_label = "spread"

        assert self.found() == [("W023", Order), ("W023", Order)]
        said = [warning.msg.split(" of ")[0] for warning in check_shards(None)]
        assert said == ["email", "a, b"]


class AllOnOther:
    """A router that knows nothing of shards."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "other"

    db_for_write = db_for_read


class TestRouterWithoutDatabases:
    def test_it_has_no_opinion_without_shards(self, settings):
        settings.HILO = {}
        router = ShardRouter()
        assert router.db_for_read(models.Model) is None
        assert router.allow_relation(None, None) is None
        assert router.allow_migrate("0", "records", "order") is None

    def test_nor_of_models_without_such_a_key(self, settings):
        settings.HILO = {"SHARDS": THREE}
        router = ShardRouter()
        assert router.db_for_write(Permission) is None
        assert router.allow_relation(Permission(), Permission()) is None
        assert router.allow_migrate("0", "auth", "permission") is None

    @isolate_apps("tests.apps.spread")
    def test_an_anchor_that_is_no_relation(self, settings):
        class Visit(Spread):
            id = HiLoField(primary_key=True, anchor="region")
            region = models.CharField(max_length=9)

        class Free(Spread):
            id = HiLoField(primary_key=True, anchor=str)

        settings.HILO = {"SHARDS": THREE}
        router = ShardRouter()
        assert router.shard_of(Visit(region="suffix0")) == "0"
        assert router.shard_of(Visit(region="suffix1")) == "1"
        assert router.shard_of(Visit()) is None
        assert router.shard_of(Free()) is None  # only saving calls it

    @isolate_apps("tests.apps.spread")
    def test_a_set_is_with_its_owner_whatever_that_refers_to(self, settings):
        class Buyer(Spread):
            first = models.ForeignKey("Sale", models.CASCADE, db_constraint=False)

        class Sale(Spread):
            buyer = models.ForeignKey(Buyer, models.CASCADE, related_name="sales")

        class Fair(Spread):
            best = models.ForeignKey("Stall", models.CASCADE, db_constraint=False)
            stalls = models.ManyToManyField("Stall", related_name="fairs")

        class Stall(Spread):
            owner = models.ForeignKey(Buyer, models.CASCADE, db_constraint=False)

        settings.HILO = {"SHARDS": THREE}
        router = ShardRouter()
        buyer = Buyer(id="suffix0", first_id="suffix1")
        assert router.db_for_write(Sale, instance=buyer) == "0"
        fair = Fair(id="suffix0", best_id="suffix1")
        assert router.db_for_read(Stall, instance=fair) == "0"
        # Here only the relation itself can be meant.
        stall = Stall(id="suffix0", owner_id="suffix1")
        assert router.db_for_read(Buyer, instance=stall) == "1"
