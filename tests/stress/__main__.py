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

from tests.stress.checker import Verdict, check, check_course
from tests.stress.evidence import collect
from tests.stress.report import show
from tests.stress.supervisor import Goal, Supervisor

SABOTAGES = ("journal", "fork", "lock", "bond")
FULL = Goal(seconds=20 * 60, ids=200_000, rows=20_000, events=30)


def arguments() -> argparse.Namespace:
    """Return what the user asks for."""
    parser = argparse.ArgumentParser("python -m tests.stress", description=__doc__)
    add = parser.add_argument
    add(
        "--database",
        choices=("sqlite", "postgres", "mariadb"),
        default=os.environ.get("HILO_TEST_DATABASE", "sqlite"),
        help="default: HILO_TEST_DATABASE, or sqlite",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=30.0)
    length.add_argument("--full", action="store_true", help="200,000 ids, 20,000 rows")
    add("--seed", default=str(random.randrange(10**6)))
    add("--keep", action="store_true", help="keep the journals")
    add(
        "--sabotage",
        choices=SABOTAGES,
        help="break something: exit code 0 if the run shows it",
    )
    return parser.parse_args()


def main() -> int:
    """Run, print, and return the exit code."""
    options = arguments()
    os.environ["HILO_TEST_DATABASE"] = options.database
    # Reads what was just set.
    from tests.databases import URL_VARIABLES

    variable = URL_VARIABLES.get(options.database)
    if variable and variable not in os.environ:
        print(f"No stress on {options.database}: {variable} is not set.")
        return int(os.environ.get("HILO_TEST_REQUIRE") == "1")
    # So that the database is dropped then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix=f"hilo-stress-{options.database}-"))
    os.environ["HILO_STRESS_FOLDER"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.stress.settings"
    if options.sabotage:
        os.environ["HILO_STRESS_SABOTAGE"] = options.sabotage
    print(f"== Stress on {options.database}, seed {options.seed}", flush=True)
    failures = ["The run itself broke off."]
    try:
        failures = run(options, folder)
    finally:
        if options.keep or failures:
            print(f"Journals: {folder}; seed {options.seed}")
        else:
            shutil.rmtree(folder)
    return int(bool(failures))


def run(options: argparse.Namespace, folder: Path) -> list[str]:
    """Run all parts on a database of its own, and return what is wrong."""
    from tests.stress import latency, million
    from tests.stress.database import own_database

    with own_database() as database:
        verdict = compete(options, folder, database)
        if options.sabotage:
            show_failures(verdict.failures, "Found")
            found = verdict.has_repetitions()
            return [] if found else ["The sabotage led to no repetition."]
        failures = verdict.failures
        if options.database == "sqlite":
            print("\nLatency: does not apply, SQLite has one writer at a time")
        else:
            failures += latency.measure(database)
        failures += million.measure(database)
    show_failures(failures, "FAILED")
    return failures


def compete(options: argparse.Namespace, folder: Path, database: str) -> Verdict:
    """Let the processes compete, and judge what they left."""
    from tests.stress import sabotage
    from tests.stress.database import stored  # imports Django

    goal = FULL
    if not options.full:
        goal = Goal(options.seconds, events=max(6, int(options.seconds / 2.5)))
    course = Supervisor(folder, options.seed, database).run(goal)
    if options.sabotage == "journal":
        sabotage.repeat_number(folder)
    found = stored()
    evidence = collect(folder, found)
    verdict = check(evidence, found, servers=options.database != "sqlite")
    check_course(verdict, evidence, course)
    show(f"{options.database}: the run", verdict.figures)
    return verdict


def show_failures(failures: list[str], word: str) -> None:
    """Print each failure once."""
    print()
    for failure in dict.fromkeys(failures):
        print(f"{word}: {failure}")


if __name__ == "__main__":
    sys.exit(main())
