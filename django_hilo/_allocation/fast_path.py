"""Shortcuts to the next id of a model, and endless iterators of ids.

`take_id` remembers, for each thread, the iterator that gave the last id of a model.
Everything that ids depend on is looked at when the iterator is made, and most changes
end it: of settings, returns, explicit ids, forks. The others are checked for each id:
the thread's connection must still be to the same database, without a schema. Models
that a router places have no shortcut.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import receiver

from django_hilo._allocation import pool
from django_hilo._allocation.allocate import allocate, allocate_id, cut_in_memory
from django_hilo._allocation.block import shared
from django_hilo._allocation.cache import Slice
from django_hilo._allocation.target import AnyTarget, Target, ids_of, resolve
from django_hilo._database.connection import has_schemas

# The ids, and what must not have changed: the variables of the thread's connection; the
# NAME, HOST and PORT of its alias in DATABASES. A plain tuple is unpacked fastest.
Shortcut = tuple[Iterator[Any], dict[str, Any], dict[str, Any], str, Any, Any, Any]


class _Known(threading.local):
    def __init__(self) -> None:
        # By the database that callers name, or None, and by model.
        self.by_alias: dict[str | None, dict[Any, Shortcut]] = defaultdict(dict)


known = _Known()


def take_id(target: AnyTarget, using: str | None) -> tuple[Any, Slice | None]:
    """Return the next id of a target, and its slice if it is not out of a block."""
    ids = None
    try:
        shortcuts = known.by_alias[using]
        ids, connection, databases, alias, name, host, port = shortcuts[target]
        database = databases[alias]
        if (
            database["NAME"] is name
            and database["HOST"] is host
            and database["PORT"] is port
            and "schema_name" not in connection
        ):
            return next(ids), None
    except (KeyError, TypeError, StopIteration):
        pass  # unknown, unhashable, or the last one
    resolved = resolve(target, using)
    id, ids, one = allocate_id(resolved, ids)
    if ids is not None:
        _learn(target, using, resolved, ids)
    return id, one


def _learn(
    target: AnyTarget, using: str | None, resolved: Target, ids: Iterator[Any]
) -> None:
    """Remember for this thread where the ids of a model come from."""
    # Models of migrations and of isolated tests come and go.
    if not isinstance(target, type) or target._meta.apps is not apps:
        return
    alias = resolved.using
    connection, databases = connections[alias], connections.settings
    database = connection.settings_dict
    if _is_steady(connection) and databases[alias] is database:
        place = database["NAME"], database["HOST"], database["PORT"]
        shortcut = ids, vars(connection), databases, alias, *place
        known.by_alias[using][target] = shortcut


def stream(target: AnyTarget, using: str | None) -> Iterator[Any]:
    """Return the ids of a target without end; after an error the next call goes on."""
    ids: Iterator[Any] | None = None

    def following() -> Iterator[Any]:
        nonlocal ids
        try:
            resolved = resolve(target, using)
            if _is_steady(connections[resolved.using]):
                # In a variable of its own: another thread may change ``ids`` meanwhile.
                ids = found = cut_in_memory(resolved, ids)
                if found is not None:
                    return found
            # One id, if the place of the next one may be another.
            return iter(ids_of(resolved, allocate(resolved, 1)))
        except BaseException as error:  # noqa: BLE001 - raised where the id is asked for
            return _failing(error)

    return shared(chain.from_iterable(iter(following, None)))


def _failing(error: BaseException) -> Iterator[Any]:
    # An error raised in following() would end the chain.
    raise error
    yield


def _is_steady(connection: BaseDatabaseWrapper) -> bool:
    """Whether this thread's next ids by its connection come from the same counter."""
    return not router.routers and not has_schemas(connection)


@receiver(setting_changed)
def forget_settings(setting: str, **kwargs: object) -> None:
    """Let changed settings take effect from the next id on."""
    if setting in {"HILO", "DATABASE_ROUTERS", "DATABASES"}:
        for counter in pool.current().counters():
            counter.recall()
