"""What fields have in common whose ids are there before the row is inserted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from django.db import models, router

from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.fields.saving import NOTHING, give_first, insert_fresh
from django_hilo.freshness import is_watched, mark_fresh
from django_hilo.identifiers import DocumentId, parse
from django_hilo.naming import default_collection
from django_hilo.sharding.placement import refuse_sharded

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

    _CharField = models.CharField[str | Combinable | None, str]
    _Field = models.Field[Any, Any]
else:
    _CharField = models.CharField
    _Field = object


class GivesIds(_Field):
    """Gives an object its id before its row is inserted; for fields of any type."""

    collection: str | None
    # What deconstruct() adds, where it is not None or False.
    own_options: tuple[str, ...] = ("collection",)

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        if self.collection is not None:
            return self.collection
        return default_collection(self.model.__name__)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        for option in self.own_options:
            if getattr(self, option) not in (None, False):
                kwargs[option] = getattr(self, option)
        if path.startswith("django_hilo.fields."):
            # Shorter, and pinned: migrations name it.
            path = f"django_hilo.fields.{path.rpartition('.')[2]}"
        return name, path, args, kwargs

    def contribute_to_class(
        self, cls: type[models.Model], name: str, private_only: bool = False
    ) -> None:
        super().contribute_to_class(cls, name, private_only=private_only)
        if not cls._meta.abstract:
            model: Any = cls
            model.save_base = give_first(self, model.save_base)
            model._save_table = insert_fresh(self, model._save_table)

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        # Reached by bulk_create() of managers that are no HiLoManager.
        self.assign_missing([instance], self._written_to(instance))
        return getattr(instance, self.attname)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if add and not is_watched(model_instance):
            # Reached by bulk_create() of managers that are no HiLoManager.
            using = self._written_to(model_instance)
            self.assign_missing([model_instance], using)
            self.check_explicit([model_instance], using)
            self.observe_inserted([model_instance], using)
        return super().pre_save(model_instance, add)

    def _written_to(self, instance: models.Model) -> str:
        refuse_sharded(type(instance))
        return router.db_for_write(type(instance), instance=instance)

    @property
    def is_key(self) -> bool:
        """Whether it is the model's primary key, or a part of it."""
        return self.primary_key or self in self.model._meta.pk_fields

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is none."""
        value = instance.__dict__.get(self.attname, self)
        return value is None or value == ""

    def needs_id(self, instance: models.Model) -> bool:
        """Whether an instance must be given an id before it is inserted."""
        return self.is_missing(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        """Whether the id to give an instance is a gapless one."""
        return False

    def inserting(
        self, instances: Sequence[models.Model], using: str
    ) -> AbstractContextManager[None]:
        """Give ids to the instances that have none, for rows inserted in the block."""
        self.assign_missing(instances, using)
        return NOTHING

    @contextmanager
    def conflicting(
        self, instances: Sequence[models.Model], using: str
    ) -> Iterator[None]:
        """Insert rows in the block that may exist, and then be ignored or updated."""
        yield

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give ids to the instances that have none."""
        raise NotImplementedError  # pragma: no cover - fields of each kind have it

    def check_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Raise for explicit ids that must not be inserted."""

    def observe_inserted(self, instances: Sequence[models.Model], using: str) -> None:
        """Keep coming ids clear of explicit ids that were inserted."""
        raise NotImplementedError  # pragma: no cover - fields of each kind have it

    def expect_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Keep the ids that are taken now clear of explicit ids beside them."""

    def give(
        self, instances: Sequence[models.Model], values: Sequence[Any], using: str
    ) -> None:
        """Set ids that were given for rows on ``using``, one an instance."""
        mark_fresh(instances, self.attname, values, using)
        is_key = self.is_key
        for instance, value in zip(instances, values, strict=True):
            setattr(instance, self.attname, value)
            if is_key:
                instance._state.adding = True  # a copy, by Django's pk = None


class IdField(GivesIds, _CharField):
    """A text id that saving gives; each kind says where its numbers come from."""

    # "" is no id: an object without one must start as None, else it counts as saved.
    empty_strings_allowed = False
    non_db_attrs = (*models.CharField.non_db_attrs, "collection")

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("editable", False)
        kwargs.setdefault("blank", True)
        super().__init__(**kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        for option, default in (("editable", False), ("blank", True)):
            kwargs.pop(option, None)
            if getattr(self, option) != default:
                kwargs[option] = not default
        return name, path, args, kwargs

    def db_type(self, connection: Any) -> str | None:
        # The long name of varchar keeps Django from adding a second index for LIKE, to
        # this column and to each foreign key.
        if connection.vendor == "postgresql" and self.max_length is not None:
            return f"character varying({self.max_length})"
        return super().db_type(connection)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"empty_value": None, **kwargs})

    def give(
        self, instances: Sequence[models.Model], values: Sequence[Any], using: str
    ) -> None:
        longest = max(values, key=len)
        if self.max_length is not None and len(longest) > self.max_length:
            raise HiLoError(
                f"The id {longest!r} has {len(longest)} characters, {self} takes "
                f"{self.max_length}. Raise max_length and migrate."
            )
        super().give(instances, values, using)


def parse_or_none(text: Any) -> DocumentId | None:
    """Return the parts of an id, None for NULL or a text that no counter can give."""
    try:
        return parse(text)
    except InvalidDocumentId:
        return None
