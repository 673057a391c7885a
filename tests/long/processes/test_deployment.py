"""200 processes start at once, as after a deployment, and want ids of one counter."""

import json
import sys
from itertools import chain
from typing import Any

from tests.conftest import PREAMBLE
from tests.support.commands import output_of, run
from tests.support.databases import CHOSEN

PROCESSES = 200
# Of each process; its ranges have 32 and 64 numbers.
ROWS = 36
# Each process has two connections.
CONNECTIONS = "450"

# They are forked, as gunicorn's --preload does it, meet, and begin together. Of each,
# its ids, and how long it waited for each of them.
CODE = """
import django; django.setup()
import json, multiprocessing, random, sys, time
from django.db import transaction
from tests.apps.records.models import Order

folder, processes, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
barrier = multiprocessing.get_context("fork").Barrier(processes)

def work(number):
    given, waits = [], []
    Order.objects.count()  # it has served a request that needed no id
    barrier.wait()
    for _ in range(rows):
        with transaction.atomic():
            began, order = time.monotonic(), Order()
            Order.objects.assign_ids([order])
            waits.append(time.monotonic() - began)
            order.save()
        given.append(order.pk)
        time.sleep(random.uniform(0, 2))  # until the next request
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump([given, waits], file)

fork = multiprocessing.get_context("fork").Process
started = [fork(target=work, args=[number]) for number in range(processes)]
for process in started: process.start()
for process in started: process.join()
failed = [process.exitcode for process in started if process.exitcode]
sys.exit(f"{len(failed)} failed" if failed else 0)
"""


def test_each_gets_its_ids_and_no_error(environment, tmp_path, capsys):
    ids: list[Any] = []
    for deployment in "the first", "the next":
        folder = tmp_path / deployment
        folder.mkdir()
        arguments = (folder, PROCESSES, ROWS)
        run(sys.executable, "-W", "error", "-c", CODE, *arguments, env=environment)
        told = [json.loads(path.read_text()) for path in folder.iterdir()]
        given, waits = (list(chain(*part)) for part in zip(*told, strict=True))
        ids += given
        first = sorted(waits[::ROWS])
        with capsys.disabled():
            print(
                f"\n{CHOSEN}, {deployment} deployment: {len(given)} ids, longest wait "
                f"for one {max(waits):.2f} s, for the first one of a process "
                f"{first[-1]:.2f} s, its median {first[PROCESSES // 2]:.2f} s"
            )
        assert len(given) == PROCESSES * ROWS
    assert len(set(ids)) == len(ids)
    count = [sys.executable, "-c", PREAMBLE + "print(Order.objects.count())"]
    assert int(output_of(*count, env=environment)) == len(ids)
