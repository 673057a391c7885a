"""Admin pages of a number that is changed under a lock, and not by saving a row."""

# mypy: allow-any-generics
from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.db import OperationalError, models
from django.http import HttpRequest

from django_hilo.admin.databases import DatabasesAdmin, home_databases
from django_hilo.exceptions import HiLoError
from django_hilo.identifiers import MAX_NUMBER


class NumberForm(forms.ModelForm):
    """With what the database refused when the same was posted before."""

    number: ClassVar[str]
    refusal: Exception | None = None

    @property
    def database(self) -> str:
        """The database that a new counter shall be on."""
        return str(self.cleaned_data.get("database") or home_databases()[0])

    @property
    def seen(self) -> int:
        """The number as the page showed it, which says what somebody means."""
        stored: int = getattr(self.instance, self.number)
        try:
            return int(self.data.get(self.add_initial_prefix(self.number), stored))
        except ValueError:
            return stored


class ChangeNumberForm(NumberForm):
    """The instance stays as it was loaded: it is changed under the lock only."""

    def _post_clean(self) -> None:
        pass


class NumberAdmin(DatabasesAdmin):
    """A `DatabasesAdmin` whose pages change one number of a row, named ``number``."""

    number: ClassVar[str]
    # What the database may say to a change, and the form can show.
    refusals: ClassVar[tuple[type[Exception], ...]] = (HiLoError, OperationalError)

    def form_of(
        self, request: HttpRequest, obj: Any, base: type[NumberForm]
    ) -> type[NumberForm]:
        """Return the form class of this request."""
        made: dict[str, Any] = {"refusal": getattr(request, "hilo_refusal", None)}
        if obj is None and len(self.databases()) > 1:
            made["database"] = self.database_field(request)
        return type(base.__name__, (base,), made)

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == self.number:
            bounds = {"min_value": 0, "max_value": MAX_NUMBER}
            # The number that was seen comes back with the form.
            kwargs = {**bounds, "show_hidden_initial": True, **kwargs}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        view = super().changeform_view
        try:
            return view(request, object_id, form_url, extra_context)
        except self.refusals as error:
            # Once more, in a transaction that sees the counter as it is now, to show
            # the form with what was typed and with the error. Ignored: the request
            # brings it there, and has no such attribute of its own.
            request.hilo_refusal = error  # type: ignore[attr-defined]
            return view(request, object_id, form_url, extra_context)
