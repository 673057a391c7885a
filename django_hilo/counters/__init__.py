"""The counter's row: reserve and return ranges, raise the floor, gapless numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_hilo.counters.gapless import (
        next_gapless_number,
        next_gapless_numbers,
        seed_gapless_number,
    )
    from django_hilo.counters.key_column import KeyColumn
    from django_hilo.counters.ranges import HiLoKeyGenerator, Range, Reservation
    from django_hilo.counters.reservation import (
        raise_floor,
        read_max,
        reserve,
        return_range,
    )

# By module. Imported when asked for: settings.py may import `django_hilo.sources`,
# which needs ranges, while the models are not ready yet.
_MODULES = {
    "HiLoKeyGenerator": "ranges",
    "KeyColumn": "key_column",
    "Range": "ranges",
    "Reservation": "ranges",
    "next_gapless_number": "gapless",
    "next_gapless_numbers": "gapless",
    "raise_floor": "reservation",
    "read_max": "reservation",
    "reserve": "reservation",
    "return_range": "reservation",
    "seed_gapless_number": "gapless",
}

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
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
