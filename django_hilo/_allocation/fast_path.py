"""Where a thread found the last id of a model, so that it finds the next at once.

All that ids depend on is looked at when a block of them is made, and most of it ends
the blocks when it changes: settings, returns, explicit ids, forks. What nobody tells is
looked at each time: whether the thread's connection is to the same database still, and
has no schema. Models that a router places are asked for anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hilo._allocation import pool
from django_hilo._allocation.block import Block
from django_hilo._allocation.target import AnyTarget, Target
from django_hilo._database.connection import has_schemas

# A block's ids, and what must not have changed: the variables of the thread's
# connection; of its alias in DATABASES the NAME, HOST and PORT. A plain tuple, which is
# unpacked fastest.
Shortcut = tuple[Iterator[Any], dict[str, Any], dict[str, Any], str, Any, Any, Any]


class _Known(threading.local):
    def __init__(self) -> None:
        # By model, for callers that name no database, and by the one they name.
        self.unnamed: dict[Any, Shortcut] = {}
        self.named: dict[str, dict[Any, Shortcut]] = {}

    def of(self, using: str | None) -> dict[Any, Shortcut]:
        """Return what is known of models on the database that a caller names."""
        return self.unnamed if using is None else self.named.setdefault(using, {})


known = _Known()


def is_steady(connection: BaseDatabaseWrapper) -> bool:
    """Whether this thread's next ids by its connection come from the same counter."""
    return not router.routers and not has_schemas(connection)


def learn(target: AnyTarget, using: str | None, resolved: Target, block: Block) -> None:
    """Remember for this thread where the ids of a model come from."""
    # Models of migrations and of isolated tests come and go.
    if not isinstance(target, type) or target._meta.apps is not apps:
        return
    alias = resolved.using
    connection, databases = connections[alias], connections.settings
    database = connection.settings_dict
    if is_steady(connection) and databases[alias] is database:
        known.of(using)[target] = (
            block.ids,
            vars(connection),
            databases,
            alias,
            database["NAME"],
            database["HOST"],
            database["PORT"],
        )


def forget_settings(setting: str, **kwargs: object) -> None:
    """Let changed settings hold from the next id on (setting_changed)."""
    if setting in {"HILO", "DATABASE_ROUTERS", "DATABASES"}:
        pool.current().recall()


setting_changed.connect(
    forget_settings, dispatch_uid="django_hilo._allocation.fast_path"
)
