"""The databases and counters that RavenDB's names stand for."""

from __future__ import annotations

from django_hilo._allocation.target import Target, fields_of
from django_hilo._operations import remote
from django_hilo.conf import settings
from django_hilo.identifiers import shown
from django_hilo.models import HiLoDocument
from django_hilo.ravendb.protocol import Refusal
from django_hilo.sources.own import OwnCounter

# From so many on no tag makes another.
MOST_COUNTERS = 10_000


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


def check_room(target: Target) -> None:
    """Raise `Refusal` where a new tag would make one counter too many.

    RavenDB's protocol lets each new tag make one, so that a program which invents tags
    would fill the table.
    """
    if fields_of(target.collection) or not isinstance(target.source, OwnCounter):
        return
    rows = HiLoDocument.objects.using(target.using)
    key = HiLoDocument.key(target.collection, target.node_tag)
    if not rows.filter(pk=key).exists() and rows.count() >= MOST_COUNTERS:
        raise Refusal(
            400,
            "System.InvalidOperationException",
            f"{shown(target.collection)} has no counter, and there are {MOST_COUNTERS} "
            f"already: mind the spelling, or add it in the admin.",
        )


def gapless_counter_of(collection: str, database: str) -> tuple[str, str]:
    """Return a known collection in lower case, and the alias of its gapless numbers.

    Raises `Refusal` if neither a model nor a counter knows it, so that a typo does not
    create a counter: 400, since of a 404 neither client shows the message.
    """
    alias = alias_of(database)
    try:
        target = remote.known_gapless_target(collection, alias)
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
