"""CPU time of a test suite and of its fixtures, with each kind of key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import TestResult, defaultTestLoader

from django.core.management import call_command
from django.core.management.commands.loaddata import Command
from django.db import connections
from django.test import TestCase, override_settings
from django.test.utils import setup_test_environment, teardown_test_environment

from benchmarks.bench import Bench
from benchmarks.databases import TITLES, empty
from benchmarks.keys import (
    AUTO,
    HILO,
    INTEGER,
    MODELS,
    SEQUENCES,
    UUID7,
    beside_each,
    creator,
)
from benchmarks.processes import FORK
from benchmarks.results import Finding
from benchmarks.rounds import PROCESSOR, interleaved, seconds_of
from benchmarks.shop.models import AUTOS, INTEGERS, NUMBERED, TEXTS, UUIDS, Ordered

TESTS = 100
KEYS = {HILO: TEXTS, INTEGER: INTEGERS, AUTO: AUTOS, UUID7: UUIDS, SEQUENCES: NUMBERED}
LOADED = 5_000


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare tests and fixtures on each database."""
    yield from suites(bench)
    for alias in bench.aliases:
        yield from fixtures(bench, alias)
        empty(alias, *(order for order, _ in MODELS.values()))


def suites(bench: Bench) -> Iterator[Finding]:
    """Compare test cases on each database."""
    setup_test_environment()
    try:
        # So that counters that were found before are found anew, as in a test run.
        with override_settings(HILO={}):
            for alias in bench.aliases:
                turns: dict[str, Callable[[], float]] = {
                    name: partial(_turn, models, alias) for name, models in KEYS.items()
                }
                rounds, seconds = bench.scaled(30, 5), bench.seconds(30)
                figures = interleaved(turns, rounds, seconds, bench.seed)
                yield from beside_each("suite", figures, TITLES[alias], "ms")
    finally:
        teardown_test_environment()


def _turn(models: list[type[Ordered]], alias: str) -> float:
    """Run tests that each create an object of each model."""

    def create(self: TestCase) -> None:
        for model in models:
            creator(model, alias)(name="chai")

    methods = {f"test_{number}": create for number in range(TESTS)}
    case = type("Case", (TestCase,), {"databases": {alias}, **methods})
    suite, result = defaultTestLoader.loadTestsFromTestCase(case), TestResult()
    taken = seconds_of(partial(suite.run, result), PROCESSOR)
    for _, error in (*result.errors, *result.failures):
        raise RuntimeError(error)
    return taken


def fixtures(bench: Bench, alias: str) -> Iterator[Finding]:
    """Compare `loaddata`, each time in a new process."""
    count = bench.scaled(LOADED, LOADED // 5)
    with TemporaryDirectory() as folder:
        turns: dict[str, Callable[[], float]] = {}
        for name, (model, _) in MODELS.items():
            path = Path(folder) / f"{name}.json"
            path.write_text(json.dumps(list(_rows(model, count)), default=str))
            turns[name] = partial(_load, alias, model, path)
        rounds, seconds = bench.scaled(11, 3), bench.seconds(30)
        figures = interleaved(turns, rounds, seconds, bench.seed)
    yield from beside_each("fixture", figures, TITLES[alias], "s")


def _rows(model: Any, count: int) -> Iterator[dict[str, Any]]:
    for number in range(1, count + 1):
        id: Any = number
        if model is MODELS[HILO][0]:
            id = f"orders/{number}-A"
        elif model is MODELS[UUID7][0]:
            id = model._meta.pk.get_default()
        values = {"name": "chai", "quantity": number}
        yield {"model": model._meta.label_lower, "pk": id, "fields": values}


def _load(alias: str, model: Any, path: Path) -> float:
    empty(alias, model)
    connections.close_all()
    with ProcessPoolExecutor(1, FORK) as process:
        return process.submit(_loaded, alias, path).result()


def _loaded(alias: str, path: Path) -> float:
    load = partial(call_command, Command(), path, database=alias, verbosity=0)
    return seconds_of(load, PROCESSOR)
