"""Lookups on ids: ``id__number``, ``id__collection``, ``id__node_tag``, ``id__anchor``
and ``id__bucket`` filter, order and annotate by a part of an id, on every database.

What an id is, `identifiers.parse` says; what an anchor is, `identifiers.anchor_in`.
"""

from __future__ import annotations

from django_hilo.fields.base import IdField
from django_hilo.lookups import sqlite
from django_hilo.lookups.parts import Anchor, Bucket, Collection, NodeTag, Number

__all__ = ["Anchor", "Bucket", "Collection", "NodeTag", "Number", "register"]


def register() -> None:
    """Add the lookups to the fields of ids, and their functions to SQLite."""
    for transform in (Number, Collection, NodeTag, Anchor, Bucket):
        IdField.register_lookup(transform)
    sqlite.register()
