"""One round of statements that take nanoseconds, in a process of its own.

A new process has other addresses and hashes. It is bound to one core, collects no
garbage, and measures the time that its threads have the processor, so that others on
the machine disturb it less. Writes a file of pyperf with a value for each round.
"""

from __future__ import annotations

import gc
import os
import time
from contextlib import suppress
from timeit import Timer

import pyperf

from benchmarks.rounds import interleaved
from benchmarks.statements import STATEMENTS, WARM, WARM_IDS, Statement

SLICE = 0.02
LEAST_SLICE = 0.005
# Nothing that names a machine, or a folder of it.
KEPT = {
    "aslr",
    "cpu_affinity",
    "cpu_config",
    "cpu_count",
    "cpu_freq",
    "cpu_model_name",
    "date",
    "load_avg_1min",
    "perf_version",
    "python_gc",
    "python_implementation",
    "python_version",
    "runnable_threads",
}


def child(seed: str, rounds: str, path: str, *names: str) -> None:
    """Measure the named statements by turns; write a file of pyperf."""
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    chosen = {name: STATEMENTS[name] for name in names}
    Timer(WARM.code, WARM.setup).timeit(WARM_IDS)
    gc.collect()
    gc.disable()
    timed = {name: Timed(statement) for name, statement in chosen.items()}
    figures = interleaved(timed, int(rounds), seed=int(seed))
    known = {key: value for key, value in collected().items() if key in KEPT}
    benchmarks = [
        pyperf.Benchmark([timed[name].run(name, values, known)])
        for name, values in figures.items()
    ]
    pyperf.BenchmarkSuite(benchmarks).dump(path, replace=True)


def collected() -> dict[str, object]:
    """Return what pyperf knows of the machine and this process."""
    return pyperf.Run([1.0]).get_metadata()


class Timed:
    """Gives the seconds that one id of a statement takes."""

    def __init__(self, statement: Statement) -> None:
        self._timer = Timer(statement.code, statement.setup, time.process_time)
        self._ids = statement.ids
        loops = 1
        while (seconds := self._timer.timeit(loops)) < LEAST_SLICE:
            loops *= 4
        self._loops = max(round(loops * SLICE / seconds), 1)

    def run(
        self, name: str, values: list[float], known: dict[str, object]
    ) -> pyperf.Run:
        """Return what was measured as pyperf has it."""
        own = {"name": name, "loops": self._loops, "inner_loops": self._ids}
        return pyperf.Run(
            values, metadata={**known, **own, "unit": "second"}, collect_metadata=False
        )

    def __call__(self) -> float:
        return self._timer.timeit(self._loops) / self._loops / self._ids
