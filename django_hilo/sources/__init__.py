"""Counters that other systems own, and how their stored numbers become ids.

The modules here are presets by system: `hibernate`, `nhibernate`, `efcore`, `marten`,
`doctrine`, `django_sequences` and `database`. `ForeignCounter` with a storage (`Row`,
`Sequence`, `Function`) and a rule of `rules` is for any other system. ``settings.py``
may import all of them: none needs the models.
"""

from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Function, Row, Sequence

__all__ = ["ForeignCounter", "Function", "Row", "Sequence"]
