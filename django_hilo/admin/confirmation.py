"""The form that changes a counter, and what it asks the user to confirm."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.translation import gettext

from django_hilo._operations import edit_counter
from django_hilo.admin.numbers import ChangeNumberForm, grouped
from django_hilo.conf import settings
from django_hilo.exceptions import CounterNotLowered
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import HiLoDocument

# A raise that skips more is probably a typo.
LARGE_JUMP = 100_000_000


def effects_of(document: HiLoDocument, number: int, lowers: bool) -> list[str]:
    """Return what a new Max means, one sentence each, if it must be confirmed.

    Raises `CounterNotLowered` while a row has an id that would be given again.
    """
    tables = edit_counter.check_unused(document, number) if lowers else []
    given = document.next_low - 1
    lost, left = number - given, MAX_NUMBER - number
    is_near_the_end = left < MAX_NUMBER // 10
    unasked = 0 if is_near_the_end else min(LARGE_JUMP, settings.MAX_FLOOR_JUMP)
    if not lowers and lost <= unasked:
        return []
    low, high = sorted((given, number))
    known = {
        "lowers": lowers,
        "tables": tables,
        "has_given": lost < 0,
        "first": edit_counter.id_at(document, low + 1),
        "last": edit_counter.id_at(document, high),
        "lost": grouped(lost),
        "left": grouped(left) if is_near_the_end else "",
    }
    text = render_to_string("admin/django_hilo/hilodocument/effects.txt", known)
    return [line for line in text.splitlines() if line]


class ConfirmedNumberForm(ChangeNumberForm):
    """Changes a number, after a confirmation if the change has effects.

    The form is shown again to ask for the confirmation, with a box to tick. The box
    confirms the number that it was shown for, and no other.
    """

    confirmed = forms.BooleanField(label="", required=False)
    # Returns what a new number means, one sentence each; none: nothing to ask. Raises
    # `CounterNotLowered` for a number that the form refuses.
    effects: Callable[[int], list[str]]
    # Returns what the box says.
    label_of: Callable[[int], str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._box = self.fields["confirmed"].widget
        self.fields["confirmed"].widget = forms.HiddenInput()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        number = cleaned.get(self.number, self.seen)
        if number == self.seen or self["confirmed"].data == str(number):
            return cleaned
        try:
            effects = self.effects(number)
        except CounterNotLowered as error:
            self.add_error(self.number, str(error))
            return cleaned
        if effects:
            self._box.attrs["value"] = number
            self._box.check_test = lambda value: False  # not ticked in advance
            self.fields["confirmed"].widget = self._box
            self["confirmed"].label = self.label_of(number)
            self.add_error("confirmed", effects)
        return cleaned


class ChangeCounterForm(ConfirmedNumberForm):
    """Changes Max, after a confirmation if it falls or if many numbers are lost."""

    number = "max"
    state = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["max"].help_text = gettext(
            "Raising Max permanently skips the numbers in between; a jump of more than "
            "%(jump)s needs confirmation. Lowering Max reissues numbers: it needs "
            "confirmation, and is refused while rows have higher numbers."
        ) % {"jump": grouped(min(LARGE_JUMP, settings.MAX_FLOOR_JUMP))}
        self.initial["state"] = edit_counter.state_of(self.instance)

    def effects(self, number: int) -> list[str]:
        return effects_of(self.instance, number, number < self.seen)

    def label_of(self, number: int) -> str:
        if number > self.seen:
            return gettext("Skip these numbers")
        return gettext("Every process that draws from this counter is stopped")
