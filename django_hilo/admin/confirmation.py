"""The form that changes a counter, and what it asks the user to confirm."""

from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

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


class ChangeCounterForm(ChangeNumberForm):
    """Changes Max, after a confirmation if it falls or if many numbers are lost.

    The form is shown again to ask for the confirmation, with a box to tick. The box
    confirms the number that it was shown for, and no other.
    """

    number = "max"
    state = forms.CharField(widget=forms.HiddenInput, required=False)
    confirmed = forms.BooleanField(
        label=_("Every process that draws from this counter is stopped"), required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["max"].help_text = gettext(
            "Raising Max permanently skips the numbers in between; a jump of more than "
            "%(jump)s needs confirmation. Lowering Max reissues numbers: it needs "
            "confirmation, and is refused while rows have higher numbers."
        ) % {"jump": grouped(min(LARGE_JUMP, settings.MAX_FLOOR_JUMP))}
        self.initial["state"] = edit_counter.state_of(self.instance)
        self._box = self.fields["confirmed"].widget
        self.fields["confirmed"].widget = forms.HiddenInput()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        number = cleaned.get("max", self.seen)
        if number == self.seen or self["confirmed"].data == str(number):
            return cleaned
        lowers = number < self.seen
        try:
            effects = effects_of(self.instance, number, lowers)
        except CounterNotLowered as error:
            self.add_error("max", str(error))
            return cleaned
        if effects:
            self._box.attrs["value"] = number
            self._box.check_test = lambda value: False  # not ticked in advance
            self.fields["confirmed"].widget = self._box
            if not lowers:
                self["confirmed"].label = gettext("Skip these numbers")
            self.add_error("confirmed", effects)
        return cleaned
