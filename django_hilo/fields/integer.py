from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.db import connections, models

from django_hilo import floors, generator
from django_hilo.columns import KeyColumn
from django_hilo.exceptions import TableMissing
from django_hilo.fields.base import GivesIds
from django_hilo.freshness import (
    explicit_on,
    forget_all_fresh,
    fresh_on,
    is_from_default,
    known_value,
    leave_to_default,
    settle,
    without_value,
)
from django_hilo.naming import collection_of_keys
from django_hilo.sources.base import Source
from django_hilo.targets import CounterField, given_source, home_of, resolve

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

    _Number = int | str | Combinable | None
    _GivesIds = GivesIds[_Number, int]
    _BigAutoField = models.BigAutoField[_Number, int]
else:
    _GivesIds = GivesIds
    _BigAutoField = models.BigAutoField


logger = logging.getLogger("django_hilo")

# Where DEFAULT_AUTO_FIELD reaches the model of the table django_migrations.
_RECORD = "django.db.migrations.recorder"


# Ignored: AutoFieldMixin's contribute_to_class() takes any keywords, Field's does not.
class HiLoBigAutoField(_GivesIds, _BigAutoField, CounterField):  # type: ignore[misc]
    """A BigAutoField whose number is given before the row is inserted.

    Column, default of the database and migrations are those of a BigAutoField; it may
    be ``DEFAULT_AUTO_FIELD``. ``source`` is a counter of another system
    (`django_hilo.sources`). Without one the numbers come, on PostgreSQL, from the
    column's own sequence; elsewhere from the counter ``collection`` with the empty tag
    (default: the model's app label and name), over the rows that exist. ``capacity``
    and ``max_capacity`` bound the ranges.
    """

    is_integer = True
    _plain_field = models.BigAutoField
    _plain_type = int
    _has_no_counter = False
    own_options = ("collection", "source", "capacity", "max_capacity")
    non_db_attrs = (*models.BigAutoField.non_db_attrs, *own_options)

    def __init__(
        self,
        *args: Any,
        collection: str | None = None,
        source: Source | None = None,
        capacity: int | None = None,
        max_capacity: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        self.source = source
        self.capacity = capacity
        self.max_capacity = max_capacity
        super().__init__(*args, **kwargs)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        # Late, as in django_hilo.checks.
        from django_hilo.fields.checks import check_integer_field

        return [*super().check(**kwargs), *check_integer_field(self)]

    @property
    def collection_name(self) -> str:
        if self.collection is not None:
            return self.collection
        options = self.model._meta
        return collection_of_keys(options.app_label, str(options.model_name))

    @property
    def is_historical(self) -> bool:
        """Whether the model is one of a migration's."""
        return self.model.__module__ == "__fake__"

    def counter_of(self, using: str) -> tuple[str, Source]:
        # Most projects have no such field.
        from django_hilo.sources.column import source_of

        column = KeyColumn(self.model._meta.db_table, str(self.column))
        home = home_of(using)
        return source_of(self.collection_name, column, self.is_historical, using, home)

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        # bulk_create() of a plain manager says neither its database nor what it does
        # on conflicts; the column's default is right in all cases.
        using = self._written_to(instance)
        if is_from_default(instance) or self._shares_numbers_with_default(using):
            return None
        return super().get_pk_value_on_save(instance)

    def _shares_numbers_with_default(self, using: str) -> bool:
        shares = connections[using].vendor in ("postgresql", "sqlite")
        return shares and given_source(self) is None

    @contextmanager
    def conflicting(
        self, instances: Sequence[models.Model], using: str
    ) -> Iterator[None]:
        """Leave new numbers to the default: a row that exists keeps its own.

        MariaDB gets ours, and the objects forget them: which have rows is not known.
        """
        missing = [each for each in instances if self.is_missing(each)]
        if self._shares_numbers_with_default(using):
            for instance in missing:
                leave_to_default(instance)
            yield
            return
        yield
        for instance in missing:
            setattr(instance, self.attname, None)

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give numbers to the instances that have none, for one reservation at most.

        In a migration that runs before the tables of django_hilo exist they are left to
        the column's default, as is Django's own record of migrations.
        """
        missing = [
            each for each in without_value(instances, self) if not is_from_default(each)
        ]
        if not missing:
            return
        try:
            if self._has_no_counter or self.model.__module__ == _RECORD:
                raise TableMissing
            numbers = self._next_numbers(len(missing), using)
        except TableMissing as error:
            self._note_missing_tables(error)
            for instance in missing:
                leave_to_default(instance)
            return
        self.give(missing, numbers, using)

    def give_at_once(self, instance: models.Model, using: str) -> bool:
        if getattr(instance, self.attname) is not None or not self.primary_key:
            return False
        self.assign_missing([instance], using)
        return True

    def _next_numbers(self, n: int, using: str) -> list[int]:
        if n == 1 and self.primary_key:
            # By its model, the way to whose numbers is remembered.
            number: Any = generator.next_id(self.model, using)
            return [number]
        return generator.next_numbers(self, n, using)

    def check_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        found = self._explicit(instances, using)
        if found:
            highest = max(found)
            floors.check_jump(resolve(self, using), highest, str(highest))

    def expect_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        found = self._explicit(instances, using)
        if found:
            try:
                floors.expect(resolve(self, using), found)
            except TableMissing as error:
                self._note_missing_tables(error)

    def observe_inserted(self, instances: Sequence[models.Model], using: str) -> None:
        """Keep coming ranges over the explicit numbers that were inserted."""
        others = settle(instances, self, using)
        found = self._explicit(others, using)
        if found:
            try:
                floors.observe(resolve(self, using), found, using)
            except TableMissing as error:
                self._note_missing_tables(error)
        forget_all_fresh(others, self)

    def _note_missing_tables(self, error: TableMissing) -> None:
        """Go on by the column's default; the counter starts over its numbers later."""
        # A model of a migration lives as long as that: asked once.
        self._has_no_counter = self.is_historical
        if not self.is_historical and self.model.__module__ != _RECORD:
            logger.warning(
                "%s is numbered by the database, without django-hilo: %s",
                self.model._meta.label,
                error,
            )

    def _explicit(self, instances: Iterable[models.Model], using: str) -> list[int]:
        """Return the numbers over 0 that are not ours."""
        if self._has_no_counter:
            return []
        found = []
        for instance in explicit_on(instances, self, using):
            value = known_value(instance, self)
            if not (self._is_ours(instance, using) or is_from_default(instance)):
                number = _number_of(value)
                if number > 0:
                    found.append(number)
        return found

    def _is_ours(self, instance: models.Model, using: str) -> bool:
        """Whether an instance's number is new, if on another alias of one counter."""
        given_on = fresh_on(instance, self)
        return (
            given_on is not None
            and resolve(self, given_on).key == resolve(self, using).key
        )


def _number_of(value: Any) -> int:
    """Return a key's number; 0 for what is none, which the database will refuse."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
