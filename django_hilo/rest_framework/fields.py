"""Serializer fields; each message names the bounds."""

from __future__ import annotations

import re
import reprlib
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.utils import html

from django_hilo.conf import settings
from django_hilo.identifiers import MAX_NUMBER

_DIGITS = re.compile(r"-?[0-9]{1,30}")


class WholeNumberField(serializers.IntegerField):
    """An integer and nothing that looks like one: no text, no fraction, no boolean.

    In forms, where all is text, digits are.
    """

    def __init__(self, *, min_value: int, max_value: int, **kwargs: Any) -> None:
        bounds = {"least": min_value, "most": max_value}
        asked = _("Give a whole number from %(least)d to %(most)d.") % bounds
        wrong = _("Give a whole number from %(least)d to %(most)d, not {value}.")
        super().__init__(
            min_value=min_value,
            max_value=max_value,
            error_messages={
                "required": asked,
                "null": asked,
                "invalid": wrong % bounds,
            },
            **kwargs,
        )

    def get_value(self, dictionary: Any) -> Any:
        """Return the value as the body has it; of forms, digits as a number."""
        value = super().get_value(dictionary)
        if (
            html.is_html_input(dictionary)
            and isinstance(value, str)
            and _DIGITS.fullmatch(value)
        ):
            return int(value)
        return value

    def to_internal_value(self, data: Any) -> int:
        """Return a number within the bounds, else fail and name them."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid", value=reprlib.repr(data))
        assert self.min_value is not None and self.max_value is not None
        if not self.min_value <= data <= self.max_value:
            self.fail("invalid", value=reprlib.repr(data))
        return data


class CountField(WholeNumberField):
    """How many numbers: 1 to ``HILO["MAX_NUMBERS_PER_REQUEST"]``, as it is now."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=1, max_value=settings.MAX_NUMBERS_PER_REQUEST, **kwargs
        )


class NumberField(WholeNumberField):
    """A number of a counter, or 0, which stands before the first."""

    def __init__(self, *, least: int = 0, **kwargs: Any) -> None:
        super().__init__(min_value=least, max_value=MAX_NUMBER, **kwargs)
