"""How many workers one counter serves, simulated: docs/how-to/large-fleets.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.markdown import figure, row
from benchmarks.results import Curve, Finding
from benchmarks.simulation import UNDER_LOCK, Fleet, Outcome

PLOT = Path(__file__).resolve().parent.parent / "docs/how-to/large-fleets.svg"
WORKERS = (100, 300, 1000, 3000, 10_000)
IN_TABLE = (100, 1000, 3000, 10_000)
CAPACITIES = (32, 512, 4096)
MINUTE, HOUR = 60.0, 3600.0
# Of a deployment that starts workers one after the other.
STARTED_IN_A_SECOND = 50
HEAD = (
    "workers",
    "`CAPACITY`",
    "timeouts",
    "the last after",
    "reservations per second, first minute",
    "last 15 minutes",
    "unused at the end",
    f"longest wait, {STARTED_IN_A_SECOND} started per second",
)


def measure(bench: Bench) -> Iterator[Finding]:
    """Simulate fleets; renew the plot of the page, unless it is quick."""
    most = bench.scaled(10_000, 1000)
    counts = [count for count in WORKERS if count <= most]
    limit = [(float(count), 1 / UNDER_LOCK) for count in counts]
    rates = {"limit of one row": limit}
    lines = [row(HEAD), f"|{'---|' * len(HEAD)}"]
    for count in counts:
        for capacity in CAPACITIES:
            found = Fleet(count, capacity).run(HOUR)
            series = rates.setdefault(f"CAPACITY {capacity}", [])
            series.append((count, found.rate(HOUR - 15 * MINUTE, HOUR)))
            if count in IN_TABLE:
                lines.append(row(cells(count, capacity, found)))
    curve = Curve(
        "large-fleets",
        "Reservations of one counter, an hour after the start",
        "workers",
        "reservations/s",
        rates,
    )
    print("", *lines, sep="\n")
    if not bench.is_quick:
        from benchmarks import plots

        plots.curve(curve, PLOT)
    yield curve


def cells(count: int, capacity: int, found: Outcome) -> Iterator[str]:
    """Yield a line of the table."""
    slowly = Fleet(count, capacity, start=count / STARTED_IN_A_SECOND).run(HOUR / 4)
    yield from (f"{count:,}", f"{capacity:,}", f"{found.timeouts:,}")
    yield f"{figure(round(found.last_timeout))} s"
    yield figure(found.rate(0, MINUTE))
    yield figure(found.rate(HOUR - 15 * MINUTE, HOUR))
    yield f"{found.unused:.1%}"
    yield "timeouts" if slowly.timeouts else f"{slowly.longest:.2f} s"
