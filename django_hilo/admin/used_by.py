"""The column "Used by" of counters."""

# mypy: allow-any-generics
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class UsedBy(admin.ModelAdmin):
    """Names the models whose ids come from a counter."""

    # Returns the fields that use a counter; of each kind of counters.
    fields_using: Callable[[Any], list[Any]]

    @admin.display(description=_("used by"))
    def used_by(self, counter: Any) -> str:
        labels = {field.model._meta.label for field in self.fields_using(counter)}
        return ", ".join(sorted(labels)) or gettext("no model")
