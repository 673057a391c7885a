"""UseHiLo() of EF Core and Npgsql, tested with recorded examples only."""

from django.utils.deconstruct import deconstructible

from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas, storages
from django_hilo.sources.foreign import ForeignCounter


@deconstructible(path="django_hilo.sources.efcore.Sequence")
class Sequence(ForeignCounter):
    """A sequence whose INCREMENT BY is the model's, 10 by default; formula E1."""

    def __init__(
        self,
        name: str = "EntityFrameworkHiLoSequence",
        increment: int = 10,
        schema: str | None = None,
        *,
        max_number: int = MAX_NUMBER,
    ) -> None:
        full = name if schema is None else f"{schema}.{name}"
        formula = formulas.PooledLo(increment, max_number)
        super().__init__(storages.Sequence(full), formula)
