"""What the tables of the models hold: the highest number among the ids of a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import models, router

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import parse
from django_hilo.targets import CounterField, resolve

_CHUNK = 10_000


def fields_on(using: str) -> Iterator[Any]:
    """Yield the HiLo fields whose tables a database holds."""
    for model in apps.get_models():
        if model._meta.proxy or not router.allow_migrate_model(using, model):
            continue
        for field in model._meta.local_fields:
            if isinstance(field, CounterField):
                yield field


def highest_number(field: models.Field[Any, Any], using: str) -> int:
    """Return the highest number of the field's own counter in its table, else 0.

    Ids of other nodes, other collections and other shapes do not count. Reads the whole
    column in chunks, without loading objects.
    """
    assert isinstance(field, CounterField)
    target = resolve(field, using)
    rows = field.model._base_manager.using(using).order_by()
    texts = rows.values_list(field.attname, flat=True).iterator(chunk_size=_CHUNK)
    highest = 0
    for text in texts:
        try:
            document_id = parse(text)
        except InvalidDocumentId:
            continue
        if (
            document_id.number > highest
            and document_id.collection.lower() == target.collection.lower()
            and document_id.node_tag in ("", target.node_tag)
        ):
            highest = document_id.number
    return highest
