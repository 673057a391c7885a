"""The databases and counters that the names in RavenDB's requests stand for."""

from typing import Any

from django_hilo._allocation.counter import Counter
from django_hilo._allocation.registry import fields_of
from django_hilo._operations import known_counters
from django_hilo.conf import settings
from django_hilo.counters.own import OwnSource
from django_hilo.identifiers import shown
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.ravendb.protocol import Refusal

# Clients may create this many counters in total, and this many each: a faulty program
# must not fill the table, or leave no room for the others.
MOST_COUNTERS = 10_000
MOST_OF_ONE = 1_000


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
        f"There is no database {shown(database)} here: check the spelling, or add it "
        f"to HILO['RAVENDB_DATABASES'].",
    )


def make_counter(counter: Counter, caller: str) -> None:
    """Make the counter of a new tag, as RavenDB does, or raise `Refusal`."""
    tag = counter.node_tag
    if not fields_of(counter.collection) and isinstance(counter.source, OwnSource):
        key = HiLoDocument.key(counter.collection, tag)
        row = HiLoDocument(id=key, collection=counter.collection, node_tag=tag)
        _make(row, counter.using, caller)


def gapless_counter_of(collection: str, database: str, caller: str) -> tuple[str, str]:
    """Return a collection in lower case, and the alias of its gapless numbers.

    Makes the counter of a new name, as RavenDB does, or raises `Refusal`.
    """
    alias = alias_of(database)
    try:
        counter = known_counters.known_gapless_counter(collection, alias)
    except LookupError:
        row = GaplessCounter(collection=collection.lower())
        _make(row, alias, caller)
        return row.collection, alias
    return counter.collection.lower(), counter.using


def _make(row: Any, using: str, caller: str) -> None:
    """Insert a counter unless it is there, or raise `Refusal` if there are too many."""
    rows = type(row)._default_manager.using(using)
    if rows.filter(pk=row.pk).exists():
        return
    made = rows.filter(made_by=caller).count()
    if made >= MOST_OF_ONE or rows.count() >= MOST_COUNTERS:
        raise Refusal(
            400,
            "System.InvalidOperationException",
            f"{shown(row.collection)} has no counter. Clients can create at most "
            f"{MOST_OF_ONE} each and {MOST_COUNTERS} in total: check the spelling, or "
            f"add the counter in the admin.",
        )
    row.made_by = caller
    rows.bulk_create([row], ignore_conflicts=True)
