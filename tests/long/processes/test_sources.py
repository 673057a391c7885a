"""Processes of Django's and partners draw from one counter at once; some roll back.

The partners work by SQL as their systems do, in blocks of 10.
"""

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from tests.support import foreign
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.foreign import needs_postgresql, needs_sequences, needs_server

pytestmark = [needs_server, pytest.mark.django_db(transaction=True)]
make = foreign.make

DJANGO, PARTNERS, ROUNDS, EACH = 4, 2, 12, 25

# All wait for each other before each round, so that each draws in each.
CODE = """
import json, multiprocessing, sys
from random import Random
from django.db import connection, transaction
from django.conf import settings
from django_hilo.generator import next_numbers
from django_hilo.sources import database, doctrine, hibernate, marten, nhibernate
from tests.apps.records.models import Order

SOURCE, PARTNER, DJANGO, PARTNERS, ROUNDS, EACH = json.loads(sys.argv[1])
source = eval(SOURCE)

class Undone(Exception):
    pass

def by_django(worker):
    settings.HILO = {"CAPACITY": [1, 7, 20, 32][worker], "MAX_CAPACITY": 40}
    random = Random(worker)
    undone = 0

    def draw():
        nonlocal undone
        numbers = []
        while len(numbers) < EACH:
            n = random.choice([1, 1, 2, 12])
            if random.random() < 0.5:
                numbers += next_numbers(source, n)
                continue
            try:
                with transaction.atomic():
                    Order.objects.filter(pk="orders/0").update(name="x")
                    numbers += next_numbers(source, n)
                    if random.random() < 0.5:
                        raise Undone
            except Undone:
                undone += 1
        return numbers

    yield draw
    assert undone

def by_partner(worker):
    held = []

    def draw():
        while len(held) < EACH:
            held.extend(block())
        taken = held[:EACH]
        del held[:EACH]
        return taken

    yield draw

def query(sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0] if cursor.description else cursor.rowcount

def block():
    if PARTNER.startswith("SELECT"):
        while (first := query(PARTNER)) < 1:
            pass  # Marten's function asks for another try
        return range(first, first + 10)
    table, column = PARTNER.split(".")
    while True:
        with transaction.atomic():
            old = query(f"SELECT {column} FROM {table} FOR UPDATE")
            sql = f"UPDATE {table} SET {column} = %s WHERE {column} = %s"
            if table == "hibernate_unique_key":
                if query(sql, old + 1, old):
                    return range(max(old * 10, 1), old * 10 + 10)
            elif query(sql, old + 10, old):
                return range(old + 1, old + 11)

def work(worker, barrier, results):
    try:
        draws = by_django(worker) if worker < DJANGO else by_partner(worker)
        draw = next(draws)
        for number in range(ROUNDS):
            barrier.wait()
            results.put((number, worker, draw()))
        next(draws, None)
    except BaseException:
        barrier.abort()  # nobody waits for who failed
        raise
    connection.close()

context = multiprocessing.get_context("fork")
barrier = context.Barrier(DJANGO + PARTNERS)
results = context.Queue()
workers = [
    context.Process(target=work, args=(worker, barrier, results))
    for worker in range(DJANGO + PARTNERS)
]
for worker in workers:
    worker.start()
found = []
while len(found) < len(workers) * ROUNDS and not barrier.broken:
    try:
        found.append(results.get(timeout=1))
    except Exception:
        pass
for worker in workers:
    worker.join()
assert {worker.exitcode for worker in workers} == {0}
print(json.dumps(found))
"""


class Shared(NamedTuple):
    source: str
    partner: str
    statements: list[str]


SEQUENCE = "CREATE SEQUENCE orders_seq INCREMENT BY 10"
NEXTVAL = {
    "postgres": "SELECT nextval('orders_seq')",
    "mariadb": "SELECT NEXTVAL(orders_seq)",
}.get(CHOSEN, "")
SHARED = {
    "row, hilo": Shared(
        "hibernate.HiLo(9)",
        "hibernate_unique_key.next_hi",
        [foreign.UNIQUE_KEY, "INSERT INTO hibernate_unique_key VALUES (0)"],
    ),
    "row, pooled-lo, made by the first": Shared(
        "hibernate.PooledLo(10, table='hibernate_sequences', segment='orders')",
        "hibernate_sequences.next_val",
        [foreign.SEGMENTS],
    ),
    "function, Marten's": Shared(
        "marten.HiLo('Order', max_lo=10)",
        "SELECT mt_get_next_hi('Order') * 10 + 1",
        [foreign.MARTEN, "INSERT INTO mt_hilo VALUES ('Order', -1)"],
    ),
    # On MyISAM nothing is locked: the comparison alone tells who came first.
    "row without a lock": Shared(
        "hibernate.HiLo(9)",
        "",
        [
            f"{foreign.UNIQUE_KEY} {'ENGINE=MyISAM' * IS_MYSQL}",
            "INSERT INTO hibernate_unique_key VALUES (0)",
        ],
    ),
    "sequence": Shared("database.Sequence('orders_seq', 10)", NEXTVAL, [SEQUENCE]),
    "sequence of single numbers": Shared(
        "database.Sequence('orders_seq')", "", ["CREATE SEQUENCE orders_seq"]
    ),
}


NEEDED = {"sequence": [needs_sequences], "function": [needs_postgresql]}


def draw(python: Any, source: str, shared: Shared, partners: int) -> list[Any]:
    numbers = DJANGO, partners, ROUNDS, EACH
    return json.loads(python(CODE, json.dumps([source, shared.partner, *numbers])))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=NEEDED.get(name.partition(",")[0].split()[0], []))
        for name in SHARED
    ],
)
def test_no_number_twice(make, python, name):
    shared = SHARED[name]
    make(*shared.statements)
    # Only Django makes the row that is missing here.
    partners = PARTNERS if shared.partner and "made" not in name else 0

    found = draw(python, shared.source, shared, partners)

    numbers = [number for _, _, drawn in found for number in drawn]
    assert len(numbers) >= (DJANGO + partners) * ROUNDS * EACH
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) == 1
    assert_overlap(found, DJANGO + partners)


def assert_overlap(found: list[Any], processes: int) -> None:
    by_worker = defaultdict(list)
    for _, worker, drawn in found:
        by_worker[worker].extend(drawn)
    assert len(by_worker) == processes
    latest_first = max(min(numbers) for numbers in by_worker.values())
    earliest_last = min(max(numbers) for numbers in by_worker.values())
    assert latest_first < earliest_last, "each one's numbers overlap with all others'"
    by_number = sorted(
        (number, worker) for _, worker, drawn in found for number in drawn
    )
    owners = [worker for _, worker in by_number]
    changes = sum(a != b for a, b in pairwise(owners))
    assert changes > 2 * processes
