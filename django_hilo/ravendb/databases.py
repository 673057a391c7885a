"""The databases and counters that RavenDB's names stand for."""

from __future__ import annotations

from django_hilo import lending
from django_hilo.conf import settings
from django_hilo.ravendb.protocol import Refusal, shown
from django_hilo.targets import Target, fields_of, resolve


def alias_of(database: str) -> str:
    """Return the alias that a name stands for, whatever its case, or raise `Refusal`.

    400, since of a 404 neither client shows the message.
    """
    wanted = database.lower()
    for name, alias in settings.RAVENDB_DATABASES.items():
        if name.lower() == wanted:
            return alias
    raise Refusal(
        400,
        "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException",
        f"There is no database {shown(database)} here: mind the spelling, or have it "
        f"added to HILO['RAVENDB_DATABASES'].",
    )


def target_of(tag: str, database: str) -> Target:
    """Return the counter of a tag, whatever its case; no model need know it."""
    fields = fields_of(tag)
    return resolve(fields[0] if fields else tag, alias_of(database))


def gapless_counter_of(collection: str, database: str) -> tuple[str, str]:
    """Return a known collection in lower case, and the alias of its gapless numbers.

    Raises `Refusal` where neither a model nor a counter knows it, so that a typing
    error makes no counter: 400, since of a 404 neither client shows the message.
    """
    alias = alias_of(database)
    try:
        target = lending.known_gapless_target(collection, alias)
    except LookupError:
        raise Refusal(
            400,
            "System.InvalidOperationException",
            f"There is no identity {shown(collection)} here, nor a model that has ids "
            f"of it: mind the spelling, or seed it first.",
        ) from None
    return target.collection.lower(), target.using


def server_tag_of(target: Target) -> str:
    """Return what RavenDB's clients put after the number; they need some text."""
    return target.node_tag or settings.node_tag(target.using)
