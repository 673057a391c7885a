"""What importing django_hilo and its `ready()` add to the start of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.bench import Bench
from benchmarks.results import Finding, Result
from benchmarks.rounds import Spread, interleaved, spreads

DJANGO = ["django.contrib.contenttypes", "django.contrib.auth"]
CODE = """
import sys, time
from django.conf import settings
settings.configure(
    INSTALLED_APPS=sys.argv[1:],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
import django
django.setup()
print(time.process_time())
"""
ROUNDS = 15
# Processes in a turn.
AT_ONCE = 5


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare the processor's time of processes with and without the app."""
    # An installed package is compiled, whatever this process may write.
    with TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        turns = {
            "Django": partial(_turn, DJANGO, environment),
            "with django_hilo": partial(_turn, [*DJANGO, "django_hilo"], environment),
        }
        figures = interleaved(turns, bench.scaled(ROUNDS, 7), seed=bench.seed)
    # By rank: a process that was disturbed says nothing of the one beside it.
    pairs = zip(
        sorted(figures["with django_hilo"]), sorted(figures["Django"]), strict=True
    )
    more = Spread.of([ours - others for ours, others in pairs])
    yield Result("startup", "a new process", more, spreads(figures), "ms")


def _turn(apps: list[str], environment: dict[str, str]) -> float:
    """Return the milliseconds of the best of some processes: others only add to it."""
    command = [sys.executable, "-c", CODE, *apps]
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    starts = [run(command, env=environment).stdout for _ in range(AT_ONCE)]
    return min(map(float, starts)) * 1000
