"""The options of our fields, as migrations name them."""

from collections.abc import Sequence
from typing import Any


class WritesOptions:
    """The part of a field that names its options, and a lasting path, in migrations."""

    # The default of each option; only other values are written.
    own_options: dict[str, Any]

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        field: Any = super()
        name, path, args, kwargs = field.deconstruct()
        for option, default in self.own_options.items():
            kwargs.pop(option, None)
            if getattr(self, option) != default:
                kwargs[option] = getattr(self, option)
        if path.startswith("django_hilo.fields."):
            # Migrations name this path, which must not change with our modules.
            path = f"django_hilo.fields.{path.rpartition('.')[2]}"
        return name, path, args, kwargs
