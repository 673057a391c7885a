"""Counters that other systems own, and how their stored numbers become ids.

Each of these modules is for one system: `hibernate`, `nhibernate`, `efcore`, `marten`,
`doctrine`, `django_sequences` and `database`. For another system, combine a
`ForeignCounter` with a storage (`Row` or `Sequence`) and one of the `formulas`. You can
import all of them in ``settings.py``, because none needs the models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_hilo.sources.foreign import ForeignCounter
    from django_hilo.sources.storages import Row, Sequence

__all__ = ["ForeignCounter", "Row", "Sequence"]


if not TYPE_CHECKING:  # else every name would be one of the package's

    def __getattr__(name: str) -> Any:
        # Most projects share no counter, and start without these modules.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "foreign" if name == "ForeignCounter" else "storages"
        return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return __all__
