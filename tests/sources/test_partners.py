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
    """A source, the partner it is for, and numbers that the partner starts with."""

    source: Any
    partner: type[Partner]
    starts: list[int | None]
    # Whether each process may have blocks of its own size.
    any_block: bool = False


def pairs(block: int) -> dict[str, Pair]:
    max_lo = block - 1
    past_first = [1 + block, 1 + 7 * block]
    return {
        "hibernate.HiLo": Pair(hibernate.HiLo(max_lo), partners.LegacyHiLo, [0, 5]),
        "hibernate.SequenceHiLo": Pair(
            hibernate.SequenceHiLo(max_lo), partners.LegacyHiLo, [1, 9]
        ),
        "hibernate.MultipleHiLo": Pair(
            hibernate.MultipleHiLo(max_lo, "orders"), partners.LegacyHiLo, [None, 0, 5]
        ),
        "nhibernate.HiLo": Pair(
            nhibernate.HiLo(max_lo, where="entity = 'a'"), partners.LegacyHiLo, [1]
        ),
        "nhibernate.SequenceHiLo": Pair(
            nhibernate.SequenceHiLo(max_lo), partners.LegacyHiLo, [1]
        ),
        "hibernate.EnhancedHiLo, sequence": Pair(
            hibernate.EnhancedHiLo(block, **SEQUENCE), partners.EnhancedHiLo, [1, 9]
        ),
        "hibernate.EnhancedHiLo, row": Pair(
            hibernate.EnhancedHiLo(block, **ONE_ROW), partners.EnhancedHiLo, [0, 1]
        ),
        "hibernate.EnhancedHiLo, segment": Pair(
            hibernate.EnhancedHiLo(block, **SEGMENT),
            partners.EnhancedHiLoLastUsed,
            [None, 0, 9],
        ),
        "hibernate.Pooled, sequence": Pair(
            hibernate.Pooled(block, **SEQUENCE), partners.Pooled, [1, 1 + block]
        ),
        "hibernate.Pooled, row": Pair(
            hibernate.Pooled(block, **ONE_ROW), partners.Pooled, [1, 1 + block]
        ),
        "hibernate.Pooled, segment": Pair(
            hibernate.Pooled(block, **SEGMENT),
            partners.PooledLastUsed,
            [None, 0, 3 * block],
        ),
        "hibernate.Pooled, segment, not last used": Pair(
            hibernate.Pooled(block, **OLD_SEGMENT), partners.Pooled, [None, 1]
        ),
        "hibernate.Pooled, 3.6": Pair(
            hibernate.Pooled(block, version="3.6.10", **SEQUENCE),
            partners.PooledBelow,
            past_first,
        ),
        "nhibernate.Pooled, sequence": Pair(
            nhibernate.Pooled(block, **SEQUENCE), partners.PooledBelow, past_first
        ),
        "nhibernate.Pooled, segment": Pair(
            nhibernate.Pooled(block, **SEGMENT), partners.PooledBelow, past_first
        ),
        "hibernate.PooledLo, sequence": Pair(
            hibernate.PooledLo(block, **SEQUENCE), partners.PooledLo, [1, 1 + block]
        ),
        "hibernate.PooledLo, segment": Pair(
            hibernate.PooledLo(block, **SEGMENT),
            partners.PooledLoLastUsed,
            [None, 0, 77],
            any_block=True,
        ),
        "hibernate.PooledLo, segment, not last used": Pair(
            hibernate.PooledLo(block, **OLD_SEGMENT),
            partners.PooledLo,
            [None, 1, 77],
            any_block=True,
        ),
        "nhibernate.PooledLo, segment": Pair(
            nhibernate.PooledLo(block, **SEGMENT),
            partners.PooledLo,
            [None, 1, 77],
            any_block=True,
        ),
        "nhibernate.PooledLo, row": Pair(
            nhibernate.PooledLo(block, **ONE_ROW),
            partners.PooledLo,
            [1],
            any_block=True,
        ),
        "efcore.Sequence": Pair(
            efcore.Sequence(increment=block), partners.PooledLo, [1, 1 + block]
        ),
        "doctrine.Sequence": Pair(
            doctrine.Sequence("s", block), partners.PooledLo, [1, 1 + block]
        ),
        "database.Sequence": Pair(
            database.Sequence("s", block), partners.PooledLo, [1, 1 + block]
        ),
        "marten.HiLo": Pair(
            marten.HiLo("Order", max_lo=block), partners.Marten, [None, 0, 41]
        ),
        "Polecat": Pair(
            ForeignCounter(
                Row("pc_hilo", "hi_value", key={"entity_name": "Order"}, start=-1),
                formulas.HiLo(block, 1, 1),
            ),
            partners.Marten,
            [None, 0, 41],
        ),
        "doctrine.Table": Pair(
            doctrine.Table("orders"), partners.DbalTable, [None, 1, 12]
        ),
        "Leaf": Pair(
            ForeignCounter(A_ROW, formulas.PooledLo(1)),
            partners.Leaf,
            [1],
            any_block=True,
        ),
        "TinyID": Pair(
            ForeignCounter(A_ROW, formulas.LastUsed(1)),
            partners.TinyID,
            [1, 50],
            any_block=True,
        ),
        "NHiLo": Pair(
            ForeignCounter(A_ROW, formulas.HiLo(block)), partners.NHiLo, [1, 12]
        ),
        "django_sequences.Sequence": Pair(
            django_sequences.Sequence("orders"),
            partners.DjangoSequences,
            [None, 0, 50],
            any_block=True,
        ),
    }


def processes(
    pair: Pair, block: int, start: int | None, random: Random
) -> Iterator[Partner]:
    cell = Cell(start)
    for number in range(3):
        size = block + 3 * number if pair.any_block else block
        yield pair.partner(cell, size)
        if number:
            sizes = partial(random.choice, [1, 7, 32, 64, 5 * block + 1])
            yield Ours(cell, pair.source, sizes)


@pytest.mark.parametrize("name", sorted(pairs(10)))
@settings(max_examples=25)
@given(
    block=st.integers(1, 60),
    turns=st.lists(st.integers(0, 4), min_size=30, max_size=300),
    drawn_each=st.integers(1, 20),
    random=st.randoms(use_true_random=False),
)
def test_no_id_twice(name, block, turns, drawn_each, random):
    pair = pairs(block)[name]
    for start in pair.starts:
        all_of_them = list(processes(pair, block, start, random))
        drawn = [all_of_them[turn].next() for turn in turns for _ in range(drawn_each)]
        assert len(set(drawn)) == len(drawn)
        assert min(drawn) >= 1


def test_every_preset_has_a_partner():
    modules = hibernate, nhibernate, efcore, marten, doctrine, django_sequences
    presets = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (*modules, database)
        for name, made in vars(module).items()
        if isinstance(made, type) and issubclass(made, ForeignCounter)
        if not name.startswith("_") and made.__module__ == module.__name__
    }
    assert presets == {name.split(",")[0] for name in pairs(10) if "." in name}


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
