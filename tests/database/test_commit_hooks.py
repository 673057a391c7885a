"""Hooks of ``on_commit()``, by which rollbacks are noticed, where others meddle."""

import pickle
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TestCase

from django_hilo._database.transaction import STATE, Outcome, state_of
from django_hilo.counters import reservation, reserve
from django_hilo.generator import next_number
from tests.apps.records.models import Letter, Order
from tests.support.rollbacks import Undo, bind, rolled_back
from tests.support.threads import in_thread

pytestmark = pytest.mark.servers
transactional = pytest.mark.django_db(transaction=True)


def run_hooks_at_once(self, func, robust=False):
    func()


def run_hooks_now():
    """As tests of some projects do, at the end of a block."""
    while connection.run_on_commit:
        _, hook, *_ = connection.run_on_commit.pop(0)
        hook()


@transactional
def test_projects_that_run_hooks_at_once():
    with patch.object(BaseDatabaseWrapper, "on_commit", run_hooks_at_once):
        given = []
        for _ in range(3):
            with rolled_back():
                given += [next_number(Order), next_number(Order)]
        with transaction.atomic():
            bind()
            order = Order.objects.create(name="a")
            order.name = "b"
            order.save()
            letter = Letter.objects.create()
            letter.save()
    given += [next_number(Order) for _ in range(40)]
    assert len(set(given)) == 46 and len(given) == 46
    assert list(Order.objects.values_list("pk", "name")) == [(order.pk, "b")]
    assert Letter.objects.get().pk == letter.pk
    others = in_thread(lambda: reserve("orders", 40).range)
    assert not any(number in others for number in given[6:])


class InTestCase(TestCase):
    def test_hooks_that_run_inside_roll_nothing_back(self):
        order, letter = Order.objects.create(name="a"), Letter.objects.create()
        run_hooks_now()
        order.name, letter.name = "b", "c"
        order.save()
        letter.save()
        self.assertEqual(Order.objects.get().name, "b")
        self.assertEqual(Letter.objects.get().name, "c")
        self.assertEqual(len({Order.objects.create().pk for _ in range(40)}), 40)

    def test_hooks_that_are_captured(self):
        with self.captureOnCommitCallbacks(execute=True) as called:
            transaction.on_commit(lambda: None)
            order, letter = Order.objects.create(name="a"), Letter.objects.create()
        order.name = "b"
        order.save()
        letter.save()
        self.assertEqual(Order.objects.get().name, "b")
        self.assertEqual(Letter.objects.count(), 1)
        self.assertLessEqual(len(called), 3)
        with self.captureOnCommitCallbacks() as later:
            Order.objects.create()
        self.assertEqual(later, [])


@transactional
def test_other_connections_have_one_name_of_ours():
    before = set(vars(connection))
    with transaction.atomic():
        bind()
        Order.objects.create(id="orders/5-A")
        Order.objects.create()
        Letter.objects.create()
    assert {each for each in set(vars(connection)) - before if "hilo" in each} <= {
        STATE
    }


@transactional
def test_a_pickle_keeps_the_present_outcome():
    with transaction.atomic():
        mark = state_of(connection).mark()
        copied = pickle.loads(pickle.dumps(mark))
        transaction.set_rollback(True)
    assert copied.outcome is Outcome.OPEN
    assert pickle.loads(pickle.dumps(mark)).is_rolled_back


@transactional
def test_another_thread_knows_of_the_rollback():
    lost = Order(name="lost")
    with rolled_back():
        lost.save()
    reserve("orders", 40)
    in_thread(lost.save)
    assert Order.objects.get().pk == lost.pk == "orders/41-A"


@transactional
def test_numbers_that_are_burnt_while_a_reservation_waits(monkeypatch):
    burnt, make = [], reservation.reserve_range

    def burn():
        with rolled_back():
            burnt.extend(next_number(Order) for _ in range(3))

    def wait_and_reserve(*arguments, **keywords):
        monkeypatch.setattr(reservation, "reserve_range", make)
        in_thread(burn)
        return make(*arguments, **keywords)

    monkeypatch.setattr(reservation, "reserve_range", wait_and_reserve)
    given = {next_number(Order) for _ in range(29)}

    assert burnt == [1, 2, 3]
    assert given == set(range(4, 33))  # the same range, after what was burnt


@transactional
def test_a_hook_that_raises_is_of_a_caller_and_comes_later():
    def fail():
        raise Undo

    with pytest.raises(Undo), transaction.atomic():
        transaction.on_commit(fail)
        bind()
        order = Order.objects.create(name="a")
        number = next_number(Order)
    assert next_number(Order) == number + 1  # the range is in the pool
    order.save()
    assert Order.objects.get().pk == order.pk
