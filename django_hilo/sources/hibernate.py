"""Counters of Hibernate ORM 3 to 7, tested with Hibernate 3.6.10.

Its optimizers are formulas of `formulas`.

``max_number`` is the highest id that the partner's type allows: Java's ``int`` ends at
2147483647 and wraps without an error.
"""

import re
from abc import abstractmethod

from django.utils.deconstruct import deconstructible

from django_hilo.exceptions import UnsafeSource
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Row, Sequence
from django_hilo.sources.storages.base import Storage


def block_of(max_lo: int) -> int:
    """Return how many ids a hi gives: ``max_lo + 1``, or 1 for a max_lo under 1."""
    if isinstance(max_lo, bool) or not isinstance(max_lo, int):
        raise ValueError(f"max_lo must be an integer, not {max_lo!r}.")
    return max(max_lo, 0) + 1


@deconstructible(path="django_hilo.sources.hibernate.HiLo")
class HiLo(ForeignCounter):
    """``hilo`` (TableHiLoGenerator): one row for all entities; formula L1."""

    def __init__(
        self,
        max_lo: int,
        table: str = "hibernate_unique_key",
        column: str = "next_hi",
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        formula = formulas.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Row(table, column), formula)


@deconstructible(path="django_hilo.sources.hibernate.SequenceHiLo")
class SequenceHiLo(ForeignCounter):
    """``seqhilo`` (SequenceHiLoGenerator): a sequence, INCREMENT BY 1; formula L1."""

    def __init__(
        self,
        max_lo: int,
        sequence: str = "hibernate_sequence",
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        formula = formulas.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Sequence(sequence), formula)


@deconstructible(path="django_hilo.sources.hibernate.MultipleHiLo")
class MultipleHiLo(ForeignCounter):
    """MultipleHiLoPerTableGenerator: a row for each entity; formula L1.

    ``name`` is the entity's table, as Hibernate writes it.
    """

    def __init__(
        self,
        max_lo: int,
        name: str,
        table: str = "hibernate_sequences",
        *,
        key_column: str = "sequence_name",
        column: str = "sequence_next_hi_value",
        max_number: int = MAX_NUMBER,
    ) -> None:
        formula = formulas.HiLo(block_of(max_lo), max_number=max_number)
        super().__init__(Row(table, column, key={key_column: name}, start=0), formula)


# The version that `_Enhanced` goes by until the project has named one.
_LATEST = "7.2"
_VERSION = (
    'the version of Hibernate, as in version="6.4.4". It is in the name of the '
    "partner's hibernate-core-*.jar, in the output of `mvn dependency:tree` or "
    "`gradle dependencies`, and in the log when Hibernate starts (HHH000412)"
)


class _Enhanced(ForeignCounter):
    """The sequence or row of an enhanced generator, with its optimizer's formula."""

    def __init__(
        self,
        increment: int,
        *,
        sequence: str | None = None,
        table: str | None = None,
        segment: str | None = None,
        column: str = "next_val",
        segment_column: str = "sequence_name",
        stored_last_used: bool | None = None,
        initial_value: int = 1,
        version: str | None = None,
        max_number: int = MAX_NUMBER,
    ) -> None:
        if stored_last_used and segment is None:
            raise ValueError("stored_last_used requires a table with a segment.")
        self._has_version = version is not None
        self._version = _LATEST if version is None else version
        last_used = segment is not None and _number(self._version) >= (5, 3)
        self._last_used = last_used if stored_last_used is None else stored_last_used
        self._increment, self._initial_value = increment, initial_value
        self._max_number = max_number
        storage: Storage
        if sequence is not None and table is None:
            if segment is not None:
                raise ValueError(f"segment={segment!r} needs table=, not sequence=.")
            storage = Sequence(sequence)
        elif sequence is None and table is not None:
            start = None if segment is None else initial_value - self._last_used
            key = {} if segment is None else {segment_column: segment}
            storage = Row(table, column, key=key, start=start)
        else:
            raise ValueError("Pass either sequence= or table=.")
        self.storage = storage
        super().__init__(storage, self._formula())

    @property
    def missing(self) -> str:
        return "" if self._has_version else _VERSION

    @abstractmethod
    def _formula(self) -> formulas.Formula:
        """Return the formula of the optimizer."""


@deconstructible(path="django_hilo.sources.hibernate.EnhancedHiLo")
class EnhancedHiLo(_Enhanced):
    """The optimizer ``hilo`` of enhanced generators since 5.2.10; formulas L2 and L3.

    Raises `UnsafeSource` for an older ``version`` (HHH-3628). The arguments are those
    of `Pooled`.
    """

    def _formula(self) -> formulas.Formula:
        if _number(self._version) < (5, 2, 10):
            raise UnsafeSource(
                f"The optimizer 'hilo' of Hibernate {self._version} gives ids "
                f"twice as soon as two processes run (HHH-3628): 810 of 1,500 when "
                f"measured. Use Hibernate 5.2.10 or later, or its optimizer "
                f"'pooled-lo'."
            )
        shift = 0 if self._last_used else -1
        return formulas.HiLo(self._increment, shift, 1, self._max_number)


@deconstructible(path="django_hilo.sources.hibernate.Pooled")
class Pooled(_Enhanced):
    """The optimizer ``pooled``, the default of enhanced generators; L4, L5, L8.

    - ``sequence``: the name of a sequence with INCREMENT BY ``increment``; or
    - ``table``: a table with one row, or with the ``segment`` of JPA's @TableGenerator.
    - ``stored_last_used``: whether a segment's number is the last id used, as since
      Hibernate 5.3; None: according to ``version``.
    - ``initial_value``: the generator's; for @TableGenerator(initialValue=n), n + 1.
    - ``version``: Hibernate's, such as "6.4.4"; check E026 requires it. Before 4.3.11,
      each block starts one number lower.
    """

    def _formula(self) -> formulas.Formula:
        if _number(self._version) < (4, 3, 11):
            return formulas.PooledBelow(self._increment, self._max_number)
        sizes = self._increment, self._initial_value
        return formulas.Pooled(*sizes, self._last_used, self._max_number)


@deconstructible(path="django_hilo.sources.hibernate.PooledLo")
class PooledLo(_Enhanced):
    """The optimizers ``pooled-lo`` and ``pooled-lotl``; formulas L6 and L7.

    On a table, Django may reserve ranges of any size, whatever the partner's size. The
    arguments are those of `Pooled`.
    """

    def _formula(self) -> formulas.Formula:
        kind = formulas.LastUsed if self._last_used else formulas.PooledLo
        formula = kind(self._increment, self._max_number)  # also checks the increment
        return kind(1, self._max_number) if isinstance(self.storage, Row) else formula


def _number(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version) if isinstance(version, str) else None
    if found is None:
        raise ValueError(f"version must be of the form '5.2.10', not {version!r}.")
    return tuple(int(part) for part in found[0].split(".")[:3])
