"""Predictable ids in the tests of a project.

A `TestCase` needs only `write_counters`, and only for raw SQL. The mixin and the
fixture also start ids over in tests that commit, and the keys of sequences: each test
begins like a new process, with counters at the last number that was used before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any
from unittest import TestCase
from unittest.mock import patch

from django_hilo._allocation import memory
from django_hilo._allocation.in_tests import write_counters
from django_hilo._operations.start_over import start_over
from django_hilo.sources.key_sequence import KeySequence

# Not hilo_ids, which needs pytest.
__all__ = ["HiLoTestMixin", "write_counters"]

if TYPE_CHECKING:
    _Base = TestCase
else:
    _Base = object


class HiLoTestMixin(_Base):
    """Start ids at ``orders/1-A`` in every test, or after those of ``setUpTestData()``.

    List it before Django's test case: ``class OrderTests(HiLoTestMixin, TestCase)``.
    After it the mixin would have no effect, so such a class raises TypeError.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        order = cls.__mro__
        if TestCase in order and order.index(TestCase) < order.index(HiLoTestMixin):
            raise TypeError(
                f"{cls.__name__} lists HiLoTestMixin after its TestCase, where it has "
                f"no effect. Write: class {cls.__name__}(HiLoTestMixin, ...)."
            )

    # The last numbers that setUpTestData() drew, by sequence and alias: objects that it
    # did not save may have them.
    _drawn: dict[tuple[KeySequence, str], int] = {}

    @classmethod
    def setUpClass(cls) -> None:
        """Start ids over for ``setUpTestData()``, in its transaction."""
        make = getattr(cls, "setUpTestData", None)
        if make is None:
            super().setUpClass()
            return

        def start_and_make() -> None:
            # Ignored: the test case that this is mixed into has them.
            start_over(cls.databases)  # type: ignore[attr-defined]
            make()

        cls._drawn = {}
        # A class that has its own need not call another.
        with patch.object(cls, "setUpTestData", start_and_make):
            super().setUpClass()
        for each in memory.current().memories():
            if isinstance(each.source, KeySequence):
                last = each.newest.next - 1 if each.newest else each.seen
                cls._drawn[each.source, each.database.alias] = last

    # Not setUp(): a class that has its own need not call this one. Nor run(): errors in
    # there end the whole run of tests, and tests that are skipped reach it.
    def _callSetUp(self) -> None:  # noqa: N802 - unittest's
        start_over(getattr(self, "databases", ()))
        for (source, alias), number in self._drawn.items():
            source.raise_floor(alias, number)
        super()._callSetUp()  # type: ignore[misc]  # typeshed lacks it


def __getattr__(name: str) -> Any:
    """Return the pytest fixture ``hilo_ids``, for a ``conftest.py`` that imports it."""
    if name != "hilo_ids":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("django_hilo.pytest_plugin").hilo_ids
