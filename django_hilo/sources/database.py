"""Sequences of the database that no other system uses."""

from django.utils.deconstruct import deconstructible

from django_hilo.identifiers import MAX_NUMBER
from django_hilo.sources import formulas, storages
from django_hilo.sources.foreign import ForeignCounter


@deconstructible(path="django_hilo.sources.database.Sequence")
class Sequence(ForeignCounter):
    """A sequence by its name; a value is the lowest of ``increment`` ids.

    With ``increment=50`` the value 101 means 101 to 150, and the sequence must have
    INCREMENT BY 50, as with Hibernate's optimizer ``pooled-lo`` and EF Core. If the
    value is the highest id, as with EclipseLink and with Hibernate's ``pooled``, the
    default for JPA's ``allocationSize=50``, use `hibernate.Pooled` or
    `formulas.Pooled`.

    With INCREMENT BY 1, other writers may use ``nextval`` freely.
    """

    def __init__(
        self, name: str, increment: int = 1, *, max_number: int = MAX_NUMBER
    ) -> None:
        formula = formulas.PooledLo(increment, max_number)
        super().__init__(storages.Sequence(name), formula)
