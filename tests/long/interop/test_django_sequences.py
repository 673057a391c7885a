"""django-sequences and our source of it, in processes beside each other."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_hilo.generator import next_number
from django_hilo.sources import django_sequences, nhibernate
from tests.long.interop.mixing import Peer, django_peer, has_duplicates
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = [
    pytest.mark.skipif(
        CHOSEN == "sqlite", reason="there a number that was rolled back may come again"
    ),
    pytest.mark.django_db(transaction=True),
]

SOURCE = django_sequences.Sequence("orders")
STORED = "SELECT last FROM sequences_sequence WHERE name = 'orders'"


@pytest.fixture
def peers(new_process, capacity, tmp_path: Path) -> Iterator[list[Peer]]:
    """Three that call get_next_value(), with the table as its migrations make it."""
    new_process()
    peers = [django_peer(tmp_path, 1, "sequences") for _ in range(3)]
    peers[0].do("migrate", "sequences")
    for peer in peers:
        peer.do("open", json.dumps(["sequences.Sequence", ["orders"], {}]))
    yield peers
    peers[0].do("migrate", "sequences", "zero")
    for peer in peers:
        peer.end()


def test_no_number_twice(peers, mixed):
    both = mixed(peers, SOURCE)

    assert both.duplicates == 0


def test_a_wrong_rule_gives_numbers_twice(peers, mixed):
    """So the test above can fail."""
    source = nhibernate.HiLo(
        max_lo=0, table="sequences_sequence", column="last", where="name = 'orders'"
    )

    both = mixed(peers, source, has_duplicates, each=300, seconds=0.5)

    assert both.duplicates > 0


@pytest.mark.parametrize("first", ["sequences", "django"])
def test_worked_examples(first, peers):
    draw = {
        "sequences": lambda: peers[0].draw(1)[0],
        "django": lambda: next_number(SOURCE),
    }
    sides = [first, *(side for side in draw if side != first)] * 2

    assert [(draw[side](), *execute(STORED)[0]) for side in sides] == [
        (number, number) for number in range(1, 5)
    ]
