"""Sources are values: they compare, and are written into migrations by fixed paths."""

from typing import Any

import pytest
from django.db import connection, models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.graph import MigrationGraph
from django.db.migrations.operations import AlterField
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ModelState, ProjectState
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string

from django_hilo.fields import HiLoBigAutoField
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

ROW = Row("t", "c", key={"b": 1, "a": 2}, start=0, fixed={"x": 1}, also="v = v + 1")
SEGMENT: Any = {"table": "hibernate_sequences", "segment": "orders"}

# Where each is imported from, in the migrations of projects: for ever.
PATHS: dict[str, Any] = {
    "django_hilo.sources.hibernate.HiLo": hibernate.HiLo(9, max_number=2**31 - 1),
    "django_hilo.sources.hibernate.SequenceHiLo": hibernate.SequenceHiLo(9, "s"),
    "django_hilo.sources.hibernate.MultipleHiLo": hibernate.MultipleHiLo(9, "orders"),
    "django_hilo.sources.hibernate.EnhancedHiLo": hibernate.EnhancedHiLo(5, **SEGMENT),
    "django_hilo.sources.hibernate.Pooled": hibernate.Pooled(
        5, version="5.2.18", initial_value=100, **SEGMENT
    ),
    "django_hilo.sources.hibernate.PooledLo": hibernate.PooledLo(5, sequence="s"),
    "django_hilo.sources.nhibernate.HiLo": nhibernate.HiLo(9, where="entity = 'a'"),
    "django_hilo.sources.nhibernate.SequenceHiLo": nhibernate.SequenceHiLo(9),
    "django_hilo.sources.nhibernate.Pooled": nhibernate.Pooled(5, table="t"),
    "django_hilo.sources.nhibernate.PooledLo": nhibernate.PooledLo(5, table="t"),
    "django_hilo.sources.efcore.Sequence": efcore.Sequence(schema="billing"),
    "django_hilo.sources.marten.HiLo": marten.HiLo("Order", max_lo=66),
    "django_hilo.sources.doctrine.Sequence": doctrine.Sequence("s", 5),
    "django_hilo.sources.doctrine.Table": doctrine.Table("orders"),
    "django_hilo.sources.django_sequences.Sequence": django_sequences.Sequence("x"),
    "django_hilo.sources.database.Sequence": database.Sequence("s", increment=5),
    "django_hilo.sources.foreign.ForeignCounter": ForeignCounter(
        ROW, formulas.HiLo(10, shift=1, first=1)
    ),
    "django_hilo.sources.storages.Row": ROW,
    "django_hilo.sources.storages.Sequence": Sequence("s"),
    "django_hilo.sources.formulas.HiLo": formulas.HiLo(10, -1, 1),
    "django_hilo.sources.formulas.PooledLo": formulas.PooledLo(10),
    "django_hilo.sources.formulas.LastUsed": formulas.LastUsed(1, max_number=99),
    "django_hilo.sources.formulas.Pooled": formulas.Pooled(10, 100, last_used=True),
    "django_hilo.sources.formulas.PooledBelow": formulas.PooledBelow(10),
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_pinned(path):
    value = PATHS[path]
    found, arguments, keywords = value.deconstruct()
    assert found == path
    again = import_string(path)(*arguments, **keywords)
    assert type(again) is type(value)
    assert again == value
    assert hash(again) == hash(value)
    assert repr(again) == repr(value)


def test_all_that_differ_are_unequal():
    values = [*PATHS.values(), hibernate.HiLo(8), hibernate.HiLo(9, table="other")]
    assert len(set(values)) == len(values)
    assert hibernate.HiLo(9) != "hibernate"
    for value in values:
        assert [other for other in values if other == value] == [value]


def test_presets_of_one_counter_share_its_key():
    one, two = hibernate.HiLo(9), nhibernate.HiLo(9)
    assert one != two
    assert one.key == two.key
    assert one.key != hibernate.HiLo(8).key
    assert one.key != hibernate.HiLo(9, column="other").key


def test_the_order_of_a_rows_key_does_not_matter():
    other = Row("t", "c", key={"a": 2, "b": 1}, start=0, fixed={"x": 1}, also=ROW.also)
    assert (other, hash(other), repr(other)) == (ROW, hash(ROW), repr(ROW))


class TestFields:
    """The source of a field is no part of its column."""

    def state(self, source: Any) -> ProjectState:
        field = HiLoBigAutoField(primary_key=True, source=source)
        fields = [("id", field), ("name", models.CharField(max_length=9))]
        state = ProjectState()
        state.add_model(ModelState("numbers", "Bolt", fields))
        return state

    def changes(self, before: Any, after: Any) -> list[Any]:
        detector = MigrationAutodetector(
            self.state(before),
            self.state(after),
            MigrationQuestioner(specified_apps={"numbers"}),
        )
        found = detector.changes(graph=MigrationGraph())
        return [step for each in found.get("numbers", []) for step in each.operations]

    def test_the_same_source_is_no_change(self):
        assert self.changes(hibernate.HiLo(9), hibernate.HiLo(9)) == []
        assert self.changes(ForeignCounter(ROW, formulas.HiLo(5)), None) != []

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (None, hibernate.HiLo(9)),
            (hibernate.HiLo(9), hibernate.HiLo(99)),
            (hibernate.HiLo(9), nhibernate.HiLo(9)),
            (database.Sequence("s"), None),
        ],
    )
    @pytest.mark.django_db(transaction=True)
    def test_another_source_is_no_sql(self, before, after):
        [operation] = self.changes(before, after)
        assert isinstance(operation, AlterField)
        assert operation.field.source == after
        with connection.schema_editor() as editor:
            editor.create_model(self.state(before).apps.get_model("numbers", "Bolt"))
        try:
            states = self.state(before), self.state(after)
            with (
                CaptureQueriesContext(connection) as queries,
                connection.schema_editor() as editor,
            ):
                operation.database_forwards("numbers", editor, *states)
            statements = [query["sql"] for query in queries]
            assert [sql for sql in statements if "numbers_bolt" in sql.lower()] == []
            assert [sql for sql in statements if "TABLE" in sql.upper()] == []
        finally:
            with connection.schema_editor() as editor:
                editor.delete_model(self.state(after).apps.get_model("numbers", "Bolt"))
