"""A column with the bucket of an id, right however the row is written."""

import pytest
from django.core import serializers
from django.core.exceptions import FieldDoesNotExist
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    connection,
    models,
    transaction,
)
from django.db.migrations.writer import MigrationWriter
from django.forms import modelform_factory
from django.test.utils import isolate_apps

from django_hilo.checks.fields import check_model
from django_hilo.fields import BucketField, HiLoField
from django_hilo.managers import HiLoQuerySet
from django_hilo.sharding import bucket_of
from tests.apps.buckets.models import Deal, Parcel, Part

pytestmark = [pytest.mark.servers, pytest.mark.django_db]


def stored(instance: models.Model, name: str = "bucket") -> int | None:
    """Return what the row of an object has."""
    return type(instance).objects.values_list(name, flat=True).get(pk=instance.pk)


def load(text: str) -> models.Model:
    (loaded,) = serializers.deserialize("json", text)
    loaded.save()
    return loaded.object


@pytest.fixture
def deal():
    return Deal.objects.create(id="deals/33-A")


@pytest.fixture
def late():
    return Deal.objects.create(id="deals/34-A")


class TestOfTheKey:
    def test_a_source_that_only_the_database_knows_has_none(self, deal):
        assert Part(id=models.Value("parts/1-A$deals/33-A"), deal=deal).bucket is None
        parcel = Parcel.objects.create(deal_id=models.Value(deal.pk))
        assert stored(parcel, "deals_bucket") is None

    def test_save_and_create(self, deal):
        part = Part(deal=deal)
        part.save()
        for each in (part, Part.objects.create(deal=deal), deal.parts.create()):
            assert each.bucket == stored(each) == bucket_of(each.id)
            assert each.bucket == bucket_of("deals/33-A")

    def test_an_explicit_id(self, deal):
        part = Part.objects.create(id="x$orders/33-A", deal=deal)
        assert part.bucket == stored(part) == 522125

    def test_an_id_that_is_there_before_the_row(self, deal):
        (part,) = Part.objects.assign_ids([Part(deal=deal)])
        assert part.bucket == bucket_of(part.id)
        assert Part().bucket is None

    def test_bulk_create(self, deal, late):
        parts = [Part(deal=each) for each in (deal, late) * 3]
        Part.objects.bulk_create(parts)
        for part in parts:
            assert part.bucket == stored(part) == bucket_of(part.deal_id)

    def test_bulk_create_of_a_plain_manager(self, deal, late):
        plain = models.Manager()
        plain.model = Part
        parts = plain.bulk_create([Part(deal=each) for each in (deal, late) * 3])
        for part in parts:
            assert part.bucket == stored(part) == bucket_of(part.deal_id)

    def test_the_id_decides_not_the_relation(self, deal, late):
        part = Part.objects.create(deal=deal)
        part.deal = late
        part.save()
        assert part.bucket == stored(part) == bucket_of(deal.id)

    def test_what_is_set_does_not_count(self, deal):
        part = Part.objects.create(deal=deal, bucket=5)
        part.bucket = 6
        part.save()
        assert part.bucket == stored(part) == bucket_of(deal.id)

    def test_a_copy(self, deal, late):
        part = Part.objects.create(deal=deal)
        part.pk = None
        part.deal = late
        part.save()
        assert part.bucket == stored(part) == bucket_of(late.id)
        assert Part.objects.count() == 2

    def test_a_row_without_its_columns(self, deal):
        Part.objects.create(deal=deal)
        for part in (Part.objects.only("size").get(), Part.objects.defer("bucket")[0]):
            assert part.bucket == bucket_of(deal.id)
            part.size = 9
            part.save()
            assert stored(part, "size") == 9


