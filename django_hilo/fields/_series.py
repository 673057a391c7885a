"""Which series the number of an object belongs to, and how numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from string import Formatter
from typing import Any, NamedTuple

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.db.models import F
from django.db.models.functions import Extract
from django.utils.timezone import is_aware, localtime

from django_hilo._allocation.registry import Series
from django_hilo.conf import settings
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_WIDTH,
    IdFormat,
    check_separator,
    is_counter_name,
)

# What Django's own __year, __month and __day read.
PARTS = ("year", "month", "day")

# As 1.5 and 1.50, or one moment in two time zones.
_IN_MANY_WAYS = (
    models.BinaryField,
    models.DateTimeField,
    models.DecimalField,
    models.JSONField,
)

_PLAIN = re.compile(r"[a-z0-9_-]*")
# Of this package, where lower case loses nothing.
_KEY = re.compile(r"[a-z][a-z0-9_-]*/[0-9]+(?:-[A-Z]{1,4})?")
# Of a number: 04 is at least four digits.
_WIDTH = re.compile(r"(?:0([1-9][0-9]?))?")
# Two of the sign that starts an escaped byte: no value has them.
_HASH = "=="
_HASH_LENGTH = 32


def is_late(field: Any) -> bool:
    """Whether a new object has no value of a field before its row is written."""
    late = ("auto_now", "auto_now_add", "generated")
    return any(getattr(field, each, False) for each in late)


class Path:
    """A field of the model, or a part of a date in it: ``tenant``, ``date.year``."""

    def __init__(self, text: str, model: Any) -> None:
        name, _, self.part = text.partition(".")
        self.text, self.field = text, model._meta.get_field(name)

    def check(self) -> None:
        """Raise ValueError for a field whose value is not known when ids are given."""
        if self.part and (
            self.part not in PARTS or not isinstance(self.field, models.DateField)
        ):
            raise ValueError(
                f"{self.text!r} in per= is no field of the model, and none of "
                f"{', '.join(PARTS)} of a date."
            )
        if not self.field.concrete or self.field.many_to_many:
            raise ValueError(f"{self.text!r} in per= has no column.")
        if is_late(self.field):
            raise ValueError(
                f"{self.text!r} in per= has no value before the row is written: use "
                f"default=timezone.now in place of auto_now or auto_now_add."
            )
        if not self.part and isinstance(self.column, _IN_MANY_WAYS):
            raise ValueError(
                f"{self.text!r} in per= is a {type(self.column).__name__}: one value "
                f"can be written in several ways, and would have several series."
            )

    @property
    def column(self) -> Any:
        """The field whose values a row stores: of a relation that of the key."""
        field = self.field
        while field.is_relation:
            field = field.target_field
        return field

    def value_of(self, instance: models.Model) -> Any:
        """Return the value that a row of the instance would have."""
        field, label = self.field, instance._meta.label
        value = getattr(instance, field.attname)
        if value in field.empty_values and field.is_relation:
            other = field.get_cached_value(instance, default=None)
            if other is not None:  # it may have had no key when it was set
                value = getattr(other, field.target_field.attname)
        if value is None or hasattr(value, "resolve_expression"):
            raise HiLoError(
                f"{label} cannot get a number: {self.text!r}, which says of which "
                f"series, is {value!r}. Set it before the object is saved."
            )
        try:
            return self.read(value)
        except ValidationError as error:
            raise HiLoError(
                f"{label} cannot get a number: {self.text!r}, which says of which "
                f"series, is {value!r}: {' '.join(error.messages)}"
            ) from error

    def known_value(self, instance: models.Model) -> Any:
        """Return the value, or None if it is missing or wrong."""
        with suppress(HiLoError):
            return self.value_of(instance)

    def read(self, value: Any) -> Any:
        """Return a value as the field stores it, or its part; ValidationError."""
        if not self.part:
            return self.field.to_python(value)
        value = self.field.get_prep_value(value)  # in a time zone
        if isinstance(value, datetime) and is_aware(value):
            value = localtime(value)
        return getattr(value, self.part)

    def read_written(self, text: str) -> Any:
        """Return the value that a look has written."""
        return int(text) if self.part else self.field.to_python(text)

    @property
    def expression(self) -> Any:
        """The value as SQL reads it."""
        name = self.field.attname
        return Extract(name, self.part) if self.part else F(name)


class Piece(NamedTuple):
    """A text of a look, and the path that is written after it."""

    text: str
    path: str | None
    spec: str

    def written(self, values: dict[str, Any]) -> str:
        """Return the text, and the value of the path."""
        if not self.path:
            return self.text
        return self.text + format(values[self.path], self.spec)


class SeriesRule:
    """The ``per`` and ``look`` of a field; raises ValueError if they are wrong."""

    def __init__(self, field: Any) -> None:
        self.field = field
        try:
            self.paths = [Path(text, field.model) for text in field.per]
        except (FieldDoesNotExist, AttributeError, TypeError) as error:
            raise ValueError(f"per={field.per!r}: {error}") from error
        self.pieces, self.width = _pieces(field.look, field.per)
        if self.pieces is not None:  # else the separator of the settings is part of it
            self.with_values = lru_cache(1_000)(self.with_values)  # type: ignore[method-assign] # of this rule alone

    def of(self, instance: models.Model) -> Series:
        """Return the series of an instance; `HiLoError` for a value that is missing."""
        return self.with_values(*[path.value_of(instance) for path in self.paths])

    def with_values(self, *values: Any) -> Series:
        """Return the series of the values of all paths."""
        name = name_of_series(self.field.collection_name, values)
        if self.pieces is None:
            separator = check_separator(settings.SEPARATOR)
            start = f"{name}{separator}"
        else:
            by_path = dict(zip(self.field.per, values, strict=True))
            start = "".join(piece.written(by_path) for piece in self.pieces)
        return Series(self.field, name, IdFormat(start, width=self.width))

    def read(self, text: Any, instance: models.Model) -> tuple[Series, int] | None:
        """Return the series and the number that a text has, None for other texts.

        What the look does not write is that of the instance.
        """
        start, number = split_number(text)
        if number is None:
            return None
        series = self.named(start, [path.known_value(instance) for path in self.paths])
        return None if series is None else (series, number)

    def accepts(self, text: Any) -> bool:
        """Whether a text could be an id of one of the series."""
        start, number = split_number(text)
        if self.pieces is None:
            own = f"{self.field.collection_name}.".lower()
            return number is not None and start.lower().startswith(own)
        return number is not None and bool(self._pattern.fullmatch(start))

    def named(self, start: str, values: list[Any]) -> Series | None:
        """Return the series whose ids start with a text, in upper or lower case.

        ``values`` are those that the text does not name; None: it is not known.
        """
        if None not in values:
            series = self.with_values(*values)
            if series.format.start.lower() == start.lower():
                return series
        if self.pieces is None:
            start, own = start.lower(), f"{self.field.collection_name}.".lower()
            name, end = start[:-1], start[-1:]
            is_own = name.startswith(own) and is_counter_name(name)
            is_own = is_own and end == settings.SEPARATOR
            return Series(self.field, name, IdFormat(start)) if is_own else None
        found = self._pattern.fullmatch(start)
        if found is None:
            return None
        written = found.groupdict()
        try:
            others = [
                path.read_written(written[f"p{place}"])
                if f"p{place}" in written
                else values[place]
                for place, path in enumerate(self.paths)
            ]
        except (ValidationError, ValueError):
            return None
        if None in others:
            return None
        series = self.with_values(*others)
        return series if series.format.start.lower() == start.lower() else None

    @cached_property
    def written(self) -> set[str]:
        """The paths that the look writes; all of them without one."""
        if self.pieces is None:
            return set(self.field.per)
        return {piece.path for piece in self.pieces if piece.path}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        known: set[str] = set()
        return re.compile("".join(self._patterns(known)), re.DOTALL | re.IGNORECASE)

    def _patterns(self, known: set[str]) -> Iterator[str]:
        places = {path.text: place for place, path in enumerate(self.paths)}
        for piece in self.pieces or ():
            yield re.escape(piece.text)
            if piece.path in known:
                yield f"(?P=p{places[piece.path]})"
            elif piece.path:
                known.add(piece.path)
                yield f"(?P<p{places[piece.path]}>.+?)"


def name_of_series(collection: str, values: Iterable[Any]) -> str:
    """Return the name of a series' counter, ``invoices.7.2026``.

    Each combination of values has its own, also where names are not case-sensitive.
    One that would be too long ends in a hash.
    """
    parts = [collection.lower(), *(_encoded(str(value)) for value in values)]
    name = ".".join(parts)
    if len(name) > MAX_COLLECTION_LENGTH:
        digest = sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
        most = MAX_COLLECTION_LENGTH - len(_HASH) - _HASH_LENGTH
        name = f"{name[:most]}{_HASH}{digest}"
    return name


def _encoded(text: str) -> str:
    if _KEY.fullmatch(text):
        return text.lower()
    return "".join(
        each
        if _PLAIN.fullmatch(each)
        else "".join(f"={byte:02x}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in text
    )


def split_number(text: Any) -> tuple[str, int | None]:
    """Return what is before the digits at the end of a text, and their number."""
    start = text.rstrip("0123456789") if isinstance(text, str) else ""
    digits = text[len(start) :].lstrip("0") if isinstance(text, str) else ""
    is_number = digits and len(digits) <= MAX_WIDTH and int(digits) <= MAX_NUMBER
    return start, int(digits) if is_number else None


def _pieces(look: Any, per: Iterable[str]) -> tuple[list[Piece] | None, int]:
    """Return the pieces of a look before the number, and the width of the number."""
    if look is None:
        return None, 0
    try:
        *found, (text, name, spec, conversion) = Formatter().parse(look)
    except (TypeError, ValueError) as error:
        raise ValueError(f"look={look!r} is not a format: {error}") from error
    width = _WIDTH.fullmatch(spec or "")
    if name != "number" or conversion or not width or int(width[1] or 0) > MAX_WIDTH:
        raise ValueError(
            f"look={look!r} must end in '{{number}}', or in '{{number:04}}' with 1 to "
            f"{MAX_WIDTH} digits."
        )
    pieces, grew = [], False
    for before, path, form, converted in found:
        if path is not None and (path not in per or converted):
            raise ValueError(
                f"look={look!r} names {path!r}: it may name only the paths in "
                f"per={list(per)!r}, and the number at its end."
            )
        is_part = path is not None and "." in path
        if form and not (is_part and _WIDTH.fullmatch(form)):
            raise ValueError(
                f"look={look!r}: {form!r} is not possible. A part of a date may have a "
                f"number of digits: '{{date.month:02}}'."
            )
        grows = path is not None and not (form or path.endswith(".year"))
        if grows and grew and not before:
            raise ValueError(
                f"look={look!r} needs a sign before {path!r}, or '{{date.day:02}}': 1 "
                f"and 11 would be written as 11 and 1."
            )
        grew = grows or (grew and not before)
        pieces.append(Piece(before, path, form or ""))
    if text[-1:].isdigit() or (not text and pieces and pieces[-1].path):
        raise ValueError(
            f"look={look!r} must have a sign that is no digit before the number: "
            f"'INV-{{number}}'."
        )
    return [*pieces, Piece(text, None, "")], int(width[1] or 0)
