"""Find the counter of a collection that a user or another program names."""

from django.db import DEFAULT_DB_ALIAS, router
from django.utils.translation import gettext as _

from django_hilo._allocation import memory
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.find import resolve
from django_hilo._allocation.registry import fields_of, home_of, named_source
from django_hilo._operations.locations import gapless_fields_of
from django_hilo.counters.own import OwnSource
from django_hilo.exceptions import RangeNotLent
from django_hilo.identifiers import check_collection, is_counter_name
from django_hilo.models import GaplessCounter, HiLoDocument


def counter_of(collection: str, using: str | None) -> Counter:
    """Return the counter of a collection, whatever its case, known or not.

    The name of a series' counter is one, too. Raises `InvalidDocumentId` for what
    cannot be a collection. ``using`` as in `resolve`.
    """
    if is_counter_name(collection):
        using = home_of(using or DEFAULT_DB_ALIAS)
        return Counter(collection, using, OwnSource(collection, ""))
    check_collection(collection)  # no label, which resolve() would take too
    fields = fields_of(collection)
    # Without a model no spelling is the right one, so all have the one in lower case.
    return resolve(fields[0] if fields else collection.lower(), using)


def known_counter(collection: str, using: str | None = None) -> Counter:
    """Return the counter of a collection that a model or a stored counter knows.

    Raises LookupError for any other, so that a typo does not create a counter, and
    else as `counter_of`.
    """
    _refuse_series(collection)
    counter = counter_of(collection, using)
    is_known = counter.field is not None or not isinstance(counter.source, OwnSource)
    # A counter that this process drew from needs no look into the database.
    if not is_known and not memory.current().seen(counter.key):
        key = HiLoDocument.key(counter.collection, counter.node_tag)
        if not HiLoDocument.objects.using(counter.using).filter(pk=key).exists():
            raise LookupError(
                _(
                    "No model has ids of %(collection)r, and %(database)r has no "
                    "counter %(counter)r. Check the spelling, or add the counter in "
                    "the admin."
                )
                % {"collection": collection, "counter": key, "database": counter.using}
            )
    return counter


def known_gapless_counter(collection: str, using: str | None = None) -> Counter:
    """Return as `known_counter`, also where only a gapless counter knows it.

    On the database of the rows: that is where gapless numbers are counted. Raises
    `RangeNotLent` for a collection with a source.
    """
    _refuse_series(collection)
    source = named_source(check_collection(collection))
    if source is not None:
        raise RangeNotLent(
            _(
                "Gapless ids of %(collection)r could equal the ids from %(source)s, "
                "which have no node tag. Use another collection."
            )
            % {"collection": collection, "source": source.name}
        )
    numbered, named = gapless_fields_of(collection), fields_of(collection)
    if numbered:
        field = numbered[0]
        alias = using or router.db_for_write(field.model)
        source = OwnSource(field.collection_name, "")
        return Counter(source.collection, alias, source, named[0] if named else None)
    counter = counter_of(collection, using)
    alias = using or router.db_for_write(named[0].model if named else GaplessCounter)
    counters = GaplessCounter.objects.using(alias)
    if not named and not counters.filter(pk=counter.collection.lower()).exists():
        known_counter(collection, using)
    parts = (counter.source, counter.field, counter.width)
    return Counter(counter.collection, alias, *parts)


def _refuse_series(collection: str) -> None:
    """Raise LookupError for a series, whose numbers only the saves of objects give."""
    if is_counter_name(collection):
        raise LookupError(
            _(
                "%(collection)r is a series: its numbers are assigned when objects are "
                "saved."
            )
            % {"collection": collection}
        )
