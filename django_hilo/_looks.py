"""Looks at counters, before which a TestCase writes those it has in memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models import sql

Row = TypeVar("Row", bound=models.Model)

# What the layers above do first.
before_looks: list[Callable[..., None]] = []


def look(**kwargs: object) -> None:
    """Do what is to be done before somebody looks."""
    for act in before_looks:
        act()


class _Query(sql.Query):
    """A query that looks when it runs: in the thread, and as late, as the database."""

    def get_compiler(self, *args: Any, **kwargs: Any) -> Any:
        look()
        return super().get_compiler(*args, **kwargs)

    def chain(self, klass: Any = None) -> Any:
        if klass is not None:
            look()  # it becomes an update
        return super().chain(klass)


class _QuerySet(models.QuerySet[Row]):
    def __init__(self, model: Any = None, query: Any = None, *args: Any, **kw: Any):
        super().__init__(model, query or _Query(model), *args, **kw)

    def _insert(self, *args: Any, **kwargs: Any) -> Any:
        look()
        return super()._insert(*args, **kwargs)  # type: ignore[misc] # not in the stubs

    def _raw_delete(self, using: Any) -> Any:
        look()
        return super()._raw_delete(using)


if TYPE_CHECKING:

    class LookedAt(models.Manager[Row]): ...

else:

    class LookedAt(models.Manager.from_queryset(_QuerySet)):
        """The manager of rows that a TestCase writes when somebody looks at them."""
