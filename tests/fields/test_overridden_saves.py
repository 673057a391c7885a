"""Models that override the methods which are wrapped, with parameters of their own."""

import pytest
from django.core.serializers.base import DeserializedObject
from django.db import connection, models
from django.test.utils import isolate_apps

from django_hilo.fields import HiLoBigAutoField, HiLoField
from django_hilo.managers import HiLoManager

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


class Translated(models.Model):
    """As django-parler's TranslatableModelMixin."""

    name = models.CharField(max_length=20)
    objects = HiLoManager()

    class Meta:
        abstract = True

    def save_base(self, raw=False, using=None, **kwargs):
        super().save_base(raw=raw, using=using, **kwargs)
        self.saved_on = using


@pytest.fixture(params=[HiLoField, HiLoBigAutoField])
def kinds(request):
    with isolate_apps("tests.apps.records"):

        class Variant(Translated):
            id = request.param(primary_key=True)

            class Meta:
                app_label = "records"

            def _save_table(self, *args, **kwargs):
                self.tables = [*getattr(self, "tables", ()), (args, set(kwargs))]
                return super()._save_table(*args, **kwargs)

        class Special(Variant):
            class Meta:
                app_label = "records"

            def save_base(self, *args, **kwargs):
                super().save_base(*args, **kwargs)

        with connection.schema_editor() as editor:
            editor.create_model(Variant)
            editor.create_model(Special)
        yield Variant, Special
        with connection.schema_editor() as editor:
            editor.delete_model(Special)
            editor.delete_model(Variant)


def test_they_are_saved(kinds):
    for model in kinds:
        made = model(name="first")
        made.save()
        assert made.saved_on == "default"
        made.name = "second"
        made.save(update_fields=["name"])
        assert model.objects.get(pk=made.pk).name == "second"


def test_arguments_stay_as_they_were_given(kinds):
    made = kinds[0](name="first")
    made.save()
    [(args, names)] = made.tables
    # Django passes all six by position.
    assert (len(args), names) == (6, set())
    assert args[2] is True  # force_insert: the id was assigned


def test_fixtures(kinds):
    DeserializedObject(kinds[0](name="raw")).save()
    assert kinds[0].objects.get(name="raw").pk
