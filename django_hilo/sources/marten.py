"""The Hilo sequences of Marten, tested with a copy of its function's behaviour."""

from django.utils.deconstruct import deconstructible

from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas
from django_hilo.sources.foreign import ForeignCounter
from django_hilo.sources.storages import Row


@deconstructible(path="django_hilo.sources.marten.HiLo")
class HiLo(ForeignCounter):
    """The row of ``mt_hilo`` for a document type; formula M1.

    Marten's function ``mt_get_next_hi`` compares before it writes, and retries if
    another process was first, so Django may write the row itself.

    - ``name``: the class name without its namespace, or its SequenceName.
    - ``max_lo``: MaxLo.
    - ``schema``: the schema of Marten's tables.
    """

    def __init__(
        self,
        name: str,
        max_lo: int = 1000,
        schema: str = "public",
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        row = Row(f"{schema}.mt_hilo", "hi_value", key={"entity_name": name}, start=-1)
        formula = formulas.HiLo(max_lo, 1, 1, max_number)
        super().__init__(row, formula)
