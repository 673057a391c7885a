"""Stored numbers and ids: the presets and their formulas, row by row; no database.

The expected numbers are written out, as the other systems give them.
"""

import re
from typing import Any

import pytest

from django_hilo.counters import Range
from django_hilo.counters.ranges import Wanted
from django_hilo.exceptions import CounterExhausted, UnsafeSource
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import (
    Row,
    database,
    django_sequences,
    doctrine,
    efcore,
    formulas,
    hibernate,
    marten,
    nhibernate,
)
from django_hilo.sources.formulas import Formula
from tests.support.commands import PROJECT
from tests.support.partners import FORMULAS

SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}
ONE_ROW: Any = {"table": "orders_seq"}
SEQUENCE: Any = {"sequence": "orders_seq"}
NOT_LAST_USED: Any = {**SEGMENT, "stored_last_used": False}
BEFORE_5_3: Any = {**SEGMENT, "version": "5.2.18"}
LEGACY = [hibernate.HiLo, hibernate.SequenceHiLo]
NH_LEGACY = [nhibernate.HiLo, nhibernate.SequenceHiLo]


def legacy(block: int) -> list[Any]:
    multiple = hibernate.MultipleHiLo(block - 1, "orders")
    return [multiple, *(preset(block - 1) for preset in [*LEGACY, *NH_LEGACY])]


def enhanced(block: int) -> list[Any]:
    places = SEQUENCE, ONE_ROW, NOT_LAST_USED, BEFORE_5_3
    return [hibernate.EnhancedHiLo(block, **place) for place in places]


def pooled(block: int) -> list[Any]:
    places = SEQUENCE, ONE_ROW, NOT_LAST_USED, BEFORE_5_3
    return [hibernate.Pooled(block, **place) for place in places]


def pooled_lo(block: int) -> list[Any]:
    sequences = [
        hibernate.PooledLo(block, **SEQUENCE),
        nhibernate.PooledLo(block, **SEQUENCE),
    ]
    return [*sequences, *pooled_lo_tables(block)]


def pooled_lo_tables(block: int) -> list[Any]:
    return [
        *(hibernate.PooledLo(block, **p) for p in (ONE_ROW, NOT_LAST_USED, BEFORE_5_3)),
        *(nhibernate.PooledLo(block, **place) for place in (ONE_ROW, SEGMENT)),
    ]


def pooled_below(block: int) -> list[Any]:
    places = SEQUENCE, ONE_ROW, SEGMENT
    return [
        *(nhibernate.Pooled(block, **place) for place in places),
        *(hibernate.Pooled(block, version="4.3.10", **place) for place in places),
    ]


