"""What Django calls to save: the methods of models that are wrapped, and of fields.

Each wrapper passes on what it was given, as it was given, since models may override
what we wrap with parameters of their own.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any

from django.core import checks
from django.db import IntegrityError, models, router

from django_hilo._allocation.registry import has_models
from django_hilo.fields._collection_names import (
    collection_of_links,
    default_collection,
)
from django_hilo.fields._ids import Ids, Save, ids_of_field, running
from django_hilo.fields._options import with_options

# The parameters of what is wrapped.
_SAVE_BASE = ("raw", "force_insert", "force_update", "using", "update_fields")
_SAVE_TABLE = ("raw", "cls", *_SAVE_BASE[1:])
_FORCE_INSERT = _SAVE_TABLE.index("force_insert")
_RETURNING = ("manager", "using", "fields", "returning_fields").index(
    "returning_fields"
)


class GivesIds:
    """The part of a field that gives an object its id before the row is inserted."""

    model: Any
    attname: Any
    own_options: dict[str, Any]
    collection: str | None
    # What it knows of its ids; None for a copy.
    ids: Ids | None
    # Of each kind of fields.
    kind: type[Ids]
    # Whether a history (django-simple-history) copied the field from another model:
    # then its values are ids of that model, and it gives none.
    is_copy = False

    @property
    def collection_name(self) -> str:
        """The collection, as ids show it."""
        if self.collection is not None:
            return self.collection
        is_made = self.model._meta.auto_created
        name_of = collection_of_links if is_made else default_collection
        return name_of(self.model.__name__)

    def contribute_to_class(self, cls: Any, name: str, *args: Any, **kw: Any) -> None:
        owner = getattr(self, "model", None)
        # A model may add its own field again, and abstract models share theirs.
        if owner not in (None, cls) and not owner._meta.abstract:
            self.is_copy = all(each is not self for each in owner._meta.local_fields)
        field: Any = super()
        field.contribute_to_class(cls, name, *args, **kw)
        self.ids = None if self.is_copy else self.kind(self)
        if not self.is_copy:
            wrap_saves(cls)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        field: Any = super()
        return with_options(self, field.deconstruct())

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        # Here, because without the app none of its own checks is registered.
        field: Any = super()
        found: list[checks.CheckMessage] = field.check(**kwargs)
        if not has_models():
            hint = "Add 'django_hilo' to INSTALLED_APPS, and run migrate."
            text = f"A {type(self).__name__} needs the app django_hilo."
            id = "django_hilo.E114"
            found.append(checks.Error(text, hint=hint, obj=self, id=id))
        return found

    # These two give ids in the bulk_create() of a plain manager alone: in saves, and in
    # that of a HiLoManager, the id is there.

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        if self.ids is not None and id(instance) not in running.instances:
            self.ids.assign([instance], self.alias_of_plain_bulk(instance))
        return getattr(instance, self.attname)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if add and id(model_instance) not in running.instances:
            self._assign_in_plain_bulk(model_instance)
        value = getattr(model_instance, self.attname)
        # Most ids end in a letter or digit, and no request does.
        if add and isinstance(value, str) and not value[-1:].isalnum():
            self.refuse_request(value)
        return value

    def refuse_request(self, value: str) -> None:
        """Raise `HiLoError` for a text that asks for an id, and was not answered."""

    def _assign_in_plain_bulk(self, instance: models.Model) -> None:
        """Give an id just before the INSERT, which somebody else has begun."""
        if self.ids is not None:
            using = self.alias_of_plain_bulk(instance)
            # The id stays an assigned one: the INSERT may be refused.
            found = self.ids.assign([instance], using)
            if found:
                self.ids.raise_over(found, using)

    def alias_of_plain_bulk(self, instance: models.Model) -> str:
        """Guess the alias, without the hints of the queryset: W107 warns of it."""
        return router.db_for_write(type(instance))


def with_buckets(model: type[models.Model], names: Iterable[str]) -> list[str]:
    """Return the names of fields to write, with the buckets of sources among them."""
    names = list(names)
    for field in model._meta.concrete_fields:
        source = getattr(field, "source_field", None)
        written = source and (source.name in names or source.attname in names)
        if written and field.name not in names:
            names.append(field.name)
    return names


def wrap_saves(model: Any) -> None:
    """Let the saves of a model and its children give ids and write buckets."""
    if not (model._meta.abstract or hasattr(model, "_hilo_saves")):
        model._hilo_saves = True
        model.save_base = _assign_first(model.save_base)
        model._save_table = _insert_assigned(model._save_table)
        model._do_insert = _note_refusal(model._do_insert)


def _assign_first(save_base: Callable[..., None]) -> Any:
    """Wrap a model's ``save_base()``, so that ids are assigned before Django starts.

    An error later would mark the caller's transaction for a rollback.
    """

    @wraps(save_base)
    def wrapper(self: models.Model, *args: Any, **options: Any) -> None:
        given = dict(zip(_SAVE_BASE, args, strict=False), **options)
        if given.get("raw"):
            save_base(self, *args, **options)
            return
        using = given.get("using") or router.db_for_write(type(self), instance=self)
        names = given.get("update_fields")
        # Django inserts a parent's row in any case. A proxy has a model without a link.
        inserts_parent = any(self._meta.parents.values()) and self.pk is None
        only_updates = not inserts_parent and (given.get("force_update") or names)
        if names:
            # Saves of deferred rows name their fields here too.
            names = options["update_fields"] = frozenset(
                with_buckets(type(self), names)
            )
            args = args[: _SAVE_BASE.index("update_fields")]
        elif self._meta.parents and not only_updates:
            _pass_keys_up(self, type(self))
        is_new = self._state.adding or self.pk is None
        save, late = Save(type(self), [self], using), []
        for ids in save.ids:
            if only_updates:
                ids.refuse_update(self, using, names)
            elif is_new or ids.is_key or ids.is_rolled_back(self, using):
                if found := ids.assign([self], using, save):
                    save.explicit[ids] = found
                if ids.is_set_late:
                    late.append(ids)
        if late:
            save.hide(self, late)
        save.run(partial(save_base, self, *args, **options))

    return wrapper


def _pass_keys_up(instance: models.Model, model: Any) -> None:
    """Fill the empty keys of an instance's parents from the links, as save() does."""
    for parent, link in model._meta.parents.items():
        key = parent._meta.pk.attname
        if link is not None and getattr(instance, key, None) is None:
            setattr(instance, key, getattr(instance, link.attname))
        _pass_keys_up(instance, parent)


