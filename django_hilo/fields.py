from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.db import models, router

from django_hilo import floors, generator
from django_hilo.anchors import Anchor, anchor_of
from django_hilo.exceptions import HiLoError, InvalidDocumentId
from django_hilo.field_checks import check_field
from django_hilo.freshness import (
    forget_fresh,
    is_fresh,
    is_watched,
    mark_fresh,
    watched,
)
from django_hilo.identifiers import DocumentId, parse
from django_hilo.inheritance import pass_keys_up
from django_hilo.naming import default_collection
from django_hilo.targets import CounterField, resolve

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

    _CharField = models.CharField[str | Combinable | None, str]
else:
    _CharField = models.CharField


class HiLoField(CounterField, _CharField):
    """A text id such as ``orders/33-A``, given when the object is first saved.

    ``collection`` is the family of ids that share a counter (default: the plural of the
    model's name by RavenDB's convention). ``anchor`` names a relation or field, through
    relations too (``"order__customer"``), or is an importable callable of the instance;
    its id or text follows a ``$``. ``capacity`` and ``max_capacity`` bound the ranges.
    ``max_length`` is 64, with an anchor 128.
    """

    # "" is no id: an object without one must start as None, else it counts as saved.
    empty_strings_allowed = False
    non_db_attrs = (
        *models.CharField.non_db_attrs,
        "collection",
        "anchor",
        "capacity",
        "max_capacity",
    )

    def __init__(
        self,
        collection: str | None = None,
        anchor: Anchor | None = None,
        *,
        capacity: int | None = None,
        max_capacity: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        self.anchor = anchor
        self.capacity = capacity
        self.max_capacity = max_capacity
        kwargs.setdefault("max_length", 64 if anchor is None else 128)
        kwargs.setdefault("editable", False)
        kwargs.setdefault("blank", True)
        super().__init__(**kwargs)

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        if self.collection is not None:
            return self.collection
        return default_collection(self.model.__name__)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        for option, default in (("editable", False), ("blank", True)):
            kwargs.pop(option, None)
            if getattr(self, option) != default:
                kwargs[option] = not default
        for option in ("collection", "anchor", "capacity", "max_capacity"):
            if getattr(self, option) is not None:
                kwargs[option] = getattr(self, option)
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return name, path, args, kwargs

    def db_type(self, connection: Any) -> str | None:
        # The long name of varchar keeps Django from adding a second index for LIKE, to
        # this column and to each foreign key.
        if connection.vendor == "postgresql" and self.max_length is not None:
            return f"character varying({self.max_length})"
        return super().db_type(connection)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"empty_value": None, **kwargs})

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        return [*super().check(**kwargs), *check_field(self)]

    def contribute_to_class(
        self, cls: type[models.Model], name: str, private_only: bool = False
    ) -> None:
        super().contribute_to_class(cls, name, private_only)
        if not cls._meta.abstract:
            model: Any = cls
            model.save_base = _assign_first(self, model.save_base)
            model._save_table = _insert_fresh(self, model._save_table)

    def get_pk_value_on_save(self, instance: models.Model) -> str:
        # Reached by bulk_create() of managers that are no HiLoManager.
        self.assign_missing([instance], self._written_to(instance))
        return str(getattr(instance, self.attname))

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if add and not is_watched(model_instance):
            # Reached by bulk_create() of managers that are no HiLoManager.
            using = self._written_to(model_instance)
            self.assign_missing([model_instance], using)
            self.check_explicit([model_instance], using)
            self.observe_inserted([model_instance], using)
        return super().pre_save(model_instance, add)

    def _written_to(self, instance: models.Model) -> str:
        return router.db_for_write(type(instance), instance=instance)

    def is_missing(self, instance: models.Model) -> bool:
        """Whether an instance has no id; an empty text is none."""
        return instance.__dict__.get(self.attname, self) in (None, "")

    def assign_missing(self, instances: Iterable[models.Model], using: str) -> None:
        """Give ids to the instances that have none, for one reservation at most."""
        missing = {id(i): i for i in instances if self.is_missing(i)}.values()
        if not missing:
            return
        ends: Any = repeat("")
        if self.anchor is not None:
            anchor = self.anchor
            ends = ["$" + anchor_of(instance, anchor) for instance in missing]
        target = resolve(self, using)
        ids = generator.next_ids(target, len(missing))
        for instance, start, end in zip(missing, ids, ends, strict=False):
            self._give(instance, start + end, target.using)

    def _give(self, instance: models.Model, value: str, home: str) -> None:
        if self.max_length is not None and len(value) > self.max_length:
            raise HiLoError(
                f"The id {value!r} has {len(value)} characters, {self} takes "
                f"{self.max_length}. Raise max_length and migrate."
            )
        setattr(instance, self.attname, value)
        mark_fresh(instance, self.attname, value, home)
        if _is_key(self):
            instance._state.adding = True  # a copy, by Django's pk = None

    def check_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Raise `HiLoError` where the number of an explicit id is absurdly high."""
        found = self._explicit(instances, using)
        if found:
            highest = max(found, key=lambda document_id: document_id.number)
            floors.check_jump(resolve(self, using), highest)

    def expect_explicit(self, instances: Iterable[models.Model], using: str) -> None:
        """Keep the ids that are taken now clear of explicit ids beside them."""
        found = self._explicit(instances, using)
        if found:
            numbers = [document_id.number for document_id in found]
            floors.expect(resolve(self, using), numbers)

    def observe_inserted(self, instances: Sequence[models.Model], using: str) -> None:
        """Keep coming ranges over the numbers of explicit ids that were inserted."""
        found = self._explicit(instances, using)
        if found:
            numbers = [document_id.number for document_id in found]
            floors.observe(resolve(self, using), numbers, using)
        for instance in instances:
            forget_fresh(instance, self.attname)

    def _explicit(
        self, instances: Iterable[models.Model], using: str
    ) -> list[DocumentId]:
        """Return the ids that are not ours but of the own counter."""
        target = resolve(self, using)
        values = [
            instance.__dict__.get(self.attname)
            for instance in instances
            if not is_fresh(instance, self.attname, target.using)
        ]
        texts = [value for value in values if isinstance(value, str) and value]
        return [
            document_id
            for document_id in map(_parse_or_none, texts)
            if document_id is not None
            and document_id.collection.lower() == target.collection.lower()
            and document_id.node_tag in ("", target.node_tag)
        ]


def _parse_or_none(text: str) -> DocumentId | None:
    try:
        return parse(text)
    except InvalidDocumentId:
        return None  # an id of another kind, which no range can give


def _assign_first(field: HiLoField, save_base: Callable[..., None]) -> Any:
    """Wrap a model's ``save_base()``, so that ids are there before Django starts.

    An error in there would mark the caller's transaction for a rollback.
    """

    @wraps(save_base)
    def wrapper(
        self: models.Model,
        raw: bool = False,
        force_insert: Any = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Any = None,
    ) -> None:
        using = using or router.db_for_write(type(self), instance=self)
        if not (raw or force_update or update_fields):
            pass_keys_up(self, type(self))
            if _is_key(field) or self._state.adding or self.pk is None:
                field.assign_missing([self], using)
            if self._state.adding:
                field.check_explicit([self], using)
        save_base(
            self,
            raw=raw,
            force_insert=force_insert,
            force_update=force_update,
            using=using,
            update_fields=update_fields,
        )

    return wrapper


def _insert_fresh(field: HiLoField, save_table: Callable[..., bool]) -> Any:
    """Wrap a model's ``_save_table()``: a fresh id of ours needs no UPDATE."""

    @wraps(save_table)
    def wrapper(
        self: models.Model,
        raw: bool = False,
        cls: Any = None,
        force_insert: bool = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Any = None,
    ) -> bool:
        ours = cls is field.model
        only_update = force_update or bool(update_fields)
        if ours and _is_key(field):
            assert using is not None
            if field.is_missing(self):
                if only_update:
                    raise ValueError(
                        "Cannot force an update in save() with no primary key."
                    )
                field.assign_missing([self], using)
            if raw:
                field.check_explicit([self], using)
            force_insert = force_insert or (
                self._state.adding and is_fresh(self, field.attname) and not only_update
            )
        with watched([self]):
            updated = save_table(
                self, raw, cls, force_insert, force_update, using, update_fields
            )
        if ours and not updated:
            assert using is not None
            field.observe_inserted([self], using)
        return updated

    return wrapper


def _is_key(field: models.Field[Any, Any]) -> bool:
    return field in field.model._meta.pk_fields
