"""The MoveToHiLo operations of a migration, and the states that they run between."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.apps import apps
from django.db.migrations.loader import AmbiguityError, MigrationLoader
from django.db.migrations.state import ProjectState

from django_hilo.exceptions import HiLoError
from django_hilo.moving.operations import MoveToHiLo


class Found(NamedTuple):
    """An operation, and the states before and after it."""

    migration: Any
    operation: MoveToHiLo
    before: Any
    after: Any


def moves_in(
    app_label: str, name: str, connection: Any, *, is_applied: bool
) -> list[Found]:
    """Return the moves of a migration, the last first where it is applied.

    ``name`` may be the start of a name. Raises `HiLoError` where there are none, and
    where the migration is not ``is_applied``, or comes after others that are not.
    """
    loader = MigrationLoader(connection)
    migration = _find(loader, app_label, name)
    node = (migration.app_label, migration.name)
    if (node in loader.applied_migrations) is not is_applied:
        raise HiLoError(
            f"{migration} is {'not ' if is_applied else ''}applied on "
            f"{connection.alias!r}, so there is nothing to move"
            f"{' back' if is_applied else ''}."
        )
    if is_applied:
        state = _state_before(loader, migration)
    else:
        state = _state_of_applied(loader, migration)
    found = []
    for operation in migration.operations:
        before = state.clone()
        operation.state_forwards(migration.app_label, state)
        if isinstance(operation, MoveToHiLo):
            found.append(Found(migration, operation, before, state.clone()))
    if not found:
        raise HiLoError(f"{migration} has no MoveToHiLo.")
    return found[::-1] if is_applied else found


def _find(loader: MigrationLoader, app_label: str, name: str) -> Any:
    try:
        apps.get_app_config(app_label)
        return loader.get_migration_by_prefix(app_label, name)
    except (AmbiguityError, LookupError) as error:
        found = "more than one" if isinstance(error, AmbiguityError) else "no"
        raise HiLoError(
            f"There is {found} migration of {app_label!r} that starts with {name!r}."
        ) from error


def _state_of_applied(loader: MigrationLoader, migration: Any) -> Any:
    """Return the state that `migrate` goes on from: of all that is applied."""
    node = (migration.app_label, migration.name)
    plan = loader.graph.forwards_plan(node)
    missing = [each for each in plan if each not in loader.applied_migrations]
    if missing != [node]:
        names = ", ".join(".".join(each) for each in missing if each != node)
        raise HiLoError(f"Before {migration} come {names}: apply them first.")
    applied = [each for each in loader.applied_migrations if each in loader.graph.nodes]
    return loader.project_state(applied)


def _state_before(loader: MigrationLoader, migration: Any) -> Any:
    """Return the state before a migration, as `migrate` has it on the way back."""
    state = ProjectState(real_apps=loader.unmigrated_apps)
    seen = set()
    for leaf in loader.graph.leaf_nodes():
        for node in loader.graph.forwards_plan(leaf):
            if node == (migration.app_label, migration.name):
                return state
            if node not in seen and node in loader.applied_migrations:
                loader.graph.nodes[node].mutate_state(state, preserve=False)
            seen.add(node)
    return state
