"""Hooks of ``on_commit()``, by which rollbacks are noticed, where others meddle."""

import os
from unittest.mock import patch

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TestCase

from django_hilo._database.transaction import (
    ConnectionState,
    state_of,
)
from django_hilo.counters import reservation, reserve
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_number
from tests.apps.records.models import Letter, Order
from tests.support.databases import IS_MYSQL
from tests.support.rollbacks import Undo, bind, rolled_back
from tests.support.sql import execute
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


def test_hooks_that_others_run_are_no_rollback(db):
    """The recipe of projects that is older than captureOnCommitCallbacks()."""
    allow = patch.object(BaseDatabaseWrapper, "validate_no_atomic_block")
    orders = []

    def rename():
        orders[0].name = "b"
        orders[0].save(update_fields=["name"])
        orders[0].save()

    transaction.on_commit(rename)
    orders.append(Order.objects.create(name="a"))
    with allow:
        connection.run_and_clear_commit_hooks()
    assert list(Order.objects.values_list("name", flat=True)) == ["b"]


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
def test_another_thread_knows_of_the_rollback():
    lost = Order(name="lost")
    with rolled_back():
        lost.save()
    reserve("orders", 40)
    with pytest.raises(HiLoError, match="another process may have the id"):
        in_thread(lost.save)
    assert not Order.objects.exists()


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


@transactional
@pytest.mark.parametrize(
    "undo",
    [
        ["SAVEPOINT mine", "ROLLBACK TO SAVEPOINT mine"],
        ["SAVEPOINT mine -- so", "/* so */ ROLLBACK TO SAVEPOINT mine /* */ ;"],
        ["SAVEPOINT `a b`" if IS_MYSQL else 'SAVEPOINT "a b"', None],
        ["SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "RELEASE SAVEPOINT a"],
        ["INSERT INTO records_plain (id, name) VALUES ('p', 'begin; rollback')"],
    ],
)
def test_work_before_a_savepoint_of_plain_sql_lasts(undo):
    with transaction.atomic():
        bind()
        order = Order.objects.create(name="a")
        for statement in undo:
            execute(statement or undo[0].replace("SAVEPOINT", "ROLLBACK TO SAVEPOINT"))
        order.name = "b"
        order.save(update_fields=["name"])
        order.save()
    assert list(Order.objects.values_list("pk", "name")) == [(order.pk, "b")]
    assert len({Order.objects.create().pk for _ in range(40)} | {order.pk}) == 41


@transactional
def test_work_after_a_savepoint_of_plain_sql_does_not_last():
    lost = Order(name="lost")
    with transaction.atomic():
        bind()
        Letter.objects.create()  # so that savepoints are watched
        execute("SAVEPOINT mine")
        lost.save()
        execute("ROLLBACK TO SAVEPOINT mine")
        with pytest.raises(HiLoError, match="another row may have this id"):
            lost.save(update_fields=["name"])
        lost.save()
    assert Order.objects.get().name == "lost"


@transactional
def test_nothing_is_left_after_many_rollbacks():
    for _ in range(3):
        with rolled_back():
            Order.objects.create()
            Letter.objects.create()
    Order.objects.count()
    assert not state_of(connection).open_marks()
    assert not connection.execute_wrappers


@transactional
@pytest.mark.parametrize("model", [Letter, Order])
def test_many_savepoints_cost_as_much_as_few(model):
    """Each statement looks at no more marks and hooks when there are more of them."""
    looked = []
    look_for = ConnectionState.look_for

    def counting(state, mark):
        looked.append(mark)
        return look_for(state, mark)

    with patch.object(ConnectionState, "look_for", counting), transaction.atomic():
        for number in range(200):
            with transaction.atomic():
                id = f"{model.__name__.lower()}s/{number + 1}"
                model(pk=id if model is Letter else f"{id}-A").save()
                if model is Letter:
                    Letter.objects.create()
    assert len(looked) < 2_000


@transactional
def test_threads_that_share_a_connection():
    """As those of a live server, with SQLite in memory."""
    connection.inc_thread_sharing()
    mine = connections["default"]

    def work():
        connections["default"] = mine
        with rolled_back():
            Order.objects.create()
        with transaction.atomic():
            bind()
            order = Order.objects.create(name="a")
        order.name = "b"
        order.save(update_fields=["name"])
        del connections["default"]
        return order.pk

    try:
        assert in_thread(work) == Order.objects.get(name="b").pk
    finally:
        connection.dec_thread_sharing()


@transactional
def test_the_child_of_a_fork_inside_a_transaction_knows_nothing():
    with transaction.atomic():
        bind()
        order = Order.objects.create()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            connection.run_on_commit = []
            doubtful = Order._meta.pk.ids.is_rolled_back(order, "default")
            os.write(writer, str(doubtful).encode())
            os._exit(0)
        os.waitpid(child, 0)
    assert os.read(reader, 10) == b"False"
