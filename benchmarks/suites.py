"""The processor's time of a test suite, beside `BigAutoField`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from unittest import TestResult, defaultTestLoader

from django.test import TestCase, override_settings
from django.test.utils import setup_test_environment, teardown_test_environment

from benchmarks.bench import Bench
from benchmarks.databases import TITLES
from benchmarks.graph import AUTO, HILO, INTEGER
from benchmarks.results import Finding, compared
from benchmarks.rounds import PROCESSOR, interleaved, seconds_of
from benchmarks.shop.models import AUTOS, INTEGERS, TEXTS, Ordered

TESTS = 100
KEYS = {HILO: TEXTS, INTEGER: INTEGERS, AUTO: AUTOS}
PAIRS = {"suite_text": (HILO, AUTO), "suite_integer": (INTEGER, AUTO)}


def measure(bench: Bench) -> Iterator[Finding]:
    """Compare test cases on each database."""
    setup_test_environment()
    try:
        # So that counters that were found before are found anew, as in a test run.
        with override_settings(HILO={}):
            for alias in bench.aliases:
                turns: dict[str, Callable[[], float]] = {
                    name: partial(_turn, models, alias) for name, models in KEYS.items()
                }
                figures = interleaved(turns, bench.scaled(45, 12), seed=bench.seed)
                yield from compared(figures, PAIRS, TITLES[alias], "ms")
    finally:
        teardown_test_environment()


def _turn(models: list[type[Ordered]], alias: str) -> float:
    """Run tests that each create an object of each model."""

    def create(self: TestCase) -> None:
        for model in models:
            model._default_manager.using(alias).create(name="chai")

    methods = {f"test_{number}": create for number in range(TESTS)}
    case = type("Case", (TestCase,), {"databases": {alias}, **methods})
    suite, result = defaultTestLoader.loadTestsFromTestCase(case), TestResult()
    taken = seconds_of(partial(suite.run, result), PROCESSOR)
    for _, error in (*result.errors, *result.failures):
        raise RuntimeError(error)
    return taken
