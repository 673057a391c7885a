"""Targets that are found once: what a caller names, and the counter of its ids.

They belong to the pool of the process, so a fork, a flush and changed settings forget
them, and to a thread, because only its connection knows of a schema. What may give
another answer the next time is not kept: instances of sources, models of other
registries, projects with routers, connections that switch schemas.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import connections, models, router
from django.dispatch import receiver

from django_hilo._allocation import pool
from django_hilo._allocation.pool import Counter
from django_hilo._allocation.target import AnyTarget, Target, is_counter_field, resolve
from django_hilo._database.identity import has_schemas
from django_hilo._database.own_connection import in_tests
from django_hilo.counters.own import OwnCounter
from django_hilo.counters.ranges import Reservation
from django_hilo.identifiers import IdFormat

_MOST = 1_000


class KnownTarget:
    """A target, its counter, and what must not have changed since it was found."""

    def __init__(self, target: Target) -> None:
        alias = target.using
        self.target = target
        # Whether a TestCase has its numbers in memory of its own.
        self.is_tested = in_tests() and isinstance(target.source, OwnCounter)
        # Only the connection of the thread that runs sync code knows the tenant's
        # schema, and the TestCase.
        has_schema = target.key.database.schema is not None
        self.is_of_sync_thread = has_schema or self.is_tested
        self.counter: Counter = pool.current().counter(target.key)
        self.connection = vars(connections[alias])
        self.database: dict[str, Any] = connections.settings[alias]
        self.place = tuple(self.database[each] for each in ("NAME", "HOST", "PORT"))
        self.models = _installed()
        # The reservation of the last id, and the format of its ids: read at once.
        self.format: tuple[Reservation | None, IdFormat | None] = (None, None)

    def id_of(self, number: int, reservation: Reservation) -> Any:
        """Return the id of a number of a range."""
        of, format = self.format
        if of is not reservation:
            format = self.target.format_of(reservation)
            self.format = reservation, format
        return number if format is None else format.text(number)


def known_target(target: AnyTarget, using: str | None) -> KnownTarget:
    """Return what `resolve` finds for a target, remembered where that is safe."""
    called: tuple[Any, str | None] = target, using
    if isinstance(target, models.Model):
        called = type(target), using or target._state.db
    found = pool.current().known_targets.by_name
    try:
        known: KnownTarget = found[called]
    except (KeyError, TypeError):  # TypeError: `resolve` says what is wrong
        pass
    else:
        database, (name, host, port) = known.database, known.place
        if (
            connections.settings.get(known.target.using) is database
            and database["NAME"] is name
            and database["HOST"] is host
            and database["PORT"] is port
            and "schema_name" not in known.connection
            and not router.routers
            # Another model may have the collection since models were loaded.
            and (not isinstance(called[0], str) or known.models is _installed())
        ):
            return known
    known = KnownTarget(resolve(target, using))
    if _is_kept(called[0], known):
        if len(found) >= _MOST:
            found.clear()
        found[called] = known
    return known


def _is_kept(named: Any, known: KnownTarget) -> bool:
    connection = connections[known.target.using]
    if is_counter_field(named):
        named = named.model
    # Texts and sources have none.
    options: Any = getattr(named, "_meta", None)
    is_installed = options is not None and options.apps is apps
    return (
        (is_installed or isinstance(named, str))
        and not router.routers
        and not has_schemas(connection)
        and connections.settings[connection.alias] is connection.settings_dict
    )


def _installed() -> list[type[models.Model]]:
    # Django keeps this list until the installed apps change.
    return apps.get_models(include_auto_created=True)


@receiver(setting_changed)
def forget_settings(setting: str, **kwargs: object) -> None:
    """Let changed settings take effect from the next id on."""
    if setting in {"HILO", "DATABASE_ROUTERS", "DATABASES"}:
        pool.current().forget_targets()
