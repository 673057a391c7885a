"""Pools of processes, forked and spawned, of a process that draws ids itself."""

import json
import sys

import pytest

from tests.long.hosting.journal import Answer, Journal
from tests.long.hosting.sessions import counting
from tests.support.commands import PROJECT, output_of
from tests.support.databases import CHOSEN

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = """
import json, multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
import django; django.setup()
from django.db import connections, transaction
from tests.apps.records.models import Order

def overlapped(answers):
    spans = sorted((began, ended, pid) for _, _, pid, began, ended in answers)
    return any(
        first[2] != then[2] and then[0] < first[1] for first, then in pairwise(spans)
    )

def work(_):
    began = time.monotonic_ns()
    with transaction.atomic():
        key = Order.objects.create().pk
    return key, True, os.getpid(), began, time.monotonic_ns()

if __name__ == "__main__":
    kind, method = sys.argv[1:]
    context = multiprocessing.get_context(method)
    answers = [work(0)]
    connections.close_all()
    while True:
        if kind == "executor":
            with ProcessPoolExecutor(2, context) as pool:
                answers += pool.map(work, range(101))
        else:
            with context.Pool(2) as pool:
                answers += pool.map(work, range(101), chunksize=1)
                if kind == "pool":
                    pool.close()
                    pool.join()
        answers.append(work(0))
        connections.close_all()
        if overlapped(answers):
            break
    print(json.dumps(answers))
"""


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("executor", "fork"),
        ("executor", "spawn"),
        ("pool", "fork"),
        ("pool", "spawn"),
        ("terminated-pool", "fork"),
    ],
)
def test_processes(environment, tmp_path, kind, method):
    """``with Pool()`` alone terminates its processes: what they held stays a gap."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with counting() as peak:
        printed = output_of(
            *(sys.executable, script, kind, method),
            env=environment(PYTHONPATH=str(PROJECT), DATABASE={"CONN_MAX_AGE": None}),
        )
    journal = Journal([Answer(*answer) for answer in json.loads(printed)])
    gaps = journal.check()
    if kind != "terminated-pool":
        assert gaps.at_the_end == 0, "the newest range went back"
    if CHOSEN == "postgres":
        assert peak.sessions <= 3 * 2, "one more per process than Django's own"
