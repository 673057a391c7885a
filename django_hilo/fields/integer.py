"""The integer key that is given before the row is inserted: `HiLoBigAutoField`."""

import logging
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connections, models
from django.db.models.expressions import Combinable

from django_hilo._allocation import explicit_ids
from django_hilo._allocation.registry import given_source, has_models, home_of
from django_hilo._database.dialects import dialect_of
from django_hilo._late_rows import write_late_rows
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.source import Source
from django_hilo.exceptions import TableMissing
from django_hilo.fields._assigned_ids import AssignedIds
from django_hilo.fields._collection_names import collection_of_keys
from django_hilo.fields._ids import Explicit, Instances, Save
from django_hilo.fields.saving import GivesIds
from django_hilo.sources.key_sequence import source_of

if TYPE_CHECKING:
    _BigAutoField = models.BigAutoField[int | str | Combinable | None, int]
else:
    _BigAutoField = models.BigAutoField

logger = logging.getLogger("django_hilo")

# The module of a migration's models.
_HISTORICAL = "__fake__"
# DEFAULT_AUTO_FIELD reaches the model of the table django_migrations here.
_RECORDER = "django.db.migrations.recorder"


class IntegerIds(AssignedIds):
    """The numbers of a `HiLoBigAutoField`.

    In a migration that runs before the tables of django_hilo exist, or without the app,
    the column's default gives them. Django's own record of migrations is one such case.
    """

    is_set_late = True

    def __init__(self, field: Any) -> None:
        super().__init__(field)
        module = field.model.__module__
        # A project may have removed the app, and kept its migrations.
        is_left = module == _HISTORICAL and not has_models()
        self.has_no_counter = is_left or module == _RECORDER

    def assign(
        self, instances: Instances, using: str, save: Save | None = None
    ) -> Explicit:
        try:
            return {} if self.has_no_counter else super().assign(instances, using, save)
        except TableMissing as error:
            self._leave_to_default(error)
            return {}

    def assign_on_conflict(self, instances: Instances, save: Save) -> Explicit:
        """Leave new numbers to the default, because an existing row keeps its own."""
        if self.has_no_counter:
            return {}
        if self.shares_numbers_with_default(save.using):
            write_late_rows()
            return self.assign(self._sort_out(instances, save.using)[1], save.using)
        return super().assign_on_conflict(instances, save)

    def give(self, instances: list[models.Model], using: str) -> None:
        numbers, notes = self.take_ids(len(instances), using)
        self.set_ids(instances, numbers, using, notes)

    def explicit_ids(self, instances: Instances, using: str) -> Explicit:
        return {} if self.has_no_counter else super().explicit_ids(instances, using)

    def number_in(self, value: Any, using: str) -> int | None:
        try:
            return max(int(value), 0) or None
        except (TypeError, ValueError, OverflowError):
            return None  # the database will refuse it

    def refused(self, instances: Instances, error: IntegrityError, using: str) -> None:
        # How PostgreSQL, MySQL and SQLite name the key that a row has already: the
        # sequence, or the counter, was set back, or SQL inserted rows above it.
        table = self.field.model._meta.db_table
        signs = "_pkey", "PRIMARY", f"{table}.{self.field.column}"
        is_named = any(each in str(error) for each in signs)
        if is_named and any(self.assigned_for(each) == using for each in instances):
            explicit_ids.drop_held(self.counter(using))

    def raise_over(self, ids: Explicit, using: str) -> None:
        try:
            super().raise_over(ids, using)
        except TableMissing as error:
            self._leave_to_default(error)

    def shares_numbers_with_default(self, using: str) -> bool:
        """Whether the column's own numbering never gives one of our numbers."""
        dialect = dialect_of(connections[using])
        shares = dialect.draws_keys_from_sequence or dialect.raises_key_default
        return shares and given_source(self.field) is None

    def _leave_to_default(self, error: TableMissing) -> None:
        """Leave numbers to the column's default: the counter will start over them."""
        if self.field.is_historical:
            # The model does not outlive its migration, so it need not ask again.
            self.has_no_counter = True
        else:
            text = "The database assigns the keys of %s, not django-hilo: %s"
            logger.warning(text, self.field.model._meta.label, error)


class HiLoBigAutoField(GivesIds, _BigAutoField):
    """A BigAutoField whose number is given before the row is inserted.

    Column, default of the database and migrations are those of a BigAutoField. The
    field may be ``DEFAULT_AUTO_FIELD``.

    - ``source`` is a counter of another system (`django_hilo.sources`). Without it
      the numbers come from the column's own sequence on PostgreSQL; elsewhere from a
      counter with the empty tag, which starts over the rows that exist.
    - ``collection`` names that counter (default: the model's app label and name).
    - ``capacity`` and ``max_capacity`` bound the size of ranges.
    """

    kind = IntegerIds
    is_integer = True
    per = ()
    own_options = dict.fromkeys(("collection", "source", "capacity", "max_capacity"))
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
        self.collection, self.source = collection, source
        self.capacity, self.max_capacity = capacity, max_capacity
        super().__init__(*args, **kwargs)

    @property
    def collection_name(self) -> str:
        if self.collection is not None:
            return self.collection
        options = self.model._meta
        return collection_of_keys(options.app_label, str(options.model_name))

    @property
    def is_historical(self) -> bool:
        """Whether the model is one of a migration."""
        return bool(self.model.__module__ == _HISTORICAL)

    def get_prep_value(self, value: Any) -> Any:
        # Most values are numbers already, those of foreign keys too.
        return value if type(value) is int else super().get_prep_value(value)

    def home_and_source(self, using: str) -> tuple[str, Source]:
        column = KeyColumn(self.model._meta.db_table, str(self.column))
        named = self.collection_name
        return source_of(named, column, self.is_historical, using, home_of)

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        # bulk_create() of a plain manager names neither its database nor its way with
        # conflicts. The default of the column is right in every case.
        ids: Any = self.ids
        if ids is None or ids.has_no_counter:
            return None
        if ids.shares_numbers_with_default(self.alias_of_plain_bulk(instance)):
            write_late_rows()
            return None
        return super().get_pk_value_on_save(instance)
