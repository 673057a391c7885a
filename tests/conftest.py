import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from operator import itemgetter
from typing import Any

import pytest
from django.db import connections, models
from django.dispatch import Signal
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from django_hilo._allocation import memory
from tests.support import warm
from tests.support.emptying import emptying
from tests.support.patience import LONGEST

# As its entry point does where the package is installed.
pytest_plugins = ["django_hilo.pytest_plugin"]

# No test fails for the machine being slow.
hypothesis_settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("unhurried")


def pytest_collection_finish() -> None:
    """Spare the garbage collector five thousand tests, which stay."""
    gc.freeze()


@pytest.fixture
def new_process() -> Callable[[], None]:
    """Stand for the start of another process: an empty memory."""
    return memory.after_fork_in_child


@pytest.fixture
def receive() -> Iterator[Callable[..., None]]:
    """Let a receiver hear a signal until the test is over."""
    with ExitStack() as stack:

        def connect(
            signal: Signal,
            receiver: Callable[..., None],
            sender: type[models.Model] | None = None,
        ) -> None:
            signal.connect(receiver, sender=sender, weak=False)
            stack.callback(signal.disconnect, receiver, sender=sender)

        yield connect


@pytest.fixture
def heard(receive: Callable[..., None]) -> Callable[..., list[Any]]:
    """Note what a signal is sent with from now on: facts of these names, or all."""

    def note(
        signal: Signal, *names: str, sender: type[models.Model] | None = None
    ) -> list[Any]:
        told: list[Any] = []

        def keep(signal: Signal, **facts: Any) -> None:
            told.append(itemgetter(*names)(facts) if names else facts)

        receive(signal, keep, sender)
        return told

    return note


@pytest.fixture
def python() -> Callable[..., str]:
    """Run Python code in a process of its own, on the databases of this test."""

    def run(code: str, *arguments: str, expect: int = 0) -> str:
        command = [sys.executable, "-W", "error", "-c", PREAMBLE + code, *arguments]
        done = warm.run(*command, expect=expect, env=child_environment())
        return done.stdout.strip()

    return run


PREAMBLE = f"""\
import django; django.setup()
from tests.apps.records.models import *
from django_hilo._operations import process_hooks
process_hooks._LONGEST_END = {LONGEST}  # a busy machine may be slow to return ranges
"""


def child_environment() -> dict[str, str]:
    names = {
        alias: str(connections[alias].settings_dict["NAME"]) for alias in connections
    }
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "HILO_TEST_NAMES": json.dumps(names),
    }


@pytest.fixture(autouse=True, scope="session")
def emptied_faster() -> Iterator[None]:
    with emptying():
        yield


@pytest.fixture(autouse=True, scope="session")
def warm_ends() -> Iterator[None]:
    """End it before a plugin wants to know which lines were run."""
    yield
    warm.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what commits: it depends on the database, and runs on each.

    Pages are followed in whole projects, which takes long: `.ci/run` does so on SQLite,
    `make nightly` on each database.
    """
    for item in items:
        mark = item.get_closest_marker("django_db")
        commits = mark and (mark.kwargs.get("transaction") or any(mark.args))
        if commits and item.path.parent.name != "docs":
            item.add_marker(pytest.mark.servers)
