"""Hibernate 3.6.10 of Debian 12 in JVMs, and Django, on one counter of Hibernate's."""

from collections.abc import Iterator

import pytest

from django_hilo.generator import next_number
from django_hilo.sources import hibernate
from tests.long.interop.hibernate_counters import OLD, SEQUENCE, SHARED
from tests.long.interop.jvm import HIBERNATE, jvms
from tests.long.interop.mixing import (
    Peer,
    has_duplicates,
    mix,
    numbers_around_a_rollback,
    only_on_postgres,
)
from tests.support.sql import execute

pytestmark = [only_on_postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def peers(django_db_setup, tmp_path_factory) -> Iterator[list[Peer]]:
    """Three, for all tests: each opens a new session factory when it is asked to."""
    with jvms(HIBERNATE, tmp_path_factory.mktemp("hibernate"), 3) as peers:
        yield peers


@pytest.mark.parametrize("name", SHARED)
def test_no_number_twice(name, opened, mixed):
    case = SHARED[name]

    both = mixed(opened(case), case.source)

    assert both.duplicates == 0


WRONG = {
    "another max_lo": ("hilo", hibernate.HiLo(max_lo=8)),
    "pooled of Hibernate 5": (
        "pooled, sequence",
        hibernate.Pooled(10, sequence="peer_counter"),
    ),
    "pooled-lo for pooled": (
        "pooled, segment",
        hibernate.PooledLo(10, table="hibernate_sequences", segment="default", **OLD),
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_rule_gives_numbers_twice(mistake, opened, mixed):
    """So the test above can fail."""
    name, source = WRONG[mistake]
    peers = opened(SHARED[name])

    both = mixed(peers, source, has_duplicates, each=300, seconds=0.5)

    assert both.duplicates > 0


def test_its_enhanced_hilo_gives_numbers_twice_by_itself(opened):
    """HHH-3628, until 5.2.9: nobody can share that, not even two JVMs."""
    case = SHARED["pooled, sequence"]._replace(generator=f"{SEQUENCE} optimizer=hilo")

    alone = mix(opened(case), has_duplicates, each=300, seconds=0.5)
    assert alone.duplicates > 0


@pytest.mark.parametrize("name", ["hilo", "seqhilo", "pooled, segment"])
def test_a_rollback_gives_no_number_twice(name, opened):
    case = SHARED[name]
    (peer,) = opened(case, count=1)

    numbers = numbers_around_a_rollback(peer, case.source)

    assert len(set(numbers)) == 90


# What a process that begins at a stored number gives, and what is stored after each.
EXAMPLES: list[tuple[str, int, list[tuple[range, int]]]] = [
    ("hilo", 0, [(range(1, 10), 1), (range(10, 20), 2)]),
    ("hilo", 1, [(range(10, 20), 2), (range(20, 30), 3)]),
    ("hilo", 7, [(range(70, 80), 8), (range(80, 90), 9)]),
    ("multiple", 0, [(range(1, 10), 1), (range(10, 20), 2)]),
    ("pooled-lo, segment", 1, [(range(1, 11), 11), (range(11, 21), 21)]),
    ("pooled-lo, segment", 11, [(range(11, 21), 21), (range(21, 31), 31)]),
    ("pooled-lo, segment", 101, [(range(101, 111), 111), (range(111, 121), 121)]),
    ("pooled-lo, one row", 1, [(range(1, 11), 11), (range(11, 21), 21)]),
    ("pooled, segment", 1, [(range(1, 11), 21), (range(11, 21), 31)]),
    ("pooled, segment", 11, [(range(1, 11), 21), (range(11, 21), 31)]),
    ("pooled, segment", 101, [(range(91, 101), 111), (range(101, 111), 121)]),
    ("pooled, one row", 1, [(range(1, 11), 21), (range(11, 21), 31)]),
    # Of a sequence, what nextval gave last.
    ("seqhilo", 1, [(range(10, 20), 1), (range(20, 30), 2)]),
    ("pooled-lo, sequence", 1, [(range(1, 11), 1), (range(11, 21), 11)]),
    ("pooled, sequence", 11, [(range(1, 11), 11), (range(11, 21), 21)]),
    ("pooled, sequence", 101, [(range(91, 101), 101), (range(101, 111), 111)]),
]


@pytest.mark.parametrize("side", ["hibernate", "django"])
@pytest.mark.parametrize(("name", "first", "blocks"), EXAMPLES)
def test_worked_examples(name, first, blocks, side, opened, capacity):
    case = SHARED[name]
    if name.startswith("pooled-lo"):
        capacity(10)  # on a table, a range may have any size
    expected = [(number, after) for block, after in blocks for number in block]
    (peer,) = opened(case, first, count=1)

    def draw() -> int:
        return next_number(case.source) if side == "django" else peer.draw(1)[0]

    assert [(draw(), *execute(case.counter.stored)[0]) for _ in expected] == expected
