"""The arguments, the parts of a run, and the summary."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.stress.supervisor import Goal, Supervisor

SABOTAGES = ("journal", "fork", "lock", "bond")
FULL = Goal(seconds=20 * 60, ids=200_000, rows=20_000, events=30)


def arguments() -> argparse.Namespace:
    """Return what the user asks for."""
    parser = argparse.ArgumentParser("python -m tests.stress", description=__doc__)
    add = parser.add_argument
    add("--database", choices=("sqlite", "postgres", "mariadb"), required=True)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=30.0)
    length.add_argument("--full", action="store_true", help="200,000 ids, 20,000 rows")
    add("--seed", default=str(random.randrange(10**6)))
    add("--keep", action="store_true", help="keep the journals")
    add(
        "--sabotage",
        choices=SABOTAGES,
        help="break something: succeeds if the run shows it",
    )
    return parser.parse_args()


def main() -> int:
    """Run, print, and return the exit code."""
    options = arguments()
    # So that the database is dropped then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix=f"hilo-stress-{options.database}-"))
    os.environ["HILO_TEST_DATABASE"] = options.database
    os.environ["HILO_STRESS_FOLDER"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.stress.settings"
    if options.sabotage:
        os.environ["HILO_STRESS_SABOTAGE"] = options.sabotage
    print(f"== Stress on {options.database}, seed {options.seed}", flush=True)
    failures = ["The run itself broke off."]
    try:
        failures = run(options, folder)
    finally:
        found = bool(failures)
        if options.sabotage:
            print("The sabotage was", "found" if found else "NOT FOUND")
        if options.keep or found != bool(options.sabotage):
            print(f"Journals: {folder}; seed {options.seed}")
        else:
            shutil.rmtree(folder)
    return int(found != bool(options.sabotage))


def run(options: argparse.Namespace, folder: Path) -> list[str]:
    """Run all parts on a database of its own, and return what is wrong."""
    from tests.stress import latency, million, sabotage
    from tests.stress.checker import check, check_course
    from tests.stress.database import own_database, stored
    from tests.stress.evidence import collect
    from tests.stress.report import show

    goal = FULL
    if not options.full:
        goal = Goal(options.seconds, events=max(6, int(options.seconds / 2.5)))
    servers = options.database != "sqlite"
    with own_database() as database:
        course = Supervisor(folder, options.seed, database).run(goal)
        if options.sabotage == "journal":
            sabotage.repeat_number(folder)
        found = stored()
        evidence = collect(folder, found)
        verdict = check(evidence, found, servers=servers)
        check_course(verdict, evidence, course)
        show(f"{options.database}: the run", verdict.figures)
        failures = verdict.failures
        if not options.sabotage:
            if servers:
                failures += latency.measure(database)
            else:
                print("\nLatency: does not apply, SQLite has one writer at a time")
            failures += million.measure(database)
    print()
    for failure in failures:
        print("FAILED:", failure)
    return failures


if __name__ == "__main__":
    sys.exit(main())