# Formula, sources, number stored before, ids, number stored after; one block each.
WORKED = [
    ("L1", legacy(32768), 0, (1, 32767), 1),
    ("L1", legacy(10), 1, (10, 19), 2),
    ("L1", legacy(10), 7, (70, 79), 8),
    ("L2", enhanced(10), 0, (1, 10), 2),  # read again at 1
    ("L2", enhanced(10), 1, (1, 10), 2),
    ("L2", enhanced(20), 7, (121, 140), 8),
    ("L3", [hibernate.EnhancedHiLo(10, **SEGMENT)], 0, (1, 10), 1),
    ("L3", [hibernate.EnhancedHiLo(10, **SEGMENT)], 1, (11, 20), 2),
    ("L3", [hibernate.EnhancedHiLo(20, **SEGMENT)], 7, (141, 160), 8),
    ("L4", [hibernate.Pooled(50, **SEGMENT)], 0, (1, 1), 50),
    ("L4", [hibernate.Pooled(50, **SEGMENT)], 50, (2, 51), 100),
    ("L4", [hibernate.Pooled(50, **SEGMENT)], 100, (52, 101), 150),
    ("L5", pooled(50), 1, (1, 1), 51),
    ("L5", pooled(50), 51, (2, 51), 101),
    ("L5", pooled(50), 101, (52, 101), 151),
    ("L6", [hibernate.PooledLo(50, **SEGMENT)], 0, (1, 50), 50),
    ("L6", [hibernate.PooledLo(50, **SEGMENT)], 50, (51, 100), 100),
    ("L6", [hibernate.PooledLo(20, **SEGMENT)], 1000, (1001, 1020), 1020),
    ("L7", pooled_lo(50), 1, (1, 50), 51),
    ("L7", pooled_lo(50), 51, (51, 100), 101),
    ("L7", pooled_lo(20), 1001, (1001, 1020), 1021),
    ("L8", pooled_below(10), 1, (1, 10), 21),  # read again at 11
    ("L8", pooled_below(10), 11, (1, 10), 21),
    ("L8", pooled_below(10), 101, (91, 100), 111),
    ("E1", [efcore.Sequence()], 1, (1, 10), 11),
    ("E1", [efcore.Sequence()], 11, (11, 20), 21),
    ("E1", [efcore.Sequence("s", 100, schema="x")], 1001, (1001, 1100), 1101),
    ("M1", [marten.HiLo("Order")], -1, (1, 1000), 0),  # no row
    ("M1", [marten.HiLo("Order")], 0, (1001, 2000), 1),
    ("M1", [marten.HiLo("Order", max_lo=66)], 41, (2773, 2838), 42),
    ("M1 Polecat", [formulas.HiLo(66, 1, 1)], 41, (2773, 2838), 42),
    ("D1", [doctrine.Sequence("s", 1), database.Sequence("s")], 1, (1, 1), 2),
    ("D1", [doctrine.Sequence("s", 100)], 1, (1, 100), 101),
    ("D1", [doctrine.Sequence("s", 100)], 101, (101, 200), 201),
    ("D1", [database.Sequence("s", 100)], 101, (101, 200), 201),
    ("D2", [doctrine.Table("orders")], 0, (1, 1), 1),  # no row
    ("D2", [doctrine.Table("orders")], 1, (2, 2), 2),
    ("D2", [doctrine.Table("orders")], 12, (13, 13), 13),
    ("F1 Leaf", [formulas.PooledLo(1)], 1, (1, 2000), 2001),
    ("F1 Leaf", [formulas.PooledLo(1)], 2001, (2001, 6000), 6001),
    ("F1 Leaf", [formulas.PooledLo(1)], 6001, (6001, 6001), 6002),
    ("F2 TinyID", [formulas.LastUsed(1)], 1, (2, 100001), 100001),
    ("F2 TinyID", [formulas.LastUsed(1)], 100001, (100002, 100011), 100011),
    ("F3 NHiLo", [formulas.HiLo(100)], 1, (100, 199), 2),
    ("F3 NHiLo", [formulas.HiLo(100)], 2, (200, 299), 3),
    ("F3 NHiLo", [formulas.HiLo(10)], 9, (90, 99), 10),
    ("F5", [django_sequences.Sequence("orders")], 0, (1, 10), 10),  # no row
    ("F5", [django_sequences.Sequence("orders")], 10, (11, 20), 20),
    ("F5", [django_sequences.Sequence("orders")], 25, (26, 26), 26),
]


def formula_of(source: Any) -> Formula:
    formula = source if isinstance(source, Formula) else source.formula
    assert isinstance(formula, Formula)
    return formula


def cases() -> list[Any]:
    return [
        pytest.param(formula_of(source), *rest, id=f"{label}, {rest[0]}, {number}")
        for label, sources, *rest in WORKED
        for number, source in enumerate(sources)
    ]


