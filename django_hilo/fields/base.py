"""What fields have in common whose ids are there before the row is inserted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from django.db import models, router

from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.fields import gapless_ids
from django_hilo.fields.saving import (
    NOTHING,
    give_first,
    insert_fresh,
    insert_given,
)
from django_hilo.freshness import (
    is_watched,
    known_value,
    make_room,
    mark_fresh,
    set_fresh,
)
from django_hilo.identifiers import DocumentId, parse
from django_hilo.naming import default_collection
from django_hilo.sharding.placement import refuse_sharded

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable
    from typing_extensions import TypeVar

    # What is set, None for an object that is to get an id, and what is got.
    Set_contra = TypeVar("Set_contra", contravariant=True, default=Any)
    Got_co = TypeVar("Got_co", covariant=True, default=Any)
    Text = str | Combinable | None

    class _Field(models.Field[Set_contra, Got_co]): ...

    class _CharField(models.CharField[Set_contra, Got_co]): ...

else:
    Set_contra = Got_co = None

    class _Field:
        def __class_getitem__(cls, types: Any) -> type:
            return cls  # types mean nothing at run time

    class _CharField(_Field, models.CharField): ...


# What the short way does without.
_LONG_WAY = {"is_missing", "needs_id", "assign_missing", "inserting"}


class GivesIds(_Field[Set_contra, Got_co]):
    """Gives an object its id before its row is inserted; for fields of any type."""

    collection: str | None
    # Whether a history copied the field from another model, as django-simple-history
    # does: its rows name ids of others, and have none to be given or counted.
    is_copy = False
    # What deconstruct() adds, where it is not None or False.
    own_options: tuple[str, ...] = ("collection",)
    # Django's field of the kind, and the type of an id of it.
    _plain_field: type[models.Field[Any, Any]] = models.Field
    _plain_type: type = object
    # Whether such an id is written, and read, as it is: no subclass or base changes it.
    _writes_as_is = False
    _reads_as_is = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        plain = cls._plain_field
        cls._writes_as_is = all(
            getattr(cls, name) is getattr(plain, name)
            for name in ("get_db_prep_value", "get_prep_value", "to_python")
        ) and (super().get_db_prep_save is plain.get_db_prep_save)
        cls._reads_as_is = cls._writes_as_is and not hasattr(cls, "from_db_value")
        for base in cls.__mro__:
            if "give_at_once" in vars(base):
                break
            if vars(base).keys() & _LONG_WAY:
                # The short way would pass by what a project has made of it.
                cls.give_at_once = GivesIds.give_at_once  # type: ignore[method-assign]
                break

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
        owner = getattr(self, "model", None)
        # No copy is what one model has again, or what several have in common.
        if owner not in (None, cls) and not owner._meta.abstract:
            self.is_copy = all(each is not self for each in owner._meta.local_fields)
        super().contribute_to_class(cls, name, private_only=private_only)
        if not (cls._meta.abstract or self.is_copy):
            model: Any = cls
            model.save_base = give_first(self, model.save_base)
            model._save_table = insert_fresh(self, model._save_table)
            if self.db_returning:
                model._do_insert = insert_given(self, model._do_insert)
            make_room(self)

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        # Reached by bulk_create() of managers that are no HiLoManager.
        self.assign_missing([instance], self._written_to(instance))
        return getattr(instance, self.attname)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if add and not (self.is_copy or is_watched(model_instance)):
            # Reached by bulk_create() of managers that are no HiLoManager.
            using = self._written_to(model_instance)
            self.assign_missing([model_instance], using)
            self.check_explicit([model_instance], using)
            self.observe_inserted([model_instance], using)
        return super().pre_save(model_instance, add)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        # Asked for each id that is written, and each that refers to one.
        if type(value) is self._plain_type and value and self._writes_as_is:
            return value
        return super().get_db_prep_save(value, connection)

    def not_given(
        self, returning: Any, written: Any, objects: Iterable[models.Model]
    ) -> Any:
        """Return what an INSERT is to give back: not keys that it was given itself.

        Django asks for all keys of an integer field, a row of the result for each.
        """
        if returning != [self] or self not in written or not self._reads_as_is:
            return returning
        keys = (getattr(each, self.attname) for each in objects)
        # Another type's are to be as the database gives them.
        return [] if all(type(key) is self._plain_type for key in keys) else returning

    def _written_to(self, instance: models.Model) -> str:
        refuse_sharded(type(instance))
        return router.db_for_write(type(instance), instance=instance)

    @property
    def gives_gapless(self) -> bool:
        """Whether its ids may be gapless ones, which a rollback takes back."""
        return False

    @property
    def is_key(self) -> bool:
        """Whether it is the model's primary key, or a part of it."""
        return self.primary_key or self in self.model._meta.pk_fields

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is none."""
        value = known_value(instance, self, self)
        return value is None or value == ""

    def needs_id(self, instance: models.Model) -> bool:
        """Whether an instance must be given an id before it is inserted."""
        return self.is_missing(instance)

    def needs_gapless(self, instance: models.Model) -> bool:
        """Whether the id to give an instance is a gapless one."""
        return False

    def was_rolled_back(self, instance: models.Model) -> bool:
        """Whether an instance has an id that the rollback of its row gave back."""
        return False

    def refuse_lost(self, instance: models.Model) -> None:
        """Raise `HiLoError` for an update by an id that a rollback gave back."""

    def give_at_once(self, instance: models.Model, using: str) -> bool:
        """Give an id to an instance of one row where nothing else goes before its save.

        Returns whether it was given: the short way of most new rows.
        """
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

    def give_one(self, instance: models.Model, value: Any, using: str) -> None:
        """Set an id that was given for a row on ``using``."""
        mark_fresh(instance, self, value, using)
        setattr(instance, self.attname, value)
        if self.primary_key or self.is_key:
            instance._state.adding = True  # a copy, by Django's pk = None

    def give(
        self, instances: Sequence[models.Model], values: Sequence[Any], using: str
    ) -> None:
        """Set ids that were given for rows on ``using``, one an instance."""
        set_fresh(instances, self, values, using)
        if self.is_key:
            for instance in instances:
                instance._state.adding = True


class IdField(GivesIds[Set_contra, Got_co], _CharField[Set_contra, Got_co]):
    """A text id that saving gives; each kind says where its numbers come from."""

    # "" is no id: an object without one must start as None, else it counts as saved.
    empty_strings_allowed = False
    non_db_attrs = (*models.CharField.non_db_attrs, "collection")
    _plain_field = models.CharField
    _plain_type = str

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

    def was_rolled_back(self, instance: models.Model) -> bool:
        return gapless_ids.was_rolled_back(self, instance)

    def refuse_lost(self, instance: models.Model) -> None:
        gapless_ids.refuse_lost(self, instance)

    def give(
        self, instances: Sequence[models.Model], values: Sequence[Any], using: str
    ) -> None:
        self._check_length(max(values, key=len))
        super().give(instances, values, using)

    def give_one(self, instance: models.Model, value: Any, using: str) -> None:
        self._check_length(value)
        super().give_one(instance, value, using)

    def _check_length(self, id: str) -> None:
        if self.max_length is not None and len(id) > self.max_length:
            raise HiLoError(
                f"The id {id!r} has {len(id)} characters, {self} takes "
                f"{self.max_length}. Raise max_length and migrate."
            )


def parse_or_none(text: Any) -> DocumentId | None:
    """Return the parts of an id, None for NULL or a text that no counter can give."""
    try:
        return parse(text)
    except InvalidDocumentId:
        return None
