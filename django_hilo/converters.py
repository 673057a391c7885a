"""The path converter ``hilo``, which matches exactly one id in a URL."""

import re

from django.apps import apps
from django.urls import register_converter
from django.urls.converters import get_converters

from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import ID_PATTERN, parse, shown

__all__ = [
    "HiLoConverter",
]

NAME = "hilo"


class HiLoConverter:
    """``<hilo:pk>`` matches one id of any collection, with its anchor, as a str.

    Some ids do not match, because their end would be ambiguous:

    - a server prefix with a number between slashes (``4/``, ``33-A/``), or more than 8
      slashes;
    - an anchor that contains a slash and is not an id, or more than 8 ``$``.

    Neither do ids with a part ``.`` or ``..``, which browsers resolve, or half of a
    surrogate pair.
    """

    regex = ID_PATTERN

    def to_python(self, value: str) -> str:
        """Return the id unchanged; for another text raise `InvalidDocumentId` (404)."""
        parse(value)
        for text in value.split("$")[1:]:
            if "/" in text:
                parse(text)
        if not {".", ".."}.isdisjoint(value.split("/")):
            raise InvalidDocumentId(
                f"{shown(value)} contains '.' or '..', which browsers resolve."
            )
        return value

    def to_url(self, value: object) -> str:
        """Return the text of an id; raise ValueError if `regex` does not match it."""
        text = self.to_python(str(value))
        if not re.fullmatch(self.regex, text):
            raise InvalidDocumentId(
                f"{shown(text)} is ambiguous in a URL: change a server prefix that has "
                f"numbers between slashes, or an anchor that has slashes but is not an "
                f"id."
            )
        text.encode()  # raises UnicodeEncodeError for half of a surrogate pair
        return text


def register() -> None:
    """Register the converter once: Django 6 refuses a name that is taken."""
    if not isinstance(get_converters().get(NAME), HiLoConverter):
        register_converter(HiLoConverter, NAME)
    if apps.is_installed("drf_spectacular"):
        from drf_spectacular.settings import spectacular_settings

        # Its pages would show the whole regex, which nobody can read.
        spectacular_settings.PATH_CONVERTER_OVERRIDES.setdefault(NAME, str)
