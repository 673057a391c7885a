"""The migration operation that changes a key to a `HiLoField`."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

from django.db import models, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import OperationCategory
from django.db.migrations.operations.fields import FieldOperation

from django_hilo._allocation.find import resolve
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.moving import mapping, mariadb, postgresql, preflight, sqlite
from django_hilo.moving import undeclared_references as undeclared
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Generic, columns_of, generic_columns
from django_hilo.moving.steps import Move, Step
from django_hilo.moving.values import Integers, Mapped, Values

_STEPS = {
    "postgresql": postgresql.steps,
    "mysql": mariadb.steps,
    "sqlite": sqlite.steps,
}


def together(operation: "MoveToHiLo") -> list["MoveToHiLo"]:
    """Return the moves that follow one another in a migration, with this among them.

    The first of them runs all, so that a table that they share is rewritten once.
    """
    for migration in MigrationLoader(None).disk_migrations.values():
        for _, group in groupby(migration.operations, key=type):
            found: list[Any] = list(group)
            if any(each is operation for each in found):
                return found
    return [operation]


class MoveToHiLo(FieldOperation):
    """Change an integer or UUID key, and all references to it, to a `HiLoField`.

    Use it instead of ``AlterField`` in the migration, with the same arguments:

    - ``model_name``, ``name``, ``field``: the model, its key, and the `HiLoField`.
    - ``generic``: references without a GenericForeignKey, such as
      ``{"app.Model": ("content_type", "object_id")}``.
    - ``order_by``: names of the model's fields, by which UUIDs are numbered; a "-"
      before a name reverses the order.

    A row keeps its number: 33 becomes ``orders/33-A``, according to the settings. The
    same migration converts foreign keys of any depth, many-to-many tables, generic
    foreign keys and the admin's log. A table keeps UUIDs for the reverse migration.

    The migration must depend on ("django_hilo", "0001_initial"). Raises `HiLoError`,
    before anything is changed, if the key cannot be moved.
    """

    # Django writes it to migrations (squashmigrations), so it must not change.
    __module__ = "django_hilo.moving"

    field: Any

    category = OperationCategory.ALTERATION
    reduces_to_sql = False

    def __init__(
        self,
        model_name: str,
        name: str,
        field: Any,
        generic: Generic | None = None,
        order_by: Sequence[str] = (),
    ) -> None:
        if not isinstance(field, HiLoField):
            raise TypeError(f"MoveToHiLo requires a HiLoField, not {field!r}.")
        if field.anchor is not None or field.convention is not None:
            raise ValueError(
                "MoveToHiLo makes ids from numbers only. Add anchor or convention in "
                "an AlterField after it; they apply to new ids only."
            )
        if isinstance(order_by, str):
            raise TypeError(f"order_by must be a list of names: [{order_by!r}].")
        self.generic = dict(generic or {})
        self.order_by = tuple(order_by)
        super().__init__(model_name, name, field)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        kwargs = {"model_name": self.model_name, "name": self.name, "field": self.field}
        if self.generic:
            kwargs["generic"] = self.generic
        if self.order_by:
            kwargs["order_by"] = self.order_by
        return self.__class__.__name__, [], kwargs

    def state_forwards(self, app_label: str, state: Any) -> None:
        state.alter_field(app_label, self.model_name_lower, self.name, self.field, True)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(app_label, schema_editor, from_state, to_state, forwards=True)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(app_label, schema_editor, to_state, from_state, forwards=False)

    def _run(
        self, app_label: str, editor: Any, old: Any, new: Any, *, forwards: bool
    ) -> None:
        connection = editor.connection
        # One transaction, also in a migration that is not atomic.
        one = connection.features.can_rollback_ddl
        with transaction.atomic(connection.alias) if one else nullcontext():
            for step in self.steps(app_label, connection, old, new, forwards=forwards):
                step.run(editor)

    def describe(self) -> str:
        return f"Move {self.model_name}.{self.name} to HiLo ids"

    @property
    def migration_name_fragment(self) -> str:
        return f"move_{self.model_name_lower}_to_hilo"

    def steps(
        self,
        app_label: str,
        connection: Any,
        old_state: Any,
        new_state: Any,
        *,
        forwards: bool,
    ) -> list[Step]:
        """Return the steps on a database of the moves that it runs, after their checks.

        Changes nothing. ``old_state`` is before the move and ``new_state`` after it, in
        both directions. Raises `HiLoError` if a key cannot be moved.
        """
        moves: list[Move] = []
        operations = together(self)
        for operation in operations if operations[0] is self else ():
            if operation is not self:
                old_state, new_state = new_state, new_state.clone()
                operation.state_forwards(app_label, new_state)
            old, new = (
                state.apps.get_model(app_label, operation.model_name)
                for state in (old_state, new_state)
            )
            if operation.allow_migrate_model(connection.alias, new):
                old, new = (each._meta.get_field(operation.name) for each in (old, new))
                moves.append(operation._move(old, new, connection, forwards))
        return _STEPS[connection.vendor](moves) if moves else []

    def _move(self, old: Any, new: Any, connection: Any, forwards: bool) -> Move:
        if connection.vendor not in _STEPS:
            raise HiLoError(f"MoveToHiLo does not support {connection.display_name}.")
        if not (old.primary_key and new.primary_key):
            raise HiLoError(f"{new} is not a primary key; MoveToHiLo needs one.")
        if old.column != new.column:
            raise HiLoError(
                f"{new} would change its column from {old.column!r} to {new.column!r}: "
                f"rename it in a separate AlterField, before or after."
            )
        columns = columns_of(old, new, connection.alias)
        undeclared.check_references(columns, connection)
        if forwards:
            undeclared.check_dependencies(self, columns, connection)
        generics = generic_columns(columns, self.generic, connection)
        counter = resolve(new, connection.alias)
        # A test database may be made before the one of its counters.
        is_new = (
            forwards
            and counter.using != connection.alias
            and preflight.is_new(columns, generics, connection)
        )
        if not is_new:
            preflight.check_tables(new, connection.alias)
        id_format = counter.next_format(reads_prefix=not is_new)
        sql = Sql(connection)
        values: Values
        if isinstance(old, models.UUIDField):
            values = Mapped(sql, mapping.table_of(new, connection))
        elif isinstance(old, models.IntegerField):
            values = Integers(sql, id_format)
        else:
            raise HiLoError(
                f"{old} is a {type(old).__name__}, not an integer or a UUID."
            )
        found = columns, generics, counter, id_format, values
        move = Move(connection, *found, forwards, self.order_by)
        if forwards:
            is_resumed = connection.vendor == "mysql" and any(
                mariadb.is_text(move, column) for column in columns
            )
            preflight.check_forwards(move, is_resumed)
        else:
            preflight.check_backwards(move)
        if connection.vendor == "postgresql":
            postgresql.check_views(move)
        return move
