"""A thread that is asked for a number while it takes one gets an error, not a hang.

The finalizer of any object, or a signal handler, may ask at any line.
"""

import sys
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import django_hilo
from django_hilo.exceptions import NestedReservation
from django_hilo.generator import next_id, next_number, next_numbers, return_ranges
from tests.apps.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True)

PACKAGE = str(Path(django_hilo.__file__).parent)
# Explicit ids, each of which is inserted once.
explicit = (f"orders/{number}-A" for number in count(9000))
ASK = [next_id, next_number, lambda target: Order.objects.create(id=next(explicit))]


def asked_amid(work, ask, line):
    """Do some work, and ask at one line of the package's in it.

    Return the answer, or the error: none if the work has fewer lines; and what it did.
    """
    left, found = line, []

    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        left -= event == "line"
        if left < 0 and not found:
            sys.settrace(None)
            try:
                found.append(ask(Order))
            except NestedReservation as error:
                found.append(error)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        done = work()
    finally:
        sys.settrace(before)
    return found, done


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("work", [next_number, lambda target: next_numbers(target, 2)])
def test_at_any_line_of_the_way_through_memory(ask, work):
    next_number(Order)
    assert errors_amid(partial(work, Order), ask)
    assert return_ranges() == 1


@pytest.mark.parametrize("ask", [next_id, next_number])
def test_at_many_lines_of_a_reservation(ask, settings):
    # Where the row is locked already, it waits for itself.
    settings.HILO = {**settings.HILO, "LOCK_TIMEOUT": 0.2, "RETRY_FOR": 1.0}

    def reserve():
        return_ranges()
        return next_number(Order)

    assert errors_amid(reserve, ask, step=11)


def errors_amid(work, ask, step=1):
    """Ask at each line of some work; return how often that was refused."""
    errors = 0
    for line in count(0, step):
        found, done = asked_amid(work, ask, line)
        if not found:
            return errors
        errors += isinstance(found[0], NestedReservation)
        assert found[0] != done
    return errors