@pytest.mark.parametrize(("formula", "stored", "ids", "after"), cases())
def test_worked_examples(formula, stored, ids, after):
    size = ids[1] - ids[0] + 1
    assert formula.take(stored, size) == (Range(*ids), after)
    first = after - formula.increment * -(-size // formula.block)
    assert formula.ids_between(stored, after - formula.increment) == [Range(*ids)]
    assert first == stored or formula.ids_of(stored) is None


@pytest.mark.parametrize(
    ("formula", "stored", "size", "ids", "after"),
    [
        (formulas.HiLo(10), 0, 10, (1, 19), 2),  # id 0 is left out
        (formulas.HiLo(10), 7, 11, (70, 89), 9),
        (formulas.HiLo(10, 1, 1), -1, 32, (1, 40), 3),
        (formulas.Pooled(10), 1, 32, (1, 41), 51),
        (formulas.Pooled(10), 3, 2, (3, 13), 23),  # a partner leaves -6 to 2 out
        (formulas.Pooled(10, initial_value=1000), 1000, 1, (1000, 1000), 1010),
        (formulas.Pooled(10, initial_value=1000), 1010, 10, (1001, 1010), 1020),
        (formulas.Pooled(10, 6, last_used=True), 5, 11, (6, 16), 25),
        (formulas.PooledBelow(10), -35, 12, (5, 24), 35),
        (formulas.PooledLo(10), -35, 12, (1, 14), 15),
        (formulas.PooledLo(1), 7, 1000, (7, 1006), 1007),
        (formulas.LastUsed(1), 7, 1000, (8, 1007), 1007),
    ],
)
def test_several_blocks_in_one_step(formula, stored, size, ids, after):
    assert formula.take(stored, size) == (Range(*ids), after)


def test_what_lies_far_under_1_is_passed_over_in_one_step():
    assert formulas.PooledLo(1).take(-(10**15), 5) == (Range(1, 5), 6)
    assert formulas.HiLo(10).take(-(10**15), 5) == (Range(1, 9), 1)


@pytest.mark.parametrize("max_lo", [0, -5])
def test_a_max_lo_under_1_means_the_stored_numbers_themselves(max_lo):
    formula = hibernate.HiLo(max_lo).formula
    assert formula.take(0, 1) == (Range(1, 1), 2)
    assert formula.take(5, 3) == (Range(5, 7), 8)


CONVERTED: dict[str, Any] = {
    "L1": formulas.HiLo,
    "L2": lambda block: formulas.HiLo(block, -1, 1),
    "L3": lambda block: formulas.HiLo(block, 0, 1),
    "L4": lambda block: formulas.Pooled(block, last_used=True),
    "L5": formulas.Pooled,
    "L6": formulas.LastUsed,
    "L7": formulas.PooledLo,
    "L8": formulas.PooledBelow,
    "M1": lambda block: formulas.HiLo(block, 1, 1),
}


@pytest.mark.parametrize("block", [1, 2, 5, 10, 50])
@pytest.mark.parametrize("label", CONVERTED)
def test_converting_counters(label, block):
    """Max of a stored number, and the least stored number over a floor."""
    formula, ids_of = CONVERTED[label](block), FORMULAS[label]
    for stored in range(-1, 4 * block + 4):
        before = ids_of(stored - formula.increment, block)
        assert formula.highest(stored) == max(before[-1], 0)
    for floor in range(4 * block + 4):
        stored = formula.stored_over(floor)
        assert min(ids_of(stored, block)) > floor
        assert min(ids_of(stored - 1, block)) <= floor


class TestLimits:
    def test_ids_end_at_max_number(self):
        formula = hibernate.HiLo(9, max_number=75).formula
        assert formula.take(7, 1) == (Range(70, 75), 8)
        assert formula.take(7, 50, at_least=6) == (Range(70, 75), 12)
        with pytest.raises(CounterExhausted, match=r"70 to 79, .* 75 \(max_number\)"):
            formula.take(7, 10, at_least=7)
        with pytest.raises(CounterExhausted, match="Widen the partner"):
            formula.take(8, 1)

    def test_numbers_end_at_63_bits(self):
        formula = formulas.LastUsed(1)
        assert formula.take(MAX_NUMBER - 3, 10)[0] == Range(MAX_NUMBER - 2, MAX_NUMBER)
        with pytest.raises(CounterExhausted):
            formula.take(MAX_NUMBER, 1)


class TestUnsafe:
    @pytest.mark.parametrize(
        ("make", "reason"),
        [
            (lambda: nhibernate.EnhancedHiLo(10, table="t"), "continues from its old"),
            (
                lambda: hibernate.EnhancedHiLo(10, sequence="s", version="5.2.9"),
                r"Hibernate 5\.2\.9 .*HHH-3628.*5\.2\.10 or later",
            ),
            (
                lambda: hibernate.EnhancedHiLo(10, sequence="s", version="3.6.10"),
                "HHH-3628",
            ),
            (
                lambda: doctrine.Table("t", increment=5),
                "increment of 5 .*Set sequence_increment_by to 1",
            ),
            (lambda: doctrine.TableGenerator("t"), r"is unfinished.*doctrine\.Seq"),
        ],
    )
    def test_who_gives_ids_twice_is_refused(self, make, reason):
        with pytest.raises(UnsafeSource, match=reason):
            make()

    def test_the_first_safe_version(self):
        assert hibernate.EnhancedHiLo(10, sequence="s", version="5.2.10")


class TestBadArguments:
    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: formulas.HiLo(0), "block must be an integer.* not 0"),
            (lambda: formulas.PooledLo(True), "block .* not True"),
            (lambda: formulas.LastUsed("5"), "block .* not '5'"),
            (lambda: efcore.Sequence(increment=-1), "at least 1, not -1"),
            (lambda: marten.HiLo("Order", max_lo=0), "at least 1, not 0"),
            (lambda: formulas.HiLo(5, max_number=0), "max_number .* not 0"),
            (lambda: formulas.HiLo(5, max_number=2**63), "at most 2\\^63-1, not 92"),
            (lambda: hibernate.HiLo("9"), "max_lo must be an integer, not '9'"),
            (lambda: hibernate.HiLo(True), "max_lo .* not True"),
            (lambda: hibernate.Pooled(5), "either sequence= or table="),
            (
                lambda: hibernate.Pooled(5, sequence="s", table="t"),
                "either sequence= or table=",
            ),
            (
                lambda: hibernate.PooledLo(5, sequence="s", segment="x"),
                "segment='x' needs table=",
            ),
            (
                lambda: hibernate.PooledLo(5, table="t", stored_last_used=True),
                "requires a table with a segment",
            ),
            (
                lambda: hibernate.Pooled(5, sequence="s", version="six"),
                r"version must be of the form '5\.2\.10', not 'six'",
            ),
            (lambda: hibernate.Pooled(5, sequence="s", version=""), "not ''"),
            (lambda: hibernate.Pooled(5, sequence="s", version=5.2), "not 5.2"),
            (lambda: Row("t", "c", key={"a": 1}, where="a = 1"), "not both"),
            (lambda: Row("t", "c", start=0), "start= requires key="),
        ],
    )
    def test_the_error_names_value_and_remedy(self, make, said):
        with pytest.raises(ValueError, match=said):
            make()

    def test_a_size(self):
        with pytest.raises(ValueError, match="size must be at least 5, not 4"):
            hibernate.HiLo(9).reserve("default", Wanted(4, at_least=5))
        with pytest.raises(ValueError, match="size must be at least 1, not 0"):
            hibernate.HiLo(9).reserve("default", Wanted(0))