class TestOfOtherFields:
    """Of a number that is no key, of a relation; both may be NULL."""

    def test_save(self, deal, late):
        parcel = Parcel.objects.create(deal=deal)
        assert parcel.bucket == stored(parcel) == bucket_of(parcel.number)
        assert parcel.deals_bucket == stored(parcel, "deals_bucket")
        assert parcel.deals_bucket == bucket_of("deals/33-A")
        parcel.deal = late
        parcel.save()
        assert stored(parcel, "deals_bucket") == bucket_of("deals/34-A")
        parcel.deal = parcel.number = None
        parcel.save(update_fields=["deal", "number", "bucket", "deals_bucket"])
        assert stored(parcel) is stored(parcel, "deals_bucket") is None

    def test_a_relation_to_one_that_is_saved_later(self):
        deal = Deal()
        parcel = Parcel(deal=deal)
        deal.save()
        parcel.save()
        assert stored(parcel, "deals_bucket") == bucket_of(deal.id)

    def test_bulk_create(self, deal):
        made = Parcel.objects.bulk_create(
            [Parcel(deal=deal), Parcel(), Parcel(number="parcels/900-A")]
        )
        rows = list(Parcel.objects.order_by("pk"))
        assert len(rows) == len(made) == 3
        for parcel in (*made, *rows):
            assert parcel.bucket == bucket_of(parcel.number)
        for parcel in rows:
            assert stored(parcel) == bucket_of(parcel.number)
        found = [stored(parcel, "deals_bucket") for parcel in rows]
        assert found == [bucket_of(deal.id), None, None]

    def test_a_copy(self):
        parcel = Parcel.objects.create()
        first = parcel.bucket
        parcel.pk = parcel.number = None
        parcel.save()
        assert parcel.bucket == stored(parcel) == bucket_of(parcel.number) != first


class TestPartOfARow:
    """Where the source is written, its bucket is."""

    @pytest.mark.parametrize("name", ["deal", "deal_id"])
    def test_update_fields(self, deal, late, name):
        parcel = Parcel.objects.create(deal=deal)
        parcel.deal, parcel.number, parcel.size = late, "parcels/900-A", 3
        parcel.save(update_fields=["size"])
        assert stored(parcel, "deals_bucket") == bucket_of(deal.id)
        parcel.save(update_fields=[name])
        assert stored(parcel, "deals_bucket") == bucket_of(late.id)
        assert stored(parcel) == bucket_of(stored(parcel, "number"))
        parcel.deal = None
        parcel.save(update_fields={name, "number"})
        assert stored(parcel, "deals_bucket") is None
        assert stored(parcel) == bucket_of("parcels/900-A")

    @pytest.mark.parametrize("name", ["deal", "deal_id"])
    def test_only_the_source(self, deal, late, name):
        Parcel.objects.create(deal=deal)
        parcel = Parcel.objects.only(name).get()
        parcel.deal = late
        parcel.save()
        assert stored(parcel, "deals_bucket") == bucket_of(late.id)

    @pytest.mark.parametrize("deferred", ["deal", "deals_bucket"])
    def test_a_deferred_field(self, deal, late, deferred):
        Parcel.objects.create(deal=deal)
        parcel = Parcel.objects.defer(deferred).get()
        parcel.save()
        assert stored(parcel, "deals_bucket") == bucket_of(deal.id)
        parcel.deal = late
        parcel.save()
        assert stored(parcel, "deals_bucket") == bucket_of(late.id)

    def test_post_save_is_told(self, deal, heard):
        parcel = Parcel.objects.create(deal=deal)
        told = heard(models.signals.post_save, "update_fields", sender=Parcel)
        for names in (["deal_id"], ["size"], ["deals_bucket", "deal"], None):
            parcel.save(update_fields=names)
        both = frozenset({"deal", "deals_bucket"})
        assert told == [{"deal_id", "deals_bucket"}, {"size"}, both, None]

    @pytest.mark.parametrize("name", ["deal", "deal_id"])
    def test_bulk_update(self, deal, late, name):
        parcels = [Parcel.objects.create(deal=deal) for _ in range(3)]
        for parcel in parcels:
            parcel.deal = late
        rows = HiLoQuerySet(Parcel)
        assert rows.bulk_update(parcels, (each for each in ["size"]), 2) == 3
        assert {stored(each, "deals_bucket") for each in parcels} == {
            bucket_of(deal.id)
        }
        assert rows.bulk_update(parcels, [name], batch_size=2) == 3
        for parcel in parcels:
            assert stored(parcel, "deals_bucket") == bucket_of(late.id)
            assert stored(parcel) == bucket_of(parcel.number)

    def test_what_a_conflict_updates(self, deal):
        parcel = Parcel.objects.create(deal=deal)
        parcel.number = "parcels/77-A"
        options = {"update_conflicts": True, "update_fields": ["number"]}
        if connection.features.supports_update_conflicts_with_target:
            options["unique_fields"] = ["id"]
        HiLoQuerySet(Parcel).bulk_create([parcel], **options)
        (row,) = Parcel.objects.values_list("number", "bucket")
        assert row == ("parcels/77-A", bucket_of("parcels/77-A"))

    def test_bulk_update_refuses_what_django_refuses(self):
        for names in ([], ["id"]):
            with pytest.raises(ValueError, match="bulk_update"):
                HiLoQuerySet(Parcel).bulk_update([], names)


