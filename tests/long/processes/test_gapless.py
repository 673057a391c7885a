"""Gapless numbers taken by many processes at once, some of which roll back."""

from __future__ import annotations

from collections import defaultdict

import pytest
from django.contrib.auth.models import Group

from django_hilo.models import GaplessCounter
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, ROUNDS = 8, 6

# The processes wait for each other before each round, and each commits in each.
CODE = """
import multiprocessing, sys
from collections import Counter
from random import Random
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction
from django_hilo._database.dialects import ErrorKind, classify
from django_hilo.counters import next_gapless_numbers

PROCESSES, ROUNDS = map(int, sys.argv[1:3])

class Undone(Exception):
    pass

def write(worker, random):
    numbers = next_gapless_numbers("invoices", random.choice([1, 1, 1, 3]))
    Group.objects.bulk_create(Group(name=f"{number} {worker}") for number in numbers)

def transact(worker, random, may_undo):
    undone = 0
    with transaction.atomic():
        for _ in range(random.randrange(3)):
            try:
                with transaction.atomic():
                    write(worker, random)
                    if random.random() < 0.4:
                        raise Undone
            except Undone:
                undone += 1
        write(worker, random)
        if may_undo and random.random() < 0.4:
            raise Undone
    return undone

def repeat(worker, random, may_undo):
    while True:
        try:
            return transact(worker, random, may_undo)
        except OperationalError as error:
            if classify(error, connection) is not ErrorKind.RETRY:
                raise

def work(worker, barrier):
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["transaction_mode"] = sys.argv[3]
    try:
        undone = take_turns(worker, barrier)
    except Exception:
        barrier.abort()  # nobody waits for who failed
        raise
    connection.close()
    sys.exit(0 if min(undone["savepoints"], undone["transactions"]) > 0 else 3)

def take_turns(worker, barrier):
    random, undone = Random(worker), Counter()
    for _ in range(ROUNDS):
        barrier.wait()
        for may_undo in (True, True, True, False):
            try:
                undone["savepoints"] += repeat(worker, random, may_undo)
            except Undone:
                undone["transactions"] += 1
    return undone

context = multiprocessing.get_context("fork")
barrier = context.Barrier(PROCESSES)
workers = [
    context.Process(target=work, args=(worker, barrier)) for worker in range(PROCESSES)
]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print({worker.exitcode for worker in workers})
"""


@pytest.mark.parametrize(
    "mode", ["DEFERRED", "IMMEDIATE"] if CHOSEN == "sqlite" else [""]
)
def test_what_is_committed_has_no_gap_and_no_number_twice(python, mode):
    assert python(CODE, str(PROCESSES), str(ROUNDS), mode) == "{0}"

    rows = [name.split() for name in Group.objects.values_list("name", flat=True)]
    taken = sorted(int(number) for number, _ in rows)
    assert taken == [*range(1, len(rows) + 1)]
    assert GaplessCounter.objects.get().last == len(rows) >= PROCESSES * ROUNDS
    by_worker = defaultdict(list)
    for number, worker in rows:
        by_worker[worker].append(int(number))
    assert len(by_worker) == PROCESSES
    latest_first = max(map(min, by_worker.values()))
    earliest_last = min(map(max, by_worker.values()))
    assert latest_first < earliest_last, "each one's numbers overlap with all others'"
