"""Hooks of ``on_commit()``, by which rollbacks are noticed, where others meddle."""

import os
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

import django_hilo
from django_hilo.counters import reserve
from django_hilo.exceptions import HiLoError
from django_hilo.generator import next_number
from tests.apps.records.models import Letter, Order
from tests.support.counters import counters_wrapped
from tests.support.databases import IS_MYSQL
from tests.support.foreign import needs_server
from tests.support.rollbacks import Undo, bind, rolled_back
from tests.support.sql import execute
from tests.support.threads import in_thread

pytestmark = pytest.mark.servers
transactional = pytest.mark.django_db(transaction=True)


def rows():
    return list(Order.objects.values_list("pk", "name"))


@transactional
def test_projects_that_run_hooks_at_once():
    def run_at_once(self, func, robust=False):
        func()

    with patch.object(BaseDatabaseWrapper, "on_commit", run_at_once):
        given = []
        for _ in range(3):
            with rolled_back():
                given += [next_number(Order), next_number(Order)]
        with transaction.atomic():
            bind()
            order, letter = Order.objects.create(name="a"), Letter.objects.create()
            order.name = "b"
            order.save(), letter.save()
    given += [next_number(Order) for _ in range(40)]
    assert len(set(given)) == 46
    assert rows() == [(order.pk, "b")]
    assert Letter.objects.get().pk == letter.pk
    others = in_thread(lambda: reserve("orders", 40).range)
    assert not any(number in others for number in given[6:])


def run_one_by_one():
    while connection.run_on_commit:
        _, hook, *_ = connection.run_on_commit.pop(0)
        hook()


def run_as_django_does():
    """The recipe of projects that is older than captureOnCommitCallbacks()."""
    with patch.object(BaseDatabaseWrapper, "validate_no_atomic_block"):
        connection.run_and_clear_commit_hooks()


@pytest.mark.parametrize("run", [run_one_by_one, run_as_django_does, None])
def test_hooks_that_run_inside_of_a_test_roll_nothing_back(
    db, run, django_capture_on_commit_callbacks
):
    order, letter = Order(name="a"), Letter()

    def rename():
        order.name = "b"
        order.save(update_fields=["name"])
        order.save(), letter.save()

    with django_capture_on_commit_callbacks(execute=not run):
        transaction.on_commit(rename)
        order.save(), letter.save()
        if run:
            run()
    order.save(), letter.save()
    assert rows() == [(order.pk, "b")]
    assert Letter.objects.get().pk == letter.pk
    assert len({Order.objects.create().pk for _ in range(40)} | {order.pk}) == 41


@transactional
def test_numbers_that_are_burnt_while_a_reservation_waits():
    burnt = []

    def burn():
        with rolled_back():
            burnt.extend(next_number(Order) for _ in range(3))

    def burn_first(execute, *statement):
        if not burnt:
            burnt.append(0)
            in_thread(burn)
        return execute(*statement)

    with counters_wrapped(burn_first):
        given = {next_number(Order) for _ in range(29)}

    assert burnt == [0, 1, 2, 3]
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
    assert rows() == [(order.pk, "a")]


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
    assert rows() == [(order.pk, "b")]
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
    assert rows() == [(lost.pk, "lost")]


@transactional
def test_after_a_rollback_no_statement_is_watched():
    with rolled_back():
        Order.objects.create(), Letter.objects.create()
    Order.objects.count()
    assert not connection.execute_wrappers


@transactional
@pytest.mark.parametrize("model", [Letter, Order])
def test_many_savepoints_cost_as_much_as_few(model):
    """Each statement looks at no more marks and hooks when there are more of them."""
    package = str(Path(django_hilo.__file__).parent)

    def calls_of(savepoints):
        calls = []

        def note(frame, event, argument):
            if event.endswith("call") and package in frame.f_code.co_filename:
                calls.append(event)

        with transaction.atomic():
            sys.setprofile(note)
            try:
                for number in range(savepoints):
                    with transaction.atomic():
                        id = f"{model.__name__.lower()}s/{number + 1}"
                        model(pk=id if model is Letter else f"{id}-A").save()
                        if model is Letter:
                            Letter.objects.create()
            finally:
                sys.setprofile(None)
            transaction.set_rollback(True)
        return len(calls)

    calls_of(1)  # what is done once
    assert calls_of(80) < 5 * calls_of(20)


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
        assert [(in_thread(work), "b")] == rows()
    finally:
        connection.dec_thread_sharing()


@needs_server
@transactional
def test_the_child_of_a_fork_inside_a_transaction_may_save_what_was_committed():
    """It connects anew; the transaction is its parent's."""
    reader, writer = os.pipe()
    with transaction.atomic():
        bind()
        order = Order.objects.create(name="a")
        child = os.fork()
        if not child:
            try:
                parents = connection.connection  # which it must not close
                connection.connect()
                os.read(reader, 1)
                order.name = "b"
                order.save()
            finally:
                os._exit(parents is None)
    os.write(writer, b"!")
    os.waitpid(child, 0)
    assert rows() == [(order.pk, "b")]
