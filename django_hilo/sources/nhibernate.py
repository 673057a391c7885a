"""Counters of NHibernate, tested with recorded examples only.

``max_number`` is the highest id that the partner's type allows; it cuts higher ones.
"""

from typing import Any, NoReturn

from django.utils.deconstruct import deconstructible

from django_hilo.exceptions import UnsafeSource
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas, hibernate
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Row

# Its enhanced generators read a segment's number as Hibernate did before 5.3, and lay
# their blocks as Hibernate did before 4.3.11.
_AS_HIBERNATE = "3.6"


@deconstructible(path="django_hilo.sources.nhibernate.HiLo")
class HiLo(ForeignCounter):
    """``hilo``: formula L1. A new schema starts at 1, so its first id is 32768.

    ``where`` is the generator's parameter: SQL that selects one of several rows.
    """

    def __init__(
        self,
        max_lo: int,
        table: str = "hibernate_unique_key",
        column: str = "next_hi",
        where: str | None = None,
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        formula = formulas.HiLo(hibernate.block_of(max_lo), max_number=max_number)
        super().__init__(Row(table, column, where=where), formula)


@deconstructible(path="django_hilo.sources.nhibernate.SequenceHiLo")
class SequenceHiLo(hibernate.SequenceHiLo):
    """``seqhilo``: formula L1. NHibernate before 5.1 omits each block's first id."""


@deconstructible(path="django_hilo.sources.nhibernate.Pooled")
class Pooled(hibernate.Pooled):
    """The optimizer ``pooled`` of the enhanced generators: formula L8.

    The arguments are those of Hibernate's `Pooled`, except stored_last_used, version
    and initial_value. Before processes start, the counter must be at ``1 + increment``
    or higher, because the first read of each process takes two blocks.
    """

    def __init__(self, increment: int, **kwargs: Any) -> None:
        super().__init__(increment, version=_AS_HIBERNATE, **kwargs)


@deconstructible(path="django_hilo.sources.nhibernate.PooledLo")
class PooledLo(hibernate.PooledLo):
    """The optimizer ``pooled-lo`` of the enhanced generators: formula L7."""

    def __init__(self, increment: int, **kwargs: Any) -> None:
        super().__init__(increment, version=_AS_HIBERNATE, **kwargs)


class EnhancedHiLo:
    """The optimizer ``hilo`` of the enhanced generators: always `UnsafeSource`."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsafeSource(
            "The optimizer 'hilo' of NHibernate's enhanced generators gives ids twice "
            "as soon as two processes run, because it continues from its old value. "
            "Use its 'pooled-lo', or the generator 'hilo' (nhibernate.HiLo)."
        )
