"""The forms of a counter: what is typed, checked against what is stored."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any

from django.db import Error
from django.utils.translation import gettext as _

from django_hilo._operations import edit_counter
from django_hilo._operations.table_scan import Highest
from django_hilo.admin.databases import unreadable
from django_hilo.admin.numbers import ChangeNumberForm, NumberForm
from django_hilo.exceptions import CounterNotLowered
from django_hilo.models import HiLoDocument


class AddCounterForm(NumberForm):
    """Starts a counter that does not exist yet."""

    number = "max"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.refusal:
            self.add_error("max", str(self.refusal))
        if "collection" in cleaned and "node_tag" in cleaned:
            key = HiLoDocument.key(cleaned["collection"], cleaned["node_tag"])
            try:
                exists = HiLoDocument.objects.using(self.database).filter(pk=key)
                if exists.exists():
                    self.add_error(
                        "collection",
                        _(
                            "The counter %(key)s exists on “%(database)s”. Change it "
                            "there."
                        )
                        % {"key": key, "database": self.database},
                    )
            except Error as error:
                self.add_error(None, unreadable(self.database, error))
        return cleaned


class ChangeCounterForm(ChangeNumberForm):
    """Changes Max: raises it at once, lowers it after a confirmation.

    What somebody means is told by the Max that they saw, which comes back with the
    form. Where a process has reserved numbers since, a raise may have become the
    opposite: that is told, and never done.
    """

    number = "max"
    looked_at: list[Highest]

    @property
    def is_confirmation(self) -> bool:
        """Whether this was posted by the page that asks for a confirmation."""
        return "state" in self.data

    @property
    def raises(self) -> bool:
        """Whether Max shall rise."""
        return bool(self.cleaned_data["max"] > self.seen)

    @property
    def lowers(self) -> bool:
        """Whether Max shall fall."""
        return bool(self.cleaned_data["max"] < self.seen)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "max" not in cleaned:
            return cleaned
        stored = self.instance.max
        if (self.raises and cleaned["max"] < stored) or (
            self.lowers and cleaned["max"] >= stored
        ):
            self.add_error(
                "max",
                _(
                    "Max is %(max)s by now, not %(seen)s as when this page was opened. "
                    "Load the page again, and look before you change it."
                )
                % {"max": stored, "seen": self.seen},
            )
        elif self.lowers and (self.refusal or not self.is_confirmation):
            self._look_for_higher_rows(cleaned["max"])
        elif self.refusal:
            self.add_error("max", str(self.refusal))
        return cleaned

    def _look_for_higher_rows(self, number: int) -> None:
        try:
            self.looked_at = edit_counter.check_unused(self.instance, number)
        except CounterNotLowered as error:
            self.add_error("max", str(error))
