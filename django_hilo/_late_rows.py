"""Rows of ours that are written late: when somebody looks at them.

In a ``TestCase`` counters are in memory until then.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models import sql

Row = TypeVar("Row", bound=models.Model)

# Those of the layers above.
writers: list[Callable[..., None]] = []


def write_late_rows(**kwargs: object) -> None:
    """Write what is in memory alone, before somebody looks."""
    for write in writers:
        write()


class _Query(sql.Query):
    """A query that writes them when it runs: in its thread, and as late as it."""

    def get_compiler(self, *args: Any, **kwargs: Any) -> Any:
        write_late_rows()
        return super().get_compiler(*args, **kwargs)

    def chain(self, klass: Any = None) -> Any:
        if klass is not None:
            write_late_rows()  # it becomes an update
        return super().chain(klass)


class _QuerySet(models.QuerySet[Row]):
    def __init__(self, model: Any = None, query: Any = None, *args: Any, **kw: Any):
        super().__init__(model, query or _Query(model), *args, **kw)

    def _insert(self, *args: Any, **kwargs: Any) -> Any:
        write_late_rows()
        return super()._insert(*args, **kwargs)  # type: ignore[misc] # not in the stubs

    def _raw_delete(self, using: Any) -> Any:
        write_late_rows()
        return super()._raw_delete(using)


if TYPE_CHECKING:

    class LateRows(models.Manager[Row]): ...

else:

    class LateRows(models.Manager.from_queryset(_QuerySet)):
        """The manager of rows that a TestCase writes when somebody looks at them."""
