"""The way of an id stays short: counts of calls, which no machine changes."""

import gc
import sys
from collections import Counter
from pathlib import Path

import django
import pytest
from django.db import transaction

import django_hilo
from django_hilo.models import HiLoDocument
from tests.apps.records.models import Order
from tests.support.databases import CHOSEN, IS_MYSQL

pytestmark = pytest.mark.django_db(transaction=True)

PACKAGE = str(Path(django_hilo.__file__).parent)
# Lower these when the way gets shorter. There are some 100 calls; the rest is for what
# a test before has left behind.
# On SQLite a transaction is prepared by the base of its dialect.
# In tests, some ten calls and three files look whether there is a TestCase.
MOST_CALLS, MOST_FILES = 116, 27 if CHOSEN == "sqlite" else 26
if sys.version_info[:2] == (3, 14):  # the lock has a method in Python
    MOST_CALLS, MOST_FILES = MOST_CALLS + 8, MOST_FILES + 1
# By a connection of the process's own, which MariaDB always needs; the last file counts
# only if a test before locked a counter itself.
MORE_CALLS, MORE_FILES = 21, 5
if CHOSEN == "sqlite":  # its range is bound
    MORE_CALLS = 44

# Django 6 calls pre_save() twice.
MOST_OF_A_SAVE = 30 + 3 * (django.VERSION >= (6,))
if sys.version_info[:2] == (3, 14):
    MOST_OF_A_SAVE += 1


def calls(act):
    """Return how often functions of the package are called, by file."""
    counted, before = Counter(), sys.getprofile()

    def count(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            counted[frame.f_code.co_filename.removeprefix(PACKAGE)] += 1

    # Nothing that tests before left behind is finalized meanwhile.
    gc.collect()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.parametrize("inside", [False, True])
def test_a_save_that_needs_a_range(inside):
    for _ in range(32 + 64):
        Order.objects.create()
    if inside:
        with transaction.atomic():
            counted = calls(Order.objects.create)
    else:
        counted = calls(Order.objects.create)
    assert HiLoDocument.objects.get().max == 32 + 64 + 128
    more = IS_MYSQL or inside
    assert counted.total() <= MOST_CALLS + MORE_CALLS * more, counted
    assert len(counted) <= MOST_FILES + MORE_FILES * more, sorted(counted)


def test_a_save_that_needs_none():
    for _ in range(2):
        Order.objects.create()
    assert calls(Order.objects.create).total() <= MOST_OF_A_SAVE
