"""Whether ``save()`` gives an id: the methods of models that are wrapped for it.

Each wrapper passes on what it was given, as it was given, since models may override
what we wrap with parameters of their own.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any

from django.db import IntegrityError, models, router

from django_hilo.fields._late_keys import hide, is_to_hide, show
from django_hilo.fields._notes import ReadsNotes, id_fields
from django_hilo.fields._save import Save

# The parameters of what is wrapped.
_SAVE_BASE = ("raw", "force_insert", "force_update", "using", "update_fields")
_SAVE_TABLE = ("raw", "cls", *_SAVE_BASE[1:])
_FORCE_INSERT = _SAVE_TABLE.index("force_insert")
_RETURNING = ("manager", "using", "fields", "returning_fields").index(
    "returning_fields"
)


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
        raw, names = given.get("raw"), given.get("update_fields")
        using = given.get("using") or router.db_for_write(type(self), instance=self)
        # Django inserts a parent's row in any case. A proxy has a model without a link.
        inserts_parent = any(self._meta.parents.values()) and self.pk is None
        only_updates = not inserts_parent and (given.get("force_update") or names)
        if names:
            # Saves of deferred rows name their fields here too.
            names = options["update_fields"] = frozenset(
                with_buckets(type(self), names)
            )
            args = args[: _SAVE_BASE.index("update_fields")]
        elif self._meta.parents and not (raw or only_updates):
            _pass_keys_up(self, type(self))
        is_new = self._state.adding or self.pk is None
        save, late = Save(), []
        for field in () if raw else id_fields(type(self)):
            if only_updates:
                field.refuse_update(self, using, names)
            elif is_new or field.is_key or field.is_rolled_back(self, using):
                if field.is_set_late and is_to_hide(self, field):
                    late.append(field)
                field.assign_missing([self], using, save)
        if late:
            hide(self, late)
        write = partial(save_base, self, *args, **options)
        try:
            if save.blocks:
                with save.around():
                    write()
            else:
                write()
        except BaseException as error:
            show(self, late)
            _take_off_refused(self, save, error)
            raise

    return wrapper


def _take_off_refused(instance: Any, save: Save, error: BaseException) -> None:
    """Take the ids off that a save gave, if its INSERT was refused.

    Not if a receiver, or a method around it, failed before or after.
    """
    was_refused = getattr(instance._state, "hilo_refused", False)
    instance._state.hilo_refused = False
    if was_refused and isinstance(error, IntegrityError):
        save.take_off()


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
        write = partial(_save_ids, save_table, self, args, options, given)
        if not given.get("raw"):
            return write({})
        # Fixtures get here without save_base().
        save = Save()
        known: dict[Any, dict[str, int]] = {}
        for field in id_fields(type(self)):
            if field.model is given["cls"] and field.is_key:
                known[field] = field.assign_missing([self], given["using"], save)
            else:  # the row of a parent, whose key this one has
                field.make_sure([self], given["using"])
        try:
            with save.around():
                return write(known)
        except IntegrityError as error:
            _take_off_refused(self, save, error)
            raise

    return wrapper


def _save_ids(
    save_table: Callable[..., bool],
    instance: models.Model,
    args: tuple[Any, ...],
    options: dict[str, Any],
    given: dict[str, Any],
    known: dict[Any, dict[str, int]],
) -> bool:
    """Write a row, and note what became of the ids in it.

    ``given`` are the arguments by their names, ``known`` the explicit ids of fields
    that were looked at already.
    """
    using = given["using"]
    state: Any = instance._state
    may_insert = not (given.get("force_update") or given.get("update_fields"))
    fields, inherits = id_fields(type(instance)), instance._meta.parents
    own = (
        [each for each in fields if each.model is given["cls"]] if inherits else fields
    )
    explicit: list[Any] = []
    for field in own:
        if field.is_set_late and may_insert:
            show(instance, [field])
        alias = field.assigned_for(instance)
        if alias != using and not field.is_missing(instance):
            explicit.append(field)
            if state.adding and field not in known:
                # Receivers of pre_save may have set it, after the look of save_base().
                known[field] = field.check_explicit([instance], using)
        is_key = field.primary_key or field.is_key
        if alias is not None and may_insert and is_key:
            # Django passes force_insert in either way.
            if len(args) > _FORCE_INSERT:
                args = (*args[:_FORCE_INSERT], True, *args[_FORCE_INSERT + 1 :])
            else:
                options["force_insert"] = True
    state.hilo_handled, state.hilo_refused = True, False
    try:
        updated = save_table(instance, *args, **options)
    except IntegrityError as error:
        for field in own if state.hilo_refused else ():
            field.note_refused([instance], error, using)
        raise
    finally:
        state.hilo_handled = False
    state.hilo_refused = False
    for field in own:
        field.note_inserted([instance])
    if explicit and not updated:
        _raise_over(instance, explicit, known, given)
    return updated


def _raise_over(instance: Any, explicit: list[Any], known: Any, given: Any) -> None:
    """Keep the counters over the explicit ids of a row that was inserted."""
    using = given["using"]
    if given["cls"] is instance._meta.concrete_model:
        # As Django does next: the row is there, whatever becomes of the floor.
        instance._state.db, instance._state.adding = using, False
    for field in explicit:
        found = (
            known[field] if field in known else field.explicit_ids([instance], using)
        )
        if found:
            field.raise_over(found, using)


def without_known(
    returning: Sequence[Any] | None, objects: Iterable[models.Model]
) -> Sequence[Any] | None:
    """Return the fields to ask an INSERT for: not for a key that the objects have."""
    if not returning or len(returning) > 1 or not isinstance(returning[0], ReadsNotes):
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
        if len(args) > _RETURNING:
            returning = without_known(args[_RETURNING], [self])
            args = (*args[:_RETURNING], returning, *args[_RETURNING + 1 :])
        try:
            return do_insert(self, *args, **options)
        except IntegrityError:
            self._state.hilo_refused = True
            raise

    return wrapper
