"""Moving an existing table, and all that refers to it, to text ids and back."""

from django_hilo.moving.operations import MoveFromHiLo, MoveToHiLo

__all__ = ["MoveFromHiLo", "MoveToHiLo"]