@pytest.mark.parametrize("version", ["3.6.10.Final", "4.3.10-SNAPSHOT", "4.3"])
def test_versions_as_people_write_them(version):
    old = hibernate.Pooled(10, sequence="s", version="3.6")
    assert hibernate.Pooled(10, sequence="s", version=version) == old


PASTED: list[tuple[str, int, tuple[int, int]]] = [
    ('hibernate.Pooled(50, sequence="orders_seq", version="6.4.4")', 51, (2, 51)),
    ('hibernate.PooledLo(50, sequence="orders_seq", version="6.4.4")', 1, (1, 50)),
    ('hibernate.SequenceHiLo(49, sequence="orders_seq")', 1, (50, 99)),
    ('ForeignCounter(Sequence("orders_seq"), formulas.Pooled(50))', 50, (1, 50)),
    ('database.Sequence("orders_seq", increment=50)', 1, (1, 50)),
    ('database.Sequence("orders_seq")', 7, (7, 7)),
    (
        'hibernate.Pooled(50, table="ids", segment="orders", segment_column="name", '
        'column="value", version="6.4.4")',
        50,
        (2, 51),
    ),
    (
        'hibernate.MultipleHiLo(49, "orders", table="ids", key_column="name", '
        'column="value")',
        1,
        (50, 99),
    ),
    (
        'ForeignCounter(Row("ids", "value", key={"name": "orders"}), '
        "formulas.LastUsed(1))",
        50,
        (51, 51),
    ),
]


def test_the_lines_for_jpa_annotations():
    """Each line of docs/how-to/sources.md, and the ids that it makes of a number."""
    page = (PROJECT / "docs/how-to/sources.md").read_text()
    section = page.partition("## From JPA annotations")[2].partition("\n## ")[0]
    (imports,) = re.findall("^```python\n(.*?)^```", section, re.M | re.S)
    names: dict[str, Any] = {}
    exec(imports, names)
    found = re.findall(r"\| `([^`]*)` \|$", section, re.M)
    assert found == [line for line, _, _ in PASTED]
    for line, stored, ids in PASTED:
        source = eval(line, names)
        assert source.formula.ids_of(stored) == Range(*ids), line
        assert not source.missing, line
