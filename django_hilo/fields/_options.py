"""The options of our fields, as migrations name them."""

from collections.abc import Sequence
from typing import Any

Deconstructed = tuple[str, str, Sequence[Any], dict[str, Any]]


def with_options(field: Any, deconstructed: Deconstructed) -> Deconstructed:
    """Name a field's own options, and a lasting path, in what migrations write.

    ``field.own_options`` has the default of each; only other values are written.
    """
    name, path, args, kwargs = deconstructed
    for option, default in field.own_options.items():
        kwargs.pop(option, None)
        if getattr(field, option) != default:
            kwargs[option] = getattr(field, option)
    if path.startswith("django_hilo.fields."):
        # Migrations name this path, which must not change with our modules.
        path = f"django_hilo.fields.{path.rpartition('.')[2]}"
    return name, path, args, kwargs
