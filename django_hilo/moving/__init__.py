"""Moving an existing table, and all that refers to it, to text ids and back."""

from django_hilo.moving.operations import MoveToHiLo

__all__ = ["MoveToHiLo"]
