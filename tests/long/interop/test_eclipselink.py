"""EclipseLink 2.7 of Debian 12 in JVMs, and Django, on one counter of EclipseLink's."""

from collections.abc import Iterator

import pytest

from django_hilo.generator import next_number
from django_hilo.sources import ForeignCounter, Row, Sequence, database, formulas
from tests.long.interop.jvm import ECLIPSELINK, Shared, jvms, row, sequence
from tests.long.interop.mixing import Peer, has_duplicates, numbers_around_a_rollback
from tests.support.databases import CHOSEN
from tests.support.sql import execute

pytestmark = [
    pytest.mark.skipif(
        CHOSEN not in ("postgres", "mariadb"), reason="there is no JDBC driver for it"
    ),
    pytest.mark.django_db(transaction=True),
]

# The sources are those of docs/how-to/sources.md; blocks of 50, as JPA's default.
IDS = Row("ids", "value", key={"name": "orders"})
AT_NEXTVAL = "eclipselink.sequencing.start-sequence-at-nextval=true"
SHARED = {
    "table": Shared(
        "ByTable",
        ForeignCounter(IDS, formulas.LastUsed(1)),
        row("ids", "value"),
        first=0,
    )
}
if CHOSEN == "postgres":  # EclipseLink knows no sequences of MariaDB
    SHARED |= {
        "sequence": Shared(
            "BySequence",
            ForeignCounter(Sequence("orders_seq"), formulas.Pooled(50)),
            sequence("orders_seq"),
            first=50,
        ),
        "sequence, start at nextval": Shared(
            f"BySequence {AT_NEXTVAL}",
            database.Sequence("orders_seq", increment=50),
            sequence("orders_seq"),
            first=1,
        ),
    }
WRONG = {
    "table": ForeignCounter(IDS, formulas.PooledLo(1)),
    "sequence": database.Sequence("orders_seq", increment=50),
    "sequence, start at nextval": ForeignCounter(
        Sequence("orders_seq"), formulas.Pooled(50)
    ),
}


@pytest.fixture(scope="module")
def peers(django_db_setup, tmp_path_factory) -> Iterator[list[Peer]]:
    """Three, for all tests: each opens a new factory when it is asked to."""
    with jvms(ECLIPSELINK, tmp_path_factory.mktemp("eclipselink"), 3) as peers:
        yield peers


@pytest.mark.parametrize("name", SHARED)
def test_no_number_twice(name, opened, mixed):
    case = SHARED[name]

    both = mixed(opened(case), case.source)

    assert both.duplicates == 0


@pytest.mark.parametrize("name", SHARED)
def test_a_wrong_rule_gives_numbers_twice(name, opened, mixed):
    """So the test above can fail."""
    peers = opened(SHARED[name])

    both = mixed(peers, WRONG[name], has_duplicates, each=300, seconds=0.5)

    assert both.duplicates > 0


@pytest.mark.parametrize("name", SHARED)
def test_a_rollback_gives_no_number_twice(name, opened):
    case = SHARED[name]
    (peer,) = opened(case, count=1)

    numbers = numbers_around_a_rollback(peer, case.source)

    assert len(set(numbers)) == 90


@pytest.mark.parametrize("name", SHARED)
def test_the_checks_accept_the_counter_that_it_makes(name, opened):
    case = SHARED[name]
    opened(case, count=1)

    assert case.source.faults("default") == []


# The first ids of a process that begins at a stored number, which is stored then.
EXAMPLES = {
    "table": [(0, 1), (100, 101)],
    "sequence": [(50, 1), (150, 101)],
    "sequence, start at nextval": [(1, 1), (101, 101)],
}


@pytest.mark.parametrize("side", ["eclipselink", "django"])
@pytest.mark.parametrize("begins", [0, 1])
@pytest.mark.parametrize("name", SHARED)
def test_worked_examples(name, begins, side, opened, capacity):
    case = SHARED[name]
    first, low = EXAMPLES[name][begins]
    capacity(50)  # on a table, a range may have any size
    (peer,) = opened(case, first, count=1)

    def draw() -> int:
        return next_number(case.source) if side == "django" else peer.draw(1)[0]

    drawn = [(draw(), *execute(case.counter.stored)[0]) for _ in range(100)]

    after = first + 50 if name == "table" else first
    assert drawn == [
        *((number, after) for number in range(low, low + 50)),
        *((number, after + 50) for number in range(low + 50, low + 100)),
    ]
