"""The counter's row: reserve and return ranges, raise the floor, gapless numbers."""

from django_hilo.counters.floor import raise_floor, read_max
from django_hilo.counters.gapless import (
    next_gapless_number,
    next_gapless_numbers,
    seed_gapless_number,
)
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import HiLoKeyGenerator, Range, Reservation
from django_hilo.counters.reservation import reserve
from django_hilo.counters.returning import return_range

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
