"""Serializer fields, whose messages name the bounds."""

import re
import reprlib
from typing import Any, NoReturn

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.utils import html

from django_hilo._operations.locations import homes
from django_hilo.conf import settings
from django_hilo.identifiers import (
    MAX_COLLECTION_LENGTH,
    MAX_NUMBER,
    MAX_SERVER_PREFIX_LENGTH,
    shown,
)
from django_hilo.models import validate_collection, validate_server_prefix

_DIGITS = re.compile(r"-?[0-9]{1,30}")


def _read(text: Any) -> Any:
    """Return the number that digits stand for, and anything else as it is."""
    if isinstance(text, str) and _DIGITS.fullmatch(text):
        return int(text)
    return text


class WholeNumberField(serializers.IntegerField):
    """An integer and nothing that looks like one: no text, no fraction, no boolean.

    In forms, where all is text, digits are.
    """

    default_error_messages = {
        "required": _("Enter an integer from {min_value} to {max_value}."),
        "null": _("Enter an integer from {min_value} to {max_value}."),
        "invalid": _("Enter an integer from {min_value} to {max_value}, not {value}."),
    }

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        bounds = {"min_value": self.min_value, "max_value": self.max_value}
        super().fail(key, **bounds, **kwargs)

    def get_value(self, dictionary: Any) -> Any:
        value = super().get_value(dictionary)
        return _read(value) if html.is_html_input(dictionary) else value

    def to_internal_value(self, data: Any) -> int:
        assert self.min_value is not None and self.max_value is not None
        is_number = isinstance(data, int) and not isinstance(data, bool)
        if not is_number or not self.min_value <= data <= self.max_value:
            self.fail("invalid", value=reprlib.repr(data))
        number: int = data
        return number


class QueryNumberField(WholeNumberField):
    """A whole number in the query of an address."""

    def to_internal_value(self, data: Any) -> int:
        return super().to_internal_value(_read(data))


class CountField(WholeNumberField):
    """How many numbers: 1 to ``HILO["MAX_NUMBERS_PER_REQUEST"]``, as it is now."""

    def __init__(self, **kwargs: Any) -> None:
        most = settings.MAX_NUMBERS_PER_REQUEST
        super().__init__(min_value=1, max_value=most, **kwargs)


class NumberField(WholeNumberField):
    """A number of a counter, or 0, which stands before the first."""

    def __init__(self, *, least: int = 0, **kwargs: Any) -> None:
        super().__init__(min_value=least, max_value=MAX_NUMBER, **kwargs)


class CollectionField(serializers.CharField):
    """A collection inside the grammar, in whatever case."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=MAX_COLLECTION_LENGTH, validators=[validate_collection], **kwargs
        )


class SearchField(serializers.CharField):
    """Words to search for; an empty text finds everything."""


class ServerPrefixField(serializers.CharField):
    """A server prefix inside the grammar."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            allow_blank=True,
            trim_whitespace=False,
            max_length=MAX_SERVER_PREFIX_LENGTH,
            validators=[validate_server_prefix],
            **kwargs,
        )


class NameField(serializers.ChoiceField):
    """One of some names; the message lists them, and cuts another that is long."""

    default_error_messages = {
        "invalid_choice": _("{input} is not a valid choice: {choices}.")
    }

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        wrong = shown(kwargs.pop("input", ""))
        choices = ", ".join(map(str, self.choices))
        super().fail(key, input=wrong, choices=choices, **kwargs)


class DatabaseField(NameField):
    """The alias of a database that may hold counters, as the settings have it now."""

    default_error_messages = {
        "invalid_choice": _("{input} has no counters. Choose from: {choices}.")
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=homes(), **kwargs)