def pass_keys_down(instances: list[Any], model: Any) -> None:
    """Fill the empty links of instances with the keys of their parents."""
    for parent, link in model._meta.parents.items():
        pass_keys_down(instances, parent)
        for each in instances if link else ():
            if getattr(each, link.attname) is None:
                setattr(each, link.attname, getattr(each, parent._meta.pk.attname))


def _insert_assigned(save_table: Callable[..., bool]) -> Any:
    """Wrap a model's ``_save_table()``: an assigned key needs no UPDATE first."""

    @wraps(save_table)
    def wrapper(self: models.Model, *args: Any, **options: Any) -> bool:
        given = dict(zip(_SAVE_TABLE, args, strict=False), **options)
        save = running.of(self)
        if save is not None and not given.get("raw"):
            return _save_ids(save_table, self, args, options, given, save)
        # A fixture's, which comes without save_base().
        using = given["using"]
        save = Save(type(self), [self], using)
        for ids in save.ids:
            if ids.field.model is given["cls"] and ids.is_key:
                save.explicit[ids] = ids.assign([self], using, save)
            else:  # the row of a parent, whose key this one has
                ids.make_sure([self], using)
        return save.run(
            partial(_save_ids, save_table, self, args, options, given, save)
        )

    return wrapper


def _save_ids(
    save_table: Callable[..., bool],
    instance: models.Model,
    args: tuple[Any, ...],
    options: dict[str, Any],
    given: dict[str, Any],
    save: Save,
) -> bool:
    """Write a row, and note what became of the ids in it.

    ``given`` are the arguments by their names.
    """
    model, using = given["cls"], save.using
    own = save.ids
    if instance._meta.parents:
        own = [each for each in own if each.field.model is model]
    may_insert = not (given.get("force_update") or given.get("update_fields"))
    if save.late and may_insert:
        save.show()
    if _has_assigned_key(instance, own, save) and may_insert:
        # Django passes force_insert in either way.
        if len(args) > _FORCE_INSERT:
            args = (*args[:_FORCE_INSERT], True, *args[_FORCE_INSERT + 1 :])
        else:
            options["force_insert"] = True
    try:
        updated = save_table(instance, *args, **options)
    except IntegrityError as error:
        for ids in own if save.is_refused else ():
            ids.refused([instance], error, using)
        raise
    save.is_refused = False
    for ids in own:
        ids.inserted([instance])
    if save.explicit and not updated:
        if model is instance._meta.concrete_model:
            # As Django does next: the row is there, whatever becomes of the floor.
            instance._state.db, instance._state.adding = using, False
        for ids in own:
            _raise_over(instance, ids, save)
    return updated


def _has_assigned_key(instance: models.Model, own: list[Ids], save: Save) -> bool:
    """Look at the ids again; return whether the key of the row is an assigned one."""
    is_assigned = False
    for ids in own:
        is_assigned |= ids.look_again(instance, save) and ids.is_key
    return is_assigned


def _raise_over(instance: models.Model, ids: Ids, save: Save) -> None:
    """Keep a counter over the explicit id of a row that was inserted."""
    found = save.explicit.pop(ids, {})
    if found is None:
        found = ids.explicit_ids([instance], save.using)
    if found:
        ids.raise_over(found, save.using)


def without_known(
    returning: Sequence[Any] | None, objects: Iterable[models.Model]
) -> Sequence[Any] | None:
    """Return the fields to ask an INSERT for: not for a key that the objects have."""
    if not returning or len(returning) > 1 or not ids_of_field(returning[0]):
        return returning
    name = returning[0].attname
    for each in objects:
        # A text would become a number by the answer.
        if type(getattr(each, name)) is not int:
            return returning
    return []


def _note_refusal(do_insert: Callable[..., Any]) -> Any:
    """Wrap a model's ``_do_insert()``, which also reads each integer key back."""

    @wraps(do_insert)
    def wrapper(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) > _RETURNING and args[_RETURNING]:
            returning = without_known(args[_RETURNING], [self])
            args = (*args[:_RETURNING], returning, *args[_RETURNING + 1 :])
        try:
            return do_insert(self, *args, **options)
        except IntegrityError:
            if save := running.of(self):
                save.is_refused = True
            raise

    return wrapper
