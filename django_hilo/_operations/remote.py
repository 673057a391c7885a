"""Lend numbers and ranges to other programs, over REST and RavenDB's protocol.

A lent range belongs to the program that asked for it: this process keeps nothing of it.
"""

from django.db import InterfaceError, OperationalError, router
from django.utils.translation import gettext as _

from django_hilo._allocation import pool
from django_hilo._allocation.target import (
    AnyTarget,
    Target,
    fields_of,
    named_source,
    resolve,
)
from django_hilo._operations.table_scan import gapless_fields_of
from django_hilo.counters import reservation, returning
from django_hilo.counters.own import OwnCounter
from django_hilo.counters.ranges import Reservation, Wanted
from django_hilo.exceptions import RangeNotLent
from django_hilo.identifiers import check_collection
from django_hilo.models import GaplessCounter, HiLoDocument

# Errors of a request that may succeed if it is sent again.
BUSY = (OperationalError, InterfaceError)


def target_of(collection: str, using: str | None) -> Target:
    """Return the counter of a collection, whatever its case, known or not.

    Raises `InvalidDocumentId` for what cannot be a collection. ``using`` as in
    `resolve`.
    """
    check_collection(collection)  # no label, which resolve() would take too
    fields = fields_of(collection)
    # Without a model no spelling is the right one, so all have the one in lower case.
    return resolve(fields[0] if fields else collection.lower(), using)


def known_target(collection: str, using: str | None = None) -> Target:
    """Return the counter of a collection that a model or a stored counter knows.

    Raises LookupError for any other, so that a typo does not create a counter, and
    else as `target_of`.
    """
    target = target_of(collection, using)
    # A counter that this process drew from needs no look into the database.
    is_own = isinstance(target.source, OwnCounter)
    is_known = target.field is not None or not is_own
    if not is_known and not pool.current().seen(target.key):
        key = HiLoDocument.key(target.collection, target.node_tag)
        if not HiLoDocument.objects.using(target.using).filter(pk=key).exists():
            raise LookupError(
                _(
                    "No model has ids of %(collection)r, and %(database)r has no "
                    "counter %(counter)r. Check the spelling, or add the counter in "
                    "the admin."
                )
                % {"collection": collection, "counter": key, "database": target.using}
            )
    return target


def known_gapless_target(collection: str, using: str | None = None) -> Target:
    """Return as `known_target`, also where only a gapless counter knows it.

    On the database of the rows: that is where gapless numbers are counted. Raises
    `RangeNotLent` for a collection with a source.
    """
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
        source = OwnCounter(field.collection_name, "")
        return Target.of(source.collection, alias, source, named[0] if named else None)
    target = target_of(collection, using)
    alias = using or router.db_for_write(named[0].model if named else GaplessCounter)
    counters = GaplessCounter.objects.using(alias)
    if not named and not counters.filter(pk=target.collection.lower()).exists():
        known_target(collection, using)
    return target._replace(using=alias)


def lend(
    target: AnyTarget,
    size: int,
    using: str | None = None,
    *,
    at_least: int | None = None,
    minimum: int = 0,
    issuer: str = "",
) -> Reservation:
    """Reserve ``size`` numbers for another program, as `reserve` does.

    They start over ``minimum``, the rows, and all that this process has seen. Near
    2^63-1 there may be fewer, but not than ``at_least`` (``None``: all). Raises
    `RangeNotLent` where the counter is no HiLoDocument.
    """
    resolved = resolve(target, using)
    source = resolved.source
    if not isinstance(source, OwnCounter):
        raise RangeNotLent(
            _(
                "The numbers of %(collection)r on %(database)r come from %(source)s, "
                "whose ranges cannot be given to other programs. Request single ids "
                "instead (next-id)."
            )
            % {
                "collection": resolved.collection,
                "database": resolved.using,
                "source": source.name,
            }
        )
    seen = pool.current().seen(resolved.key)
    least = size if at_least is None else at_least
    minimum = max(minimum, seen, source.minimum_of_rows(resolved.using))
    wanted = Wanted(size, least, minimum, issuer=issuer)
    [lent] = source.reserve(resolved.using, wanted)
    reservation.send_reserved(lent, resolved.using)
    return lent


def take_back(
    target: Target, high: int, last: int, ticket: str = "", issuer: str = ""
) -> int:
    """Take the unused end of a lent range back, and return Max, as `return_range`."""
    source = target.source
    return returning.return_range(
        target.collection,
        high,
        last,
        ticket,
        issuer=issuer,
        node_tag=target.node_tag,
        column=source.shared_column if isinstance(source, OwnCounter) else None,
        using=target.using,
    )