class TestFixtures:
    @pytest.mark.parametrize("given", ["", ', "bucket": 7', ', "bucket": null'])
    def test_without_the_right_bucket(self, deal, given):
        for _ in range(2):  # an INSERT, an UPDATE
            part = load(
                f'[{{"model": "buckets.part", "pk": "parts/7-A$deals/33-A", '
                f'"fields": {{"deal": "deals/33-A"{given}}}}}]'
            )
            assert stored(part) == bucket_of("deals/33-A")


class TestTheColumn:
    @pytest.mark.parametrize("bucket", [-1, 1_048_576, 2**31 - 1])
    def test_it_takes_no_other_number(self, deal, bucket):
        part = Part.objects.create(deal=deal)
        with pytest.raises((IntegrityError, DataError)), transaction.atomic():
            Part.objects.filter(pk=part.pk).update(bucket=bucket)
        for bounds in (0, 1_048_575):
            Part.objects.filter(pk=part.pk).update(bucket=bounds)

    @pytest.mark.django_db(transaction=True)
    def test_it_is_added_to_a_table_with_rows(self):
        with isolate_apps("tests.apps.buckets"):

            class Old(models.Model):
                id = HiLoField(collection="old", primary_key=True)

                class Meta:
                    app_label = "buckets"
                    db_table = "buckets_old"

            class New(models.Model):
                id = HiLoField(collection="old", primary_key=True)
                bucket = BucketField(null=True)

                class Meta:
                    app_label = "buckets"
                    db_table = "buckets_old"

            with connection.schema_editor() as editor:
                editor.create_model(Old)
            try:
                Old.objects.bulk_create([Old() for _ in range(3)])
                with connection.schema_editor() as editor:
                    editor.add_field(New, New._meta.get_field("bucket"))
                assert not New.objects.exclude(bucket=None).exists()
                for row in New.objects.filter(bucket=None):
                    row.save(update_fields=["bucket"])
                for id, bucket in New.objects.values_list("id", "bucket"):
                    assert bucket == bucket_of(id)
                strict = BucketField()
                strict.set_attributes_from_name("bucket")
                strict.model = New
                with connection.schema_editor() as editor:
                    editor.alter_field(New, New._meta.get_field("bucket"), strict)
                # PyMySQL has its own word for it.
                with pytest.raises((IntegrityError, OperationalError), match="bucket"):
                    Old.objects.create()
            finally:
                with connection.schema_editor() as editor:
                    editor.delete_model(New)


class TestTheField:
    def test_migrations(self):
        found = [
            MigrationWriter.serialize(field)[0]
            for field in (
                BucketField(),
                BucketField("deal", null=True),
                BucketField(source="number", editable=True, db_index=True),
            )
        ]
        assert found == [
            "django_hilo.fields.BucketField()",
            "django_hilo.fields.BucketField(null=True, source='deal')",
            "django_hilo.fields.BucketField"
            "(db_index=True, editable=True, source='number')",
        ]

    def test_a_clone(self):
        clone = Parcel._meta.get_field("deals_bucket").clone()
        assert (clone.source, clone.null, clone.editable) == ("deal", True, False)

    def test_no_form_asks_for_it(self):
        form = modelform_factory(Part, fields="__all__")
        assert list(form().fields) == ["deal", "size"]

    def check(self, field: BucketField) -> list[str]:
        with isolate_apps("tests.apps.buckets"):

            class Thing(models.Model):
                id = HiLoField(primary_key=True)
                maybe = models.CharField(max_length=9, null=True)
                many = models.ManyToManyField("self")
                bucket = field

                class Meta:
                    app_label = "buckets"

            return [each.id for each in check_model(Thing)]

    def test_right_sources(self):
        assert self.check(BucketField()) == []
        assert self.check(BucketField("maybe", null=True)) == []

    @pytest.mark.parametrize("source", ["nothing", "bucket", "many", "maybe", 7, None])
    def test_wrong_sources(self, source):
        assert self.check(BucketField(source)) == ["django_hilo.E111"]

    def test_without_xxhash(self, monkeypatch):
        monkeypatch.setattr("django_hilo.checks.fields.find_spec", lambda name: None)
        assert self.check(BucketField()) == ["django_hilo.E110"]

    def test_a_wrong_source_is_djangos_error_at_run_time(self, monkeypatch):
        field = Part._meta.get_field("bucket")
        monkeypatch.setattr(field, "source", "nothing")
        with pytest.raises(FieldDoesNotExist):
            _ = Part().bucket
