"""The counter's row: reserve and return ranges, raise the floor, gapless numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import HiLoKeyGenerator, Range, Reservation

if TYPE_CHECKING:
    from django_hilo.counters.gapless import (
        next_gapless_number,
        next_gapless_numbers,
        seed_gapless_number,
    )
    from django_hilo.counters.reservation import (
        raise_floor,
        read_max,
        reserve,
        return_range,
    )

__all__ = [
    "HiLoKeyGenerator",
    "KeyColumn",
    "Range",
    "Reservation",
    "next_gapless_number",
    "next_gapless_numbers",
    "raise_floor",
    "read_max",
    "reserve",
    "return_range",
    "seed_gapless_number",
]


if not TYPE_CHECKING:  # else every name would be one of the package's

    def __getattr__(name: str) -> Any:
        # Imported when asked for: settings.py may import `django_hilo.sources`, which
        # needs ranges, while the models are not ready yet.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "gapless" if "gapless" in name else "reservation"
        return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
