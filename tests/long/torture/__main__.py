"""The arguments, the parts of a run, and the summary."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.long.torture.plan import faults_of, plan_of
from tests.long.torture.sabotage import KINDS as SABOTAGES
from tests.long.torture.sabotage import VARIABLE

if TYPE_CHECKING:
    from tests.support.own_servers import OwnServer

FULL_SECONDS = 20 * 60
# With three databases 10,000,000 in all.
FULL_IDS = 3_400_000
# From when on all that a run is about must have happened in it.
THOROUGH_FROM = 50.0
_ENDS = (signal.SIGTERM, signal.SIGHUP)
# What ending and judging take of the seconds.
TAIL = 12.0
# With less, the start alone would take up what TAIL leaves.
LEAST_SECONDS = {"sqlite": 15.0, "postgres": 20.0, "mariadb": 20.0, "mysql": 20.0}


def arguments() -> argparse.Namespace:
    """Return what the user asks for."""
    parser = argparse.ArgumentParser(
        "python -m tests.long.torture", description=__doc__
    )
    add = parser.add_argument
    add(
        "--database",
        choices=tuple(LEAST_SECONDS),
        default=os.environ.get("HILO_TEST_DATABASE", "sqlite"),
        help="default: HILO_TEST_DATABASE, or sqlite",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds", type=float, default=60.0, help="with start and end"
    )
    length.add_argument("--full", action="store_true", help=f"{FULL_IDS:,} ids")
    add("--seed", default=str(random.randrange(10**6)))
    add("--keep", action="store_true", help="keep the journals")
    add(
        "--plan",
        nargs="?",
        const="1",
        metavar="SEAT",
        help="print the first faults and what the process of a seat does",
    )
    add("--replay", type=int, metavar="SEAT", help="run one process, without faults")
    add(
        "--sabotage",
        choices=SABOTAGES,
        help="break something: exit code 0 if the run shows it",
    )
    options = parser.parse_args()
    least = LEAST_SECONDS[options.database]
    # Also where they are no number.
    if not options.seconds >= least:
        parser.error(
            f"--seconds {options.seconds:g}: a run on {options.database} needs at "
            f"least {least:g}."
        )
    return options


def main() -> int:
    """Run, print, and return the exit code."""
    options = arguments()
    if options.plan:
        print_plan(options.seed, int(options.plan))
        return 0
    os.environ["HILO_TEST_DATABASE"] = options.database
    # Reads what was just set.
    from tests.support.own_server import missing_programs
    from tests.support.own_servers import KINDS

    kind = KINDS.get(options.database)
    missing = missing_programs("setpriv", *(kind.programs if kind else ()))
    if missing:
        print(f"No torture on {options.database}: {', '.join(missing)} is not here.")
        return int(os.environ.get("HILO_TEST_REQUIRE") == "1")
    for number in _ENDS:
        signal.signal(number, end_by_signal)
    folder = Path(tempfile.mkdtemp(prefix=f"hilo-torture-{options.database}-"))
    folder.chmod(0o755)  # the server's system user must get through
    print(f"== Torture on {options.database}, seed {options.seed}", flush=True)
    failures = ["The run itself broke off."]
    server = kind(folder / "server") if kind else None
    try:
        failures = run(options, folder, server)
    finally:
        if server is not None:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)
        if options.keep or failures:
            print(f"Journals: {folder}; seed {options.seed}")
        else:
            shutil.rmtree(folder)
    return int(bool(failures))


def end_by_signal(*_: object) -> None:
    """End as after an error, so that servers are stopped; only once."""
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


def run(
    options: argparse.Namespace, folder: Path, server: OwnServer | None
) -> list[str]:
    """Run on a database of its own, and return what is wrong."""
    started = time.monotonic()
    os.environ["HILO_TORTURE_FOLDER"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.long.torture.settings"
    if server is not None:
        server.create()
        # Read by the settings.
        from tests.support.databases import URL_VARIABLES

        os.environ[URL_VARIABLES[options.database]] = server.url
    if options.sabotage:
        os.environ[VARIABLE] = options.sabotage
    from tests.long.torture.database import own_database

    until = started + seconds_of(options) - TAIL
    with own_database() as database:
        make_user()
        make_person()
        failures = torture(options, folder, server, database, until)
    print(f"\n{time.monotonic() - started:.0f} s in all")
    if not options.sabotage:
        if not failures:
            print(kept(options))
        return failures
    if failures:
        return []
    print("FAILED: The sabotage was not seen.")
    return ["The sabotage was not seen."]


def seconds_of(options: argparse.Namespace) -> float:
    """Return how long the run is to be."""
    return FULL_SECONDS if options.full else float(options.seconds)


def is_spared(options: argparse.Namespace) -> bool:
    """Whether the run is one of which less is asked."""
    return bool(options.sabotage) or options.replay is not None


def is_thorough(options: argparse.Namespace) -> bool:
    """Whether everything that a run is about must have happened in it."""
    return seconds_of(options) >= THOROUGH_FROM and not is_spared(options)


def kept(options: argparse.Namespace) -> str:
    """Return the last line of a run in which nothing was wrong."""
    if is_thorough(options):
        return "Every promise was kept."
    if options.replay is not None:
        return "Every promise was kept, by one process and without faults."
    return (
        f"Every promise was kept, in a short run: not all need have happened in "
        f"{seconds_of(options):g} s, as in {THOROUGH_FROM:g} and more."
    )


def torture(
    options: argparse.Namespace,
    folder: Path,
    server: OwnServer | None,
    database: str,
    until: float,
) -> list[str]:
    """Let it all happen, and judge what it left."""
    from tests.long.torture.checker import check
    from tests.long.torture.course import check_course
    from tests.long.torture.evidence import collect
    from tests.long.torture.stored import stored
    from tests.long.torture.supervisor import LEAST_STARTED, Supervisor

    supervisor = Supervisor(folder, options.seed, database, server)
    least = LEAST_STARTED if options.sabotage else 0
    course = supervisor.run(until, only=options.replay, least=least)
    evidence, found = collect(folder), stored()
    verdict = check(evidence, found, servers=server is not None)
    check_course(
        *(verdict, evidence, found, course),
        servers=server is not None,
        alive=not is_spared(options),
        thorough=is_thorough(options),
    )
    given = verdict.tables["Numbers"]["given"]
    if options.full and given < FULL_IDS:
        verdict.failures.append(f"Only {given:,} numbers were given.")
    show(verdict.tables, verdict.failures, options.sabotage)
    return verdict.failures


def show(
    tables: dict[str, dict[str, object]], failures: list[str], sabotage: str | None
) -> None:
    """Print the tables, and each failure once."""
    for title, figures in tables.items():
        if figures:
            print(f"\n{title}")
        width = max(map(len, figures), default=0)
        for name, figure in figures.items():
            text = f"{figure:,}" if isinstance(figure, int) else str(figure)
            print(f"  {name:<{width}}  {text:>12}", flush=True)
    print()
    word = "Found" if sabotage else "FAILED"
    for failure in dict.fromkeys(failures):
        print(f"{word}: {failure}")


def make_user() -> None:
    """Make the one who administers, and asks over REST."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from tests.long.torture.settings import PASSWORD, USER

    get_user_model().objects.create_superuser(USER, password=PASSWORD)
    connection.close()


def make_person() -> None:
    """Make the one who has the email that others ask for too."""
    from django.db import connection

    from tests.long.torture.operations import TAKEN
    from tests.support.sql import execute

    execute(f"INSERT INTO records_person (id, email) VALUES ('{TAKEN}', '{TAKEN}')")
    connection.close()


def print_plan(seed: str, seat: int) -> None:
    """Print what the seed decides."""
    print("Faults, each after a pause:")
    for fault in islice(faults_of(seed), 20):
        print(f"  {fault}")
    print("\n".join(plan_of(seed, seat).lines()))


if __name__ == "__main__":
    sys.exit(main())
