"""Callers of Marten's function, and Django, on one counter of Marten's.

Marten itself needs .NET, which Debian does not have: its SQL function and its client
are here as its documentation describes them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from django_hilo.generator import next_number
from django_hilo.sources import marten
from tests.long.interop.mixing import (
    HERE,
    Peer,
    execute,
    has_duplicates,
    numbers_around_a_rollback,
    only_on_postgres,
    python_peer,
)

pytestmark = [only_on_postgres, pytest.mark.django_db(transaction=True)]

SOURCE = marten.HiLo("Order", max_lo=10)
STORED = "SELECT hi_value FROM mt_hilo WHERE entity_name = 'Order'"


def create(hi: int | None) -> None:
    if hi is not None:
        execute("INSERT INTO mt_hilo VALUES ('Order', %s)", hi)


@pytest.fixture
def peers(new_process, capacity, tmp_path: Path) -> Iterator[list[Peer]]:
    new_process()
    execute((HERE / "marten.sql").read_text())
    peers = [python_peer("marten", "draw_marten.py", tmp_path) for _ in range(3)]
    for peer in peers:
        peer.do("open", "Order", "max_lo=10")
    yield peers
    for peer in peers:
        peer.end()
    execute("DROP TABLE mt_hilo")
    execute("DROP FUNCTION mt_get_next_hi")


def test_no_number_twice(peers, mixed):
    create(0)

    both = mixed(peers, SOURCE)

    assert both.duplicates == 0


def test_another_max_lo_gives_numbers_twice(peers, mixed):
    create(0)
    source = marten.HiLo("Order", max_lo=9)

    both = mixed(peers, source, has_duplicates, each=300, seconds=0.5)

    assert both.duplicates > 0


def test_a_rollback_gives_no_number_twice(peers):
    create(0)
    numbers = numbers_around_a_rollback(peers[0], SOURCE)

    assert len(set(numbers)) == 90


@pytest.mark.parametrize("side", ["marten", "django"])
@pytest.mark.parametrize(
    ("hi", "low", "stored"), [(None, 1, 0), (0, 11, 1), (41, 421, 42)]
)
def test_worked_examples(side, hi, low, stored, peers):
    create(hi)

    def draw() -> int:
        return next_number(SOURCE) if side == "django" else peers[0].draw(1)[0]

    assert [(draw(), *execute(STORED)[0]) for _ in range(20)] == [
        *((number, stored) for number in range(low, low + 10)),
        *((number, stored + 1) for number in range(low + 10, low + 20)),
    ]
