"""A server that has few connections left, besides those of the programs themselves."""

import sys

import pytest

from tests.conftest import PREAMBLE
from tests.support.commands import output_of, run

CONNECTIONS = "40"
ROWS = 60

# Each process keeps its connection, as with CONN_MAX_AGE, and needs a second one for a
# range: the server has not enough for all of them at once.
CODE = """
import django; django.setup()
import multiprocessing, random, sys, time
from django.conf import settings
from django.db import connections, transaction
from tests.apps.records.models import Order

processes, rows = int(sys.argv[1]), int(sys.argv[2])
settings.HILO = {**settings.HILO, "CAPACITY": 2, "MAX_CAPACITY": 2, "RETRY_FOR": 15}
connections["default"].settings_dict["CONN_MAX_AGE"] = None
barrier = multiprocessing.get_context("fork").Barrier(processes)

def work():
    Order.objects.count()
    barrier.wait()
    for _ in range(rows):
        with transaction.atomic():
            Order.objects.create()
        time.sleep(random.uniform(0, 0.8))  # until the next request

fork = multiprocessing.get_context("fork").Process
started = [fork(target=work) for _ in range(processes)]
for process in started: process.start()
for process in started: process.join()
sys.exit(sum(process.exitcode != 0 for process in started))
"""


@pytest.mark.parametrize("processes", [25, 34])
def test_no_process_starves_for_a_connection(environment, processes):
    arguments = (str(processes), str(ROWS))
    run(sys.executable, "-W", "error", "-c", CODE, *arguments, env=environment)
    count = [sys.executable, "-c", PREAMBLE + "print(Order.objects.count())"]
    assert int(output_of(*count, env=environment)) == processes * ROWS
