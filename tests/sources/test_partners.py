"""Simulated processes, others' and ours, take blocks from one cell in any order.

0 ids come twice by the right formula; the wrong pairings show that this would be seen.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_hilo.sources import (
    ForeignCounter,
    Row,
    Sequence,
    database,
    django_sequences,
    doctrine,
    efcore,
    formulas,
    hibernate,
    marten,
    nhibernate,
)
from tests.support import partners
from tests.support.partners import Cell, Partner

SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}
OLD_SEGMENT: Any = {**SEGMENT, "stored_last_used": False}
ONE_ROW: Any = {"table": "orders_seq"}
SEQUENCE: Any = {"sequence": "orders_seq"}
A_ROW = Row("leaf_alloc", "max_id", key={"biz_tag": "orders"})


class Ours(Partner):
    """A process of Django's, whose ranges may be longer than one block."""

    storage: Any

    def __init__(
        self, cell: Cell, source: ForeignCounter, sizes: Callable[[], int]
    ) -> None:
        super().__init__(cell, source.formula.block)
        self.storage, self.formula, self.sizes = source.storage, source.formula, sizes

    def refill(self) -> Iterable[int]:
        size = self.sizes()
        if isinstance(self.storage, Sequence):
            count = -(-size // self.formula.block)
            first = self.step(count * self.formula.increment)
            last = first + (count - 1) * self.formula.increment
            for ids in self.formula.ids_between(first, last):
                yield from range(ids.low, ids.high + 1)
            return
        stored = self.storage.start if self.cell.value is None else self.cell.value
        ids, self.cell.value = self.formula.take(stored, size)
        yield from range(ids.low, ids.high + 1)


class Pair(NamedTuple):
    """A source, and numbers that the partner starts with."""

    source: Any
    starts: list[int | None]
    # Whether each process may have blocks of its own size.
    any_block: bool = False


def pairs(block: int) -> list[tuple[type[Partner], Pair]]:
    """Return each source with the partner that it is for."""
    max_lo, grown = block - 1, 1 + block
    past_first: list[int | None] = [1 + block, 1 + 7 * block]
    polecat = Row("pc_hilo", "hi_value", key={"entity_name": "Order"}, start=-1)
    found: dict[type[Partner], list[Pair]] = {
        partners.LegacyHiLo: [
            Pair(hibernate.HiLo(max_lo), [0, 5]),
            Pair(hibernate.SequenceHiLo(max_lo), [1, 9]),
            Pair(hibernate.MultipleHiLo(max_lo, "orders"), [None, 0, 5]),
            Pair(nhibernate.HiLo(max_lo, where="entity = 'a'"), [1]),
            Pair(nhibernate.SequenceHiLo(max_lo), [1]),
        ],
        partners.EnhancedHiLo: [
            Pair(hibernate.EnhancedHiLo(block, **SEQUENCE), [1, 9]),
            Pair(hibernate.EnhancedHiLo(block, **ONE_ROW), [0, 1]),
        ],
        partners.EnhancedHiLoLastUsed: [
            Pair(hibernate.EnhancedHiLo(block, **SEGMENT), [None, 0, 9])
        ],
        partners.Pooled: [
            Pair(hibernate.Pooled(block, **SEQUENCE), [1, grown]),
            Pair(hibernate.Pooled(block, **ONE_ROW), [1, grown]),
            Pair(hibernate.Pooled(block, **OLD_SEGMENT), [None, 1]),
        ],
        partners.PooledLastUsed: [
            Pair(hibernate.Pooled(block, **SEGMENT), [None, 0, 3 * block])
        ],
        partners.PooledBelow: [
            Pair(hibernate.Pooled(block, version="3.6.10", **SEQUENCE), past_first),
            Pair(nhibernate.Pooled(block, **SEQUENCE), past_first),
            Pair(nhibernate.Pooled(block, **SEGMENT), past_first),
        ],
        partners.PooledLo: [
            Pair(hibernate.PooledLo(block, **SEQUENCE), [1, grown]),
            Pair(hibernate.PooledLo(block, **OLD_SEGMENT), [None, 1, 77], True),
            Pair(nhibernate.PooledLo(block, **SEGMENT), [None, 1, 77], True),
            Pair(nhibernate.PooledLo(block, **ONE_ROW), [1], True),
            Pair(efcore.Sequence(increment=block), [1, grown]),
            Pair(doctrine.Sequence("s", block), [1, grown]),
            Pair(database.Sequence("s", block), [1, grown]),
        ],
        partners.PooledLoLastUsed: [
            Pair(hibernate.PooledLo(block, **SEGMENT), [None, 0, 77], True)
        ],
        partners.Marten: [
            Pair(marten.HiLo("Order", max_lo=block), [None, 0, 41]),
            Pair(ForeignCounter(polecat, formulas.HiLo(block, 1, 1)), [None, 0, 41]),
        ],
        partners.DbalTable: [Pair(doctrine.Table("orders"), [None, 1, 12])],
        partners.Leaf: [Pair(ForeignCounter(A_ROW, formulas.PooledLo(1)), [1], True)],
        partners.TinyID: [
            Pair(ForeignCounter(A_ROW, formulas.LastUsed(1)), [1, 50], True)
        ],
        partners.NHiLo: [Pair(ForeignCounter(A_ROW, formulas.HiLo(block)), [1, 12])],
        partners.DjangoSequences: [
            Pair(django_sequences.Sequence("orders"), [None, 0, 50], True)
        ],
    }
    return [(partner, pair) for partner, some in found.items() for pair in some]


def processes(
    partner: type[Partner], pair: Pair, block: int, start: int | None, random: Random
) -> Iterator[Partner]:
    cell = Cell(start)
    for number in range(3):
        size = block + 3 * number if pair.any_block else block
        yield partner(cell, size)
        if number:
            sizes = partial(random.choice, [1, 7, 32, 64, 5 * block + 1])
            yield Ours(cell, pair.source, sizes)


@pytest.mark.parametrize(
    "number", range(30), ids=[repr(pair.source) for _, pair in pairs(10)]
)
@settings(max_examples=25)
@given(
    block=st.integers(1, 60),
    turns=st.lists(st.integers(0, 4), min_size=30, max_size=300),
    drawn_each=st.integers(1, 20),
    random=st.randoms(use_true_random=False),
)
def test_no_id_twice(number, block, turns, drawn_each, random):
    partner, pair = pairs(block)[number]
    for start in pair.starts:
        all_of_them = list(processes(partner, pair, block, start, random))
        drawn = [all_of_them[turn].next() for turn in turns for _ in range(drawn_each)]
        assert len(set(drawn)) == len(drawn)
        assert min(drawn) >= 1


def test_every_preset_has_a_partner():
    modules = hibernate, nhibernate, efcore, marten, doctrine, django_sequences
    presets = {
        made
        for module in (*modules, database)
        for name, made in vars(module).items()
        if isinstance(made, type) and issubclass(made, ForeignCounter)
        if not name.startswith("_") and made.__module__ == module.__name__
    }
    assert presets == {type(pair.source) for _, pair in pairs(10)} - {ForeignCounter}


def duplicates(
    ours: formulas.Formula, partner: type[Partner], start: int, block: int = 10
) -> int:
    """Return how many of 3,000 ids came before: 3 partners, and 2 of our processes."""
    random, cell = Random(5), Cell(start)
    source = ForeignCounter(A_ROW, ours)
    all_of_them = [
        *(partner(cell, block) for _ in range(3)),
        *(Ours(cell, source, lambda: 1) for _ in range(2)),
    ]
    given_ids = Counter(random.choice(all_of_them).next() for _ in range(3000))
    return given_ids.total() - len(given_ids)


@pytest.mark.parametrize(
    ("ours", "partner", "start", "about"),
    [
        (formulas.Pooled(10), partners.PooledBelow, 11, 97),
        (formulas.PooledBelow(10), partners.Pooled, 11, 96),
        (formulas.Pooled(10), partners.PooledLastUsed, 10, 96),
        (formulas.Pooled(25), partners.Pooled, 11, 636),
        (formulas.HiLo(9), partners.LegacyHiLo, 1, 707),
    ],
    ids=[
        "Hibernate's pooled with NHibernate's",
        "NHibernate's pooled with Hibernate's",
        "last used, taken for not last used",
        "pooled with another block",
        "the textbook with max_lo + 1",
    ],
)
def test_wrong_pairings_give_ids_twice(ours, partner, start, about):
    found = duplicates(ours, partner, start)
    assert about / 2 < found < about * 2
