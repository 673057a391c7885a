"""The moves of a migration, and the states that they run between."""

from typing import Any, NamedTuple

from django.apps import apps
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import AmbiguityError
from django.db.migrations.state import ProjectState

from django_hilo.exceptions import HiLoError
from django_hilo.moving.operations import MoveKey, together


class Found(NamedTuple):
    """An operation that runs itself, and the states before and after it."""

    migration: Any
    operation: MoveKey
    before: Any
    after: Any


def moves_in(
    app_label: str, name: str, connection: Any, *, is_applied: bool
) -> list[Found]:
    """Return the moves of a migration, in reverse order if it ``is_applied``.

    ``name`` may be the start of a name. Raises `HiLoError` if there are none, if the
    migration is not as ``is_applied`` says, or if others have to be applied first.
    """
    executor = MigrationExecutor(connection)
    migration = _find(executor.loader, app_label, name)
    node = (migration.app_label, migration.name)
    if (node in executor.loader.applied_migrations) is not is_applied:
        raise HiLoError(
            f"{migration} is {'not ' if is_applied else ''}applied on "
            f"{connection.alias!r}, so there is nothing to "
            f"move{' back' if is_applied else ''}."
        )
    if not is_applied:
        before = [each for each, _ in executor.migration_plan([node])][:-1]
        if before:
            names = ", ".join(map(str, before))
            raise HiLoError(f"Apply {names} before {migration}.")
    state = _state_of(executor, migration)
    found = []
    for operation in migration.operations:
        old = state.clone()
        operation.state_forwards(migration.app_label, state)
        if isinstance(operation, MoveKey) and together(operation)[0] is operation:
            found.append(Found(migration, operation, old, state.clone()))
    if not found:
        raise HiLoError(f"{migration} contains no MoveToHiLo or MoveFromHiLo yet.")
    return found[::-1] if is_applied else found


def _find(loader: Any, app_label: str, name: str) -> Any:
    try:
        apps.get_app_config(app_label)
        return loader.get_migration_by_prefix(app_label, name)
    except (AmbiguityError, LookupError) as error:
        found = "more than one" if isinstance(error, AmbiguityError) else "no"
        raise HiLoError(
            f"There is {found} migration of {app_label!r} that starts with {name!r}."
        ) from error


def _state_of(executor: MigrationExecutor, migration: Any) -> ProjectState:
    """Return the state in which `migrate` applies a migration, or undoes it."""
    loader = executor.loader
    state = ProjectState(real_apps=loader.unmigrated_apps)
    leaves = loader.graph.leaf_nodes()
    for each, _ in executor.migration_plan(leaves, clean_start=True):
        if (each.app_label, each.name) in loader.applied_migrations:
            if each == migration:
                break
            each.mutate_state(state, preserve=False)
    return state
