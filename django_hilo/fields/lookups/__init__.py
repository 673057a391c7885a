"""Lookups on ids: ``id__number``, ``id__collection``, ``id__node_tag``, ``id__anchor``
and ``id__bucket`` filter, order and annotate by a part of an id, on every database.

`identifiers.parse` defines ids, `identifiers.anchor_in` anchors.
"""

from __future__ import annotations

from django_hilo.fields.lookups import sqlite
from django_hilo.fields.lookups.parts import Anchor, Bucket, Collection, NodeTag, Number
from django_hilo.fields.text import IdField

__all__ = ["Anchor", "Bucket", "Collection", "NodeTag", "Number", "register"]


def register() -> None:
    """Add the lookups to the fields of ids, and their functions to SQLite."""
    for transform in (Number, Collection, NodeTag, Anchor, Bucket):
        IdField.register_lookup(transform)
    sqlite.register()
