"""Migrations with moves, which `makemigrations` writes instead of AlterField."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import get_commands, load_command_class
from django.db import connections, models
from django.db.migrations.operations import AlterField
from django.db.migrations.operations.base import Operation
from django.db.migrations.writer import MigrationWriter

from django_hilo.exceptions import HiLoError
from django_hilo.fields import HiLoField
from django_hilo.moving.operations import MoveFromHiLo, MoveKey, MoveToHiLo
from django_hilo.moving.relations import columns_of


def writing_command() -> Any:
    """Return the project's own `makemigrations`, which now writes moves."""
    name = "makemigrations"
    command: Any = load_command_class(get_commands()[name], name)
    command.autodetector = type("Moves", (_Moves, command.autodetector), {})
    return command


class _Moves:
    """Makes an autodetector replace AlterField by moves."""

    from_state: Any
    renamed_models: dict[tuple[str, str], str]

    def arrange_for_graph(self, changes: Any, *args: Any, **kwargs: Any) -> Any:
        """Replace operations before the migrations are named after them."""
        for migration in _migrations_in(changes):
            migration.operations = [
                new
                for operation in migration.operations
                for new in self._replaced(migration.app_label, operation)
            ]
        # The next base is the project's autodetector, which mypy cannot know.
        return super().arrange_for_graph(changes, *args, **kwargs)  # type: ignore[misc]

    def changes(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the changes, with the dependencies of their moves.

        Raises `HiLoError` if there is no move, and if a file would be overwritten.
        """
        found = super().changes(graph, *args, **kwargs)  # type: ignore[misc] # as above
        has_moves = False
        for migration in _migrations_in(found):
            if Path(MigrationWriter(migration).path).exists():
                raise HiLoError(f"{migration} exists already. Use another --name.")
            for operation in migration.operations:
                if isinstance(operation, MoveKey):
                    has_moves = True
                    needed = self._needed_by(migration.app_label, operation, graph)
                    migration.dependencies += needed - set(migration.dependencies)
        if not has_moves:
            raise HiLoError(
                "No key changed from an integer or UUID to a HiLoField, or back, since "
                "the last migration. Change the model first. If makemigrations has "
                "written the change, delete its migration, unless that is applied."
            )
        return found

    def _replaced(self, app_label: str, operation: Operation) -> Iterator[Operation]:
        """Yield the operations in place of one."""
        field: Any = getattr(operation, "field", None)
        if not isinstance(operation, AlterField) or not field.primary_key:
            yield operation
            return
        plain_key = (models.IntegerField, models.UUIDField)
        old = self._old_key(app_label, operation)
        if isinstance(old, HiLoField) and isinstance(field, plain_key):
            yield MoveFromHiLo(operation.model_name, operation.name, field)
            return
        if not (isinstance(old, plain_key) and isinstance(field, HiLoField)):
            yield operation
            return
        options = field.deconstruct()[3]
        # For new ids only.
        later = [options.pop(name, None) for name in ("anchor", "convention")]
        plain = type(field)(**options)
        yield MoveToHiLo(operation.model_name, operation.name, plain)
        if any(later):
            yield operation

    def _old_key(self, app_label: str, operation: Any) -> Any:
        name = operation.model_name_lower
        old_name = self.renamed_models.get((app_label, name), name)
        model = self.from_state.apps.get_model(app_label, old_name)
        return model._meta.get_field(operation.name)

    def _needed_by(
        self, app_label: str, operation: Any, graph: Any
    ) -> set[tuple[str, str]]:
        """Return the last migrations of the apps that refer to the key, and of ours."""
        key = self._old_key(app_label, operation)
        apps = {"django_hilo"}
        for alias in connections:
            apps |= {
                each.new.model._meta.app_label for each in columns_of(key, key, alias)
            }
        return {node for each in apps - {app_label} for node in graph.leaf_nodes(each)}


def _migrations_in(changes: dict[str, list[Any]]) -> Iterator[Any]:
    for migrations in changes.values():
        yield from migrations
