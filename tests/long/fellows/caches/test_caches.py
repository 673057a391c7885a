"""What is read of counters is never that of an hour ago."""

import re

import pytest
from django.conf import settings
from django.db import connection, transaction

from django_hilo.models import HiLoDocument
from tests.long.fellows.caches.stock.models import Article, Box

pytestmark = pytest.mark.django_db(transaction=True)

both = pytest.mark.parametrize("model", [Article, Box])


@pytest.fixture(autouse=True)
def empty_cache():
    if settings.PACKAGE == "cacheops":
        from cacheops import invalidate_all

        invalidate_all()


@pytest.mark.parametrize("in_a_transaction", [True, False])
def test_counters_are_read_anew(admin_client, in_a_transaction):
    Article.objects.create()

    def shown() -> list[int]:
        page = admin_client.get("/admin/django_hilo/hilodocument/").content.decode()
        in_list = int(re.search(r'field-max_number">(\d+)', page)[1])
        return [in_list, HiLoDocument.objects.get(collection="articles").max]

    def stored() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT max FROM django_hilo_hilodocument")
            return cursor.fetchone()[0]

    first = shown()
    assert first == [stored()] * 2
    if in_a_transaction:
        with transaction.atomic():
            Article.objects.next_ids(100)
    else:
        Article.objects.next_ids(100)
    assert stored() > first[0]
    assert shown() == [stored()] * 2


@both
def test_rows_are_read_anew(model):
    assert list(model.objects.all()) == []
    obj = model.objects.create(name="tea")
    assert list(model.objects.all()) == [obj]
    assert model.objects.get(pk=obj.pk).name == "tea"
    with transaction.atomic():
        others = model.objects.bulk_create(model(name=name) for name in "abc")
    assert set(model.objects.all()) == {obj, *others}
    obj.name = "coffee"
    obj.save()
    assert model.objects.get(pk=obj.pk).name == "coffee"
    obj.delete()
    assert set(model.objects.all()) == set(others)
