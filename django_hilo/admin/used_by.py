"""The column "Used by" of counters."""

# mypy: allow-any-generics
from typing import Any

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hilo._allocation.target import fields_of
from django_hilo.admin.qualified_keys import split


class UsedBy(admin.ModelAdmin):
    """Names the models whose ids come from a counter."""

    @admin.display(description=_("used by"))
    def used_by(self, counter: Any) -> str:
        fields = self.fields_of(split(counter.collection)[1])
        labels = {field.model._meta.label for field in fields}
        return ", ".join(sorted(labels)) or gettext("no model")

    def fields_of(self, collection: str) -> list[Any]:
        """Return the fields that use the counter of a collection."""
        return fields_of(collection)
