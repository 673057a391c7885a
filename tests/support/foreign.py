"""Tables, sequences and functions as other systems make them, while a test runs."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from django_hilo.counters.ranges import Wanted
from django_hilo.sources import ForeignCounter
from tests.support.databases import CHOSEN
from tests.support.sql import execute

# Types that all three databases know.
UNIQUE_KEY = "CREATE TABLE hibernate_unique_key (next_hi int)"
ONE_ROW = "CREATE TABLE orders_seq (next_val bigint)"
SEGMENTS = (
    "CREATE TABLE hibernate_sequences (sequence_name varchar(255) NOT NULL, "
    "next_val bigint, PRIMARY KEY (sequence_name))"
)
MULTIPLE = (
    "CREATE TABLE hibernate_sequences (sequence_name varchar(255), "
    "sequence_next_hi_value int)"
)
DBAL = (
    "CREATE TABLE sequences (sequence_name varchar(255) NOT NULL, sequence_value int "
    "DEFAULT 1 NOT NULL, sequence_increment_by int DEFAULT 1 NOT NULL, "
    "PRIMARY KEY (sequence_name))"
)
DJANGO_SEQUENCES = (
    "CREATE TABLE sequences_sequence (name varchar(100) NOT NULL PRIMARY KEY, "
    "last bigint NOT NULL CHECK (last >= 0))"
)
LEAF = (
    "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint "
    "DEFAULT 1 NOT NULL, step int NOT NULL)"
)
TINY_ID = (
    "CREATE TABLE tiny_id_info (id bigint NOT NULL PRIMARY KEY, biz_type varchar(63) "
    "NOT NULL UNIQUE, max_id bigint NOT NULL, version bigint NOT NULL)"
)
NHILO = "CREATE TABLE NHILO (ENTITY varchar(100) NOT NULL PRIMARY KEY, NEXT_HI bigint)"
MARTEN = (Path(__file__).parents[1] / "long/interop" / "marten.sql").read_text()
DROPPED_LATER = re.compile(
    r'CREATE (TABLE|SEQUENCE|FUNCTION|SCHEMA)\s+((?:[\w.]|"[^"]+")+)'
)

Make = Callable[..., None]

needs_sequences = pytest.mark.skipif(
    CHOSEN in ("sqlite", "mysql"), reason="it has no sequences"
)
needs_postgresql = pytest.mark.skipif(
    CHOSEN != "postgres", reason="only PostgreSQL has it"
)
needs_server = pytest.mark.skipif(
    CHOSEN == "sqlite", reason="SQLite has no rows to lock and no second writer"
)


@pytest.fixture
def make() -> Iterator[Make]:
    """Run statements; what they create is dropped after the test."""
    made: list[tuple[str, str]] = []

    def run(*statements: str) -> None:
        for statement in statements:
            made.extend(DROPPED_LATER.findall(statement))
            execute(statement)

    yield run
    for kind, name in reversed(made):
        execute(f"DROP {kind} IF EXISTS {name}")


@contextmanager
def partner() -> Iterator[str]:
    """Give the alias of a connection of its own to the same database."""
    other = connection.copy()
    other.inc_thread_sharing()
    connections["partner"] = other
    try:
        yield "partner"
    finally:
        other.close()
        del connections["partner"]


def stored(place: str) -> Any:
    """Return the only value of ``column FROM table WHERE ...``."""
    [(value,)] = execute(f"SELECT {place}")
    return value


def next_value(sequence: str) -> int:
    """Return what the sequence gives to the next one who asks; it is drawn."""
    if connection.vendor == "postgresql":
        [(value,)] = execute(f"SELECT nextval('{sequence}')")
    else:
        [(value,)] = execute(f"SELECT NEXTVAL({sequence})")
    return int(value)


def drawn(source: ForeignCounter, size: int = 32, **given: Any) -> list[int]:
    """Return the ids of one reservation."""
    ranges = [each.range for each in source.reserve("default", Wanted(size, **given))]
    return [id for each in ranges for id in range(each.low, each.high + 1)]
