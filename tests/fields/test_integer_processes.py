"""HiLoBigAutoField in transactions, threads and forks, and inside a TestCase."""

import threading

import pytest
from django.db import connection, transaction

from tests.apps.numbers.models import Item, Tag
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.threads import in_threads

pytestmark = pytest.mark.servers

transactional = pytest.mark.django_db(transaction=True)


@transactional
class TestTransactions:
    def test_a_rolled_back_savepoint(self):
        with transaction.atomic():
            kept = Item.objects.create().pk
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                lost = [Item.objects.create().pk for _ in range(50)]
                raise ZeroDivisionError
            after = [Item.objects.create().pk for _ in range(50)]
        more = [Item.objects.create().pk for _ in range(50)]
        assert len({kept, *after, *more}) == Item.objects.count() == 101
        assert not set(lost) & {*after, *more}

    @pytest.mark.parametrize("first_inside", [False, True])
    def test_a_rolled_back_transaction_leaves_others_alone(self, first_inside):
        if not first_inside:
            Item.objects.create()
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Item.objects.bulk_create([Item() for _ in range(100)])
            Tag.objects.bulk_create([Tag() for _ in range(100)])
            raise ZeroDivisionError
        with connection.cursor() as cursor:
            if not IS_MYSQL:
                cursor.execute("INSERT INTO numbers_item (name) VALUES ('x')")
        made = [Item.objects.create().pk for _ in range(150)]
        tags = [Tag.objects.create().pk for _ in range(150)]
        assert len(set(made)) == len(set(tags)) == 150

    def test_an_explicit_key_that_rolled_back(self):
        low = Item.objects.create().pk
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Item.objects.create(pk=low + 900)
            raise ZeroDivisionError
        assert Item.objects.create().pk > low
        Item.objects.create(pk=low + 900)
        assert low + 900 not in [Item.objects.create().pk for _ in range(80)]


@transactional
def test_threads():
    Item.objects.create()
    count, together = 8, threading.Barrier(8)

    def create(n: int) -> list[int]:
        together.wait()
        made = [Item.objects.create(name=str(n)).pk for _ in range(25)]
        rows = Item.objects.bulk_create([Item(name=str(n)) for _ in range(25)])
        return made + [row.pk for row in rows]

    if CHOSEN == "sqlite":
        count, together = 2, threading.Barrier(2)  # it has one writer at a time
    made = [pk for keys in in_threads(count, create) for pk in keys]
    assert len(set(made)) == len(made) == 50 * count
    owners = list(Item.objects.order_by("pk").values_list("name", flat=True))[1:]
    assert len(set(owners)) == count
