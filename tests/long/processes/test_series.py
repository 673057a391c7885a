"""Processes that insert rows of the same series, each in another order."""

import json
import re
import sys
from collections import defaultdict

import pytest

from tests.apps.series.models import Charge, Request, Tenant
from tests.conftest import child_environment
from tests.support.commands import run
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

TENANTS, YEARS = 50, 10
# Of bulk_create(), and how many rows of each series it has.
ROUNDS, ROWS = 4, 5
PROCESSES = 4
SAVES = 150

# They meet before they begin, and each tells when it inserted.
CODE = """
import django; django.setup()
import json, multiprocessing, random, sys, time
from django.db import OperationalError, transaction
from django_hilo.exceptions import HiLoError
from tests.apps.series.models import Charge, Request

folder, what = sys.argv[1], sys.argv[2]
processes, tenants, years, rounds, rows, saves = map(int, sys.argv[3:])
barrier = multiprocessing.get_context("fork").Barrier(processes)

class RolledBack(Exception):
    pass

def charge(tenant, date):
    return Charge(tenant_id=tenant, date=date)

def bulk(chance):
    for turn in range(rounds):
        new = range(turn * years, turn * years + years)  # series of this round
        pairs = [(t, y) for t in range(tenants) for y in new] * rows
        chance.shuffle(pairs)
        yield [charge(f"tenants/{t}-A", f"{2000 + y}-01-01") for t, y in pairs]

def one_by_one(chance):
    for _ in range(saves):
        tenant = f"tenants/{chance.randrange(3)}-A"
        yield [charge(tenant, "2026-01-01"), Request(tenant_id=tenant)]

def work(number):
    chance, span = random.Random(number), []
    barrier.wait()
    span.append(time.monotonic())
    for objects in globals()[what](chance):
        undone = what == "one_by_one" and chance.random() < 0.3
        while True:
            try:
                with transaction.atomic():
                    if what == "bulk":
                        Charge.objects.bulk_create(objects)
                    else:
                        for each in objects: each.save()
                    if undone:
                        raise RolledBack
            except RolledBack:
                break
            except OperationalError as error:
                if "locked" not in str(error):  # SQLite's queue of writers is no queue
                    raise
                tenant = objects[0].tenant_id
                objects = [charge(tenant, "2026-01-01"), Request(tenant_id=tenant)]
            else:
                break
    span.append(time.monotonic())
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump(span, file)

fork = multiprocessing.get_context("fork").Process
started = [fork(target=work, args=[number]) for number in range(processes)]
for process in started: process.start()
for process in started: process.join()
failed = [process.exitcode for process in started if process.exitcode]
sys.exit(f"{len(failed)} failed" if failed else 0)
"""


@pytest.fixture(autouse=True)
def _tenants():
    Tenant.objects.bulk_create(Tenant(id=f"tenants/{n}-A") for n in range(TENANTS))


def work(folder, what, processes):
    environment = {**child_environment(), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    figures = processes, TENANTS, YEARS, ROUNDS, ROWS, SAVES
    run(sys.executable, "-c", CODE, folder, what, *figures, env=environment)
    spans = [json.loads(path.read_text()) for path in folder.iterdir()]
    assert len(spans) == processes
    began, ended = max(each[0] for each in spans), min(each[1] for each in spans)
    assert began < ended, "they did not overlap"


def numbers_by_series():
    found = defaultdict(list)
    for tenant, number in Charge.objects.values_list("tenant", "number"):
        start, digits = re.fullmatch(r"(INV-\d+-)(\d+)", number).groups()
        found[tenant, start].append(int(digits))
    return found


@pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite has one writer")
def test_bulk_create_of_many_series_in_two_processes(tmp_path):
    """10,000 rows of 500 series a round and process: no deadlock, and no gap."""
    work(tmp_path, "bulk", 2)
    found = numbers_by_series()
    assert len(found) == TENANTS * YEARS * ROUNDS
    expected = list(range(1, 2 * ROWS + 1))
    assert all(sorted(numbers) == expected for numbers in found.values())


def test_saves_and_rollbacks_in_four_processes(tmp_path):
    work(tmp_path, "one_by_one", PROCESSES)
    for numbers in numbers_by_series().values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
    requests = list(Request.objects.values_list("tenant", "number"))
    assert len(set(requests)) == len(requests) > 100
