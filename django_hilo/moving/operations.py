from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import transaction
from django.db.migrations.operations.base import OperationCategory
from django.db.migrations.operations.fields import FieldOperation

from django_hilo.fields import HiLoField
from django_hilo.moving import planning
from django_hilo.moving.relations import Generic
from django_hilo.moving.steps import Move, Step


class MoveToHiLo(FieldOperation):
    """Change an integer or UUID key to a `HiLoField`, with all that refers to it.

    It stands where `makemigrations` wrote ``AlterField``, with the same arguments. The
    rows get ids of their numbers: 33 becomes ``orders/33-A``, by the settings of the
    moment; foreign keys of any depth, many-to-many tables, generic foreign keys and the
    admin's log follow. UUIDs are numbered by ``order_by``, names of fields of the model
    (a leading "-": falling), and kept beside their ids in a table until the way back.
    ``generic`` names columns that no GenericForeignKey tells of:
    ``{"app.Model": ("content_type", "object_id")}``.

    The migration depends on ("django_hilo", "0003_raised_by"). Raises `HiLoError`
    before anything is changed for what cannot be moved.
    """

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
            raise TypeError(f"MoveToHiLo needs a HiLoField, not {field!r}.")
        if field.anchor is not None or field.convention is not None:
            raise ValueError(
                "MoveToHiLo makes ids of numbers alone. Give the field its anchor or "
                "convention in an AlterField after it: they are of new ids only."
            )
        if isinstance(order_by, str):
            raise TypeError(f"order_by is a list of names: [{order_by!r}].")
        self.generic = dict(generic or {})
        self.order_by = tuple(order_by)
        super().__init__(model_name, name, field)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        kwargs = {
            "model_name": self.model_name,
            "name": self.name,
            "field": self.field,
        }
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
        """Return what is to be done on a database, after the checks; changes nothing.

        ``old_state`` is before the move and ``new_state`` after it, in both directions.
        Raises `HiLoError` for what cannot be moved.
        """
        move = self.move(app_label, connection, old_state, new_state, forwards=forwards)
        return planning.steps(move, self.order_by) if move is not None else []

    def move(
        self,
        app_label: str,
        connection: Any,
        old_state: Any,
        new_state: Any,
        *,
        forwards: bool,
    ) -> Move | None:
        """Return what is to be moved; None where routers keep the model elsewhere."""
        new = new_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(connection.alias, new):
            return None
        old = old_state.apps.get_model(app_label, self.model_name)
        return planning.move_of(
            old._meta.get_field(self.name),
            new._meta.get_field(self.name),
            self.generic,
            connection,
            forwards,
        )

    def _run(
        self,
        app_label: str,
        schema_editor: Any,
        old_state: Any,
        new_state: Any,
        *,
        forwards: bool,
    ) -> None:
        connection = schema_editor.connection
        with _in_transaction(connection):
            for step in self.steps(
                app_label, connection, old_state, new_state, forwards=forwards
            ):
                step.run(schema_editor)


def _in_transaction(connection: Any) -> AbstractContextManager[object]:
    """Make all of it one transaction, also in a migration that is not atomic."""
    if connection.features.can_rollback_ddl:
        atomic: AbstractContextManager[object] = transaction.atomic(
            using=connection.alias
        )
        return atomic
    return nullcontext()
