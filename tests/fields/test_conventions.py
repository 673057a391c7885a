import pytest
from django.core import serializers
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_id
from tests.apps.records.models import Boss, Manager, Order, Worker

pytestmark = pytest.mark.django_db


def test_it_makes_the_id_of_the_generated_one():
    assert Worker.objects.create(name="ann").pk == "staff/ann/1"
    assert Boss.objects.create(name="bob").pk == "staff/bob/2"
    assert Worker.objects.create(id="x", name="ann").pk == "x"
    # Ids without a row are the generated ones.
    assert next_id(Worker) == "workers/3-A"


def test_the_most_specific_class_has_its_own():
    boss = Manager.objects.create(name="eve")
    assert boss.pk == boss.worker_ptr_id == boss.id == "managers/eve"
    with pytest.raises(IntegrityError):
        Manager(name="eve").save()


def test_bulk_create_assign_ids_and_async():
    made = Worker.objects.bulk_create([Worker(name="a"), Worker(name="b")])
    assert [worker.pk for worker in made] == ["staff/a/1", "staff/b/2"]

    assigned = Worker(name="c")
    Worker.objects.assign_ids([assigned])
    assert assigned.pk == "staff/c/3"
    with CaptureQueriesContext(connection) as queries:
        assigned.save()
    assert len(queries) == 1


@pytest.fixture
def convention(monkeypatch):
    def give(function):
        monkeypatch.setattr(Order._meta.pk, "convention", function)

    return give


def test_it_gets_the_instance_and_a_text(convention):
    seen = []
    convention(
        lambda instance, document_id: seen.append((instance, document_id)) or "x"
    )
    order = Order()
    order.save()
    assert seen == [(order, "orders/1-A")]
    assert type(seen[0][1]) is str


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        *[(made, "returned") for made in (None, "", 7, "a\x00", b"orders/1")],
        *[(made, "returned") for made in ("/orders/1", "orders|", "orders/")],
        ("ORDERS/500-A", "will give the number 500"),
        ("x" * 65, "65 characters"),
    ],
)
def test_what_it_must_not_return(convention, made, fault):
    convention(lambda instance, document_id: made)
    with pytest.raises(HiLoError, match=fault):
        Order().save()
    assert not Order.objects.exists()


@pytest.mark.parametrize("made", ["orders/x/500-A", "orders/500-B", "orders/1-A$x"])
def test_it_may_return_what_the_counter_never_gives(convention, made):
    convention(lambda instance, document_id: made)
    assert Order.objects.create().pk == made
    assert next_id(Order) == "orders/2-A"


def test_fixtures_keep_their_ids():
    text = '[{"model": "records.worker", "pk": "staff/z/9", "fields": {"name": "z"}}]'
    for item in serializers.deserialize("json", text):
        item.save()
    assert Worker.objects.get().pk == "staff/z/9"
