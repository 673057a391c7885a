"""RavenDB's own tests of its HiLo generator, with the same expectations."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from django.db import connection

from django_hilo.generator import next_id, next_ids, next_number, return_ranges
from django_hilo.models import HiLoDocument, ServerPrefix
from tests.apps.records.models import Order, Product, User
from tests.support.counters import max_of, preset

pytestmark = pytest.mark.django_db(transaction=True)


def in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    def worker(number: int) -> object:
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as executor:
        return list(executor.map(worker, range(count)))


def test_store_one_object_then_the_next_process_gets_2_to_33(python):
    assert python("print(Order.objects.create().id)") == "orders/1-A"
    assert max_of("orders") == 1

    ids = python("print(*[Order.objects.create().id for _ in range(32)])").split()

    assert ids == [f"orders/{number}-A" for number in range(2, 34)]
    assert max_of("orders") == 33


def test_hilo_cannot_go_down():
    preset(32, "orders")
    ids = [next_id(Order)]
    HiLoDocument.objects.filter(collection="orders").update(max=12)

    ids += [next_id(Order) for _ in range(128)]

    assert len(set(ids)) == 129


def test_multi_db():
    preset(64, "users")
    preset(128, "products")

    assert User.objects.create().id == "users/65-A"
    assert Product.objects.create().id == "products/129-A"


def test_capacity_should_double():
    preset(64, "users")
    for _ in range(32):
        next_id(User)
    assert max_of("users") == 96

    next_id(User)

    assert max_of("users") == 160


def test_return_unused_range_on_dispose():
    preset(32, "users")
    next_ids(User, 2)

    assert return_ranges() == 1

    assert max_of("users") == 34


def test_picks_up_where_it_left_off(new_process):
    for _ in range(10):
        next_id(User)
    return_ranges()
    new_process()

    assert next_id(User) == "users/11-A"


def test_one_range_serves_parallel_requests():
    numbers = in_threads(32, lambda _: next_number(User))

    assert sorted(numbers) == list(range(1, 33))
    assert max_of("users") == 32


def test_ids_by_collection_type_and_entity_share_one_counter():
    targets = ["products", "records.Product", Product, Product()]
    numbers = [next_number(targets[turn % 4]) for turn in range(80)]

    assert sorted(numbers) == list(range(1, 81))


def test_parallel_generation_has_no_clashes_or_gaps():
    numbers = in_threads(100, lambda _: [next_number(User) for _ in range(20)])

    assert sorted(chain.from_iterable(numbers)) == list(range(1, 2001))


def test_the_highest_max_wins_a_conflict():
    """RavenDB resolves a replication conflict to the highest Max."""
    preset(64, "users")
    assert next_number(User) == 65
    HiLoDocument.objects.filter(collection="users").update(max=128)
    return_ranges()

    assert next_number(User) == 129


def test_can_use_server_prefix(settings, new_process):
    ServerPrefix.objects.create(node_tag="A", prefix="4,")
    settings.HILO = {**settings.HILO, "SHOW_NODE_TAG": False}

    assert User.objects.create().id == "users/4,1"


def test_deleting_the_counter_repeats_nothing_here():
    first = next_ids(User, 5)
    HiLoDocument.objects.all().delete()

    assert not set(first) & set(next_ids(User, 100))
