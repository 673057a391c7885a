"""Keys that name their database: ``eu:orders/A`` is the row ``orders/A`` on ``eu``.

Ids without an alias are those of the first database. So two tabs, or an old entry of
the history, never mix databases up.
"""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models

from django_hilo._operations.locations import homes


def home_databases() -> list[str]:
    """Return the databases that may hold counters; at least one."""
    return homes() or [DEFAULT_DB_ALIAS]


def split(object_id: str) -> tuple[str, str]:
    """Return the alias and the primary key that an id of the admin stands for."""
    first = home_databases()[0]
    for alias in connections:
        if alias != first and object_id.startswith(f"{alias}:"):
            return alias, object_id.removeprefix(f"{alias}:")
    # A colon of its own comes from SQL: the grammar of collections has none.
    return first, object_id


def key_of(obj: models.Model) -> str:
    """Return the primary key of an object that may have been qualified."""
    return split(obj.pk)[1]


def qualify(obj: Any) -> Any:
    """Add the database to the primary key of an object, for links and history."""
    using = obj._state.db
    if using != home_databases()[0] and not obj.pk.startswith(f"{using}:"):
        obj.pk = f"{using}:{obj.pk}"
    return obj
