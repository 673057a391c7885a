"""Ids that server prefixes would give, to show before they are saved."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from django.db import Error
from django.db.models import F

from django_hilo._allocation.target import fields_of
from django_hilo.conf import settings
from django_hilo.identifiers import id_end, id_start
from django_hilo.models import HiLoDocument

_COLLECTION = "orders"  # where a node has no counter yet


class Example(NamedTuple):
    """A collection as ids show it, and the digits of its counter's next number."""

    collection: str
    digits: str

    @classmethod
    def of(cls, collection: str | None, number: int) -> Example:
        """Return the example of a counter; None: of one that does not exist yet."""
        fields = fields_of(collection or _COLLECTION)
        name = fields[0].collection_name if fields else collection or _COLLECTION
        width = getattr(fields[0], "width", None) if fields else None
        return cls(name, str(number).zfill(width or 0))

    def id_with(self, prefix: str, node_tag: str) -> str:
        """Return the id with a prefix, as the settings shape it now."""
        start = id_start(self.collection, settings.SEPARATOR, prefix)
        return (
            f"{start}{self.digits}{id_end(node_tag if settings.SHOW_NODE_TAG else '')}"
        )


def newest_first(counters: Any) -> Any:
    """Order counters so that the one in use comes first."""
    return counters.order_by(F("reserved_at").desc(nulls_last=True), "pk")


def _counters(alias: str) -> list[HiLoDocument]:
    counters = newest_first(HiLoDocument.objects.using(alias))
    try:
        found = list(counters.only("collection", "node_tag", "max", "floor"))
    except Error:
        return []  # a database that is away spoils no page of the others
    # Integer keys have no prefix.
    return [each for each in found if not _is_integer(each)]


def _is_integer(counter: HiLoDocument) -> bool:
    fields = fields_of(counter.collection)
    return bool(fields) and bool(fields[0].is_integer)


def examples(databases: list[str]) -> str:
    """Return, as JSON, what stands before the prefix and the next number of each node.

    ``{database: {node tag: [start, number]}}``; the tag "" is that of any other node.
    Numbers are texts: JavaScript's are exact up to 2^53 only.
    """
    found = {}
    for alias in databases:
        by_tag = {"": Example.of(None, 1)}
        for counter in _counters(alias):
            example = Example.of(counter.collection, counter.next_low)
            by_tag.setdefault(counter.node_tag, example)
        found[alias] = {
            tag: [id_start(e.collection, settings.SEPARATOR, ""), e.digits]
            for tag, e in by_tag.items()
        }
    return json.dumps(found)
