"""The migration operations that change a key to a `HiLoField`, and back."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

from django.db import models, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import OperationCategory
from django.db.migrations.operations.fields import FieldOperation
from django.db.migrations.state import ProjectState

from django_hilo._allocation.find import resolve
from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.moving import mapping, mysql, postgresql, preflight, sqlite
from django_hilo.moving import undeclared_references as undeclared
from django_hilo.moving.expressions import Sql
from django_hilo.moving.relations import Generic, columns_of, generic_columns
from django_hilo.moving.steps import Move, Step
from django_hilo.moving.values import Integers, Mapped, Values

_STEPS = {
    "postgresql": postgresql.steps,
    "mysql": mysql.steps,
    "sqlite": sqlite.steps,
}


def together(operation: "MoveKey") -> list["MoveKey"]:
    """Return the moves that follow one another in a migration, with this among them.

    The first of them runs all, so that a table that they share is rewritten once.
    """
    for migration in MigrationLoader(None).disk_migrations.values():
        for _, group in groupby(migration.operations, key=type):
            found: list[Any] = list(group)
            if any(each is operation for each in found):
                return found
    return [operation]


class MoveKey(FieldOperation):
    """What both operations share: one is the other one reversed."""

    # Django writes it to migrations (squashmigrations), so it must not change.
    __module__ = "django_hilo.moving"

    field: Any
    to_hilo: bool
    order_by: tuple[str, ...] = ()

    category = OperationCategory.ALTERATION
    reduces_to_sql = False

    def __init__(
        self, model_name: str, name: str, field: Any, generic: Generic | None = None
    ) -> None:
        self.generic = dict(generic or {})
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
        kind = "HiLo ids" if self.to_hilo else type(self.field).__name__
        return f"Move {self.model_name}.{self.name} to {kind}"

    @property
    def migration_name_fragment(self) -> str:
        where = "to" if self.to_hilo else "from"
        return f"move_{self.model_name_lower}_{where}_hilo"

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

        Changes nothing. ``old_state`` is before the operation and ``new_state`` after
        it, in both directions. Raises `HiLoError` if a key cannot be moved.
        """
        if not self.to_hilo:
            # Models keep the registry that Django changes to that of the new state.
            old_state = ProjectState(old_state.models, old_state.real_apps)
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
        if not self.to_hilo:
            moves.reverse()  # each `Move` has the HiLoField as its new field
        return _STEPS[connection.vendor](moves) if moves else []

    def _move(self, old: Any, new: Any, connection: Any, forwards: bool) -> Move:
        name = type(self).__name__
        if connection.vendor not in _STEPS:
            raise HiLoError(f"{name} does not support {connection.display_name}.")
        if not (old.primary_key and new.primary_key):
            raise HiLoError(f"{new} is not a primary key; {name} needs one.")
        if old.column != new.column:
            raise HiLoError(
                f"{new} would change its column from {old.column!r} to {new.column!r}: "
                f"rename it in a separate AlterField, before or after."
            )
        there = forwards is self.to_hilo
        if not self.to_hilo:
            old, new = new, old
        _check_kinds(old, new)
        columns = columns_of(old, new, connection.alias)
        undeclared.check_references(columns, connection)
        if forwards:
            undeclared.check_dependencies(self, columns, connection)
        generics = generic_columns(columns, self.generic, connection)
        counter = resolve(new, connection.alias)
        # A test database may be made before the one of its counters.
        is_new = counter.using != connection.alias and preflight.is_new(
            columns, generics, connection
        )
        if not is_new:
            preflight.check_tables(new, connection.alias)
        id_format = counter.next_format(reads_prefix=not is_new)
        sql = Sql(connection)
        values: Values = Integers(sql, id_format)
        if isinstance(old, models.UUIDField):
            values = Mapped(sql, mapping.table_of(new, connection))
        found = columns, generics, counter, id_format, values
        move = Move(connection, *found, there, is_new, self.order_by)
        if there:
            is_resumed = connection.vendor == "mysql" and any(
                mysql.is_text(move, column) for column in columns
            )
            preflight.check_forwards(move, is_resumed)
        else:
            preflight.check_backwards(move)
        if connection.vendor == "postgresql":
            postgresql.check_views(move)
        return move


def _check_kinds(old: Any, new: Any) -> None:
    if not isinstance(old, models.IntegerField | models.UUIDField):
        kind = type(old).__name__
        raise HiLoError(f"{old} is a {kind}, not an integer or a UUID.")
    if not isinstance(new, HiLoField):
        raise HiLoError(f"{new} is a {type(new).__name__}, not a HiLoField.")
    if new.per:
        raise HiLoError(
            f"{new} has per=, whose series a move cannot convert: remove it in an "
            f"earlier AlterField, or add it in a later one."
        )


class MoveToHiLo(MoveKey):
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

    __module__ = MoveKey.__module__
    to_hilo = True

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
        self.order_by = tuple(order_by)
        super().__init__(model_name, name, field, generic)


class MoveFromHiLo(MoveKey):
    """Change a `HiLoField` key, and all references to it, to an integer or a UUID.

    It is the reverse of `MoveToHiLo`, for tables that were created with a `HiLoField`,
    and for tables whose move is not to be undone. ``field`` is the new key; the other
    arguments are the same.

    A row keeps its number: ``orders/33-A`` becomes 33, and new keys continue above all
    numbers. For a `UUIDField`, each row gets a uuid4, unless `MoveToHiLo` kept its own.

    Raises `HiLoError`, before anything is changed, if the key cannot be moved.
    """

    __module__ = MoveKey.__module__
    to_hilo = False
