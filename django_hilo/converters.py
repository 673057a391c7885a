"""Path converters: one id in a URL, and nothing of what follows it."""

from __future__ import annotations

import re
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.urls import register_converter
from django.urls.converters import get_converters

from django_hilo._allocation.target import AnyTarget, CounterField, field_of
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.fields import GaplessIdField
from django_hilo.fields.anchors import anchor_field
from django_hilo.fields.text import IdField
from django_hilo.identifiers import (
    DocumentId,
    check_collection,
    check_separator,
    parse,
    shown,
)
from django_hilo.patterns import ID_PATTERN, PARTS, TAGGED_PARTS, pattern_of

NAME = "hilo"


class HiLoConverter:
    """``<hilo:pk>``: one id of any collection, as a str; an anchored one in full.

    Left out, so that an id ends before what follows it: server prefixes with a part
    between slashes that is a number (``4/``, ``33-A/``), anchors with a slash that are
    no ids, more than 8 slashes in a prefix or 8 ``$`` in an id. Left out as well: parts
    ``.`` and ``..``, which browsers resolve, and halves of surrogate pairs.
    """

    regex = ID_PATTERN

    def to_python(self, value: str) -> str:
        """Return an id as it is; raises `InvalidDocumentId`, so that it is a 404."""
        parse(value)
        for text in value.split("$")[1:]:
            if "/" in text:
                parse(text)
        if not {".", ".."}.isdisjoint(value.split("/")):
            raise InvalidDocumentId(
                f"{shown(value)}: browsers resolve the parts . and .."
            )
        return value

    def to_url(self, value: object) -> str:
        """Return the text of an id; raises ValueError where it would not come back."""
        text = self.to_python(str(value))
        if not re.fullmatch(self.regex, text):
            raise InvalidDocumentId(
                f"{shown(text)} does not fit into a URL, where what follows could be a "
                f"part of it: leave numbers between slashes out of server prefixes, "
                f"and slashes out of anchors that are no ids."
            )
        text.encode()  # raises for half a character
        return text


class FieldConverter(HiLoConverter):
    """One id of a field, as `converter_for` makes it for each."""

    separator: str
    # The field, the one that its anchor names, the one that the anchor of that names.
    fields: tuple[IdField, ...]

    def to_python(self, value: str) -> str:
        """Return an id as it is; raises `InvalidDocumentId` for another field's."""
        rest = super().to_python(value)
        for field in self.fields:
            parts = parse(rest)
            if parts.separator != self.separator or not _is_of(field, parts):
                raise InvalidDocumentId(f"{shown(rest)} is no id of {field}.")
            if parts.anchor is None:
                break
            rest = parts.anchor
        return value


def register() -> None:
    """Register `hilo`; once, as Django 6 refuses a name that is taken."""
    if not isinstance(get_converters().get(NAME), HiLoConverter):
        register_converter(HiLoConverter, NAME)


def converter_for(target: AnyTarget) -> type[FieldConverter]:
    """Return a path converter for the ids of one field, to register under a name.

    ``target`` is a model, a label such as "shop.Order", or a field. The converter takes
    ids of the field's collection, in any case as counters do, with the separator of the
    settings at this moment; where the anchor is a relation to another such field, an
    anchor must be an id of that one. Limits are those of `HiLoConverter`, but for the
    server prefix ``4/`` where ids show node tags (and the field has no ``server_ids``).
    Raises LookupError for what has no such field, `HiLoError` for a field with a
    convention, whose ids have any shape, or with integers.
    """
    field = _field_of(target)
    if not isinstance(field, IdField):
        raise HiLoError(f"{field} holds no text ids; its converter is Django's <int:>.")
    if _has_convention(field):
        raise HiLoError(
            f"{field} has a convention, so its ids have any shape and no pattern says "
            f"where one ends. Use <path:> at the end of a route, or a converter of "
            f"your own."
        )
    chain = _chain(field)
    sign = check_separator(settings.SEPARATOR)

    class Converter(FieldConverter):
        regex = _pattern_of(chain, sign)
        separator = sign
        fields = chain

    return Converter


def _field_of(target: Any) -> Any:
    """Return the field of a target as `field_of` does; a gapless one is one too."""
    labelled = isinstance(target, str) and target.count(".") == 1
    options: Any = getattr(
        apps.get_model(target) if labelled else target, "_meta", None
    )
    if options is None:
        return target if isinstance(target, IdField) else field_of(target)
    fields = [
        each for each in options.fields if isinstance(each, IdField | CounterField)
    ]
    keys = [each for each in fields if each in options.pk_fields]
    chosen = keys or fields
    return chosen[0] if len(chosen) == 1 else field_of(target)


def _has_convention(field: IdField) -> bool:
    return getattr(field, "convention", None) is not None


def _chain(field: IdField) -> tuple[IdField, ...]:
    """Return a field and those that its anchor's ids come from, as far as is known."""
    fields = [field]
    while (following := _anchored_to(fields[-1])) and following not in fields:
        fields.append(following)
    return tuple(fields)


def _anchored_to(field: IdField) -> IdField | None:
    path = getattr(field, "anchor", None)
    if not isinstance(path, str):
        return None
    try:
        last = anchor_field(field.model, path)
        while last.is_relation:
            last = last.related_model._meta.pk
    except (FieldDoesNotExist, AttributeError, TypeError):
        return None  # a system check tells
    known = isinstance(last, IdField) and not _has_convention(last)
    return last if known else None


def _is_of(field: IdField, parts: DocumentId) -> bool:
    own = parts.collection.lower() == field.collection_name.lower()
    if isinstance(field, GaplessIdField):
        return own and not (parts.server_prefix or parts.node_tag or parts.anchor)
    return own


def _pattern_of(chain: tuple[IdField, ...], separator: str) -> str:
    collection = check_collection(chain[0].collection_name)
    start = "".join(map(_in_any_case, collection)) + f"\\x{ord(separator):02x}"
    first, *others = [TAGGED_PARTS if _shows_tag(each) else PARTS for each in chain]
    anchored = TAGGED_PARTS if others and PARTS not in others else PARTS
    return pattern_of(start, first, anchored)


def _shows_tag(field: IdField) -> bool:
    """Whether each id that a field gives ends in a node tag."""
    return settings.SHOW_NODE_TAG and not getattr(field, "server_ids", True)


def _in_any_case(letter: str) -> str:
    return f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter
