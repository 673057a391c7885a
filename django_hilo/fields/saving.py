"""Whether ``save()`` gives an id: the methods of models that are wrapped for it."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import Any

from django.db import IntegrityError, models, router

from django_hilo.exceptions import HiLoError
from django_hilo.fields._doubtful_ids import MakesSure, key_behind
from django_hilo.fields._notes import (
    ASSIGNED,
    DOUBTS,
    FORMER,
    NOTE,
    ReadsNotes,
)


def id_fields(model: type[models.Model]) -> list[Any]:
    """Return the fields that give a model's objects their ids."""
    fields, notes = model._meta.fields, vars(model._meta)
    # Django keeps the fields until one is added.
    known = notes.get("hilo_fields")
    if known is None or known[0] is not fields:
        found: list[Any] = [each for each in fields if isinstance(each, ReadsNotes)]
        found = [each for each in found if not each.is_copy]
        # Gapless ones last: their counters stay locked until the commit.
        found.sort(key=lambda field: bool(field.is_gapless))
        known = notes["hilo_fields"] = fields, found
    return known[1]


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
        model._prepare_related_fields_for_save = _point_to_new_ids(
            model._prepare_related_fields_for_save
        )


def _assign_first(save_base: Callable[..., None]) -> Any:
    """Wrap a model's ``save_base()``, so that ids are assigned before Django starts.

    An error later would mark the caller's transaction for a rollback.
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
        only_updates = force_update or bool(update_fields)
        if update_fields:
            # Saves of deferred rows name their fields here too.
            update_fields = frozenset(with_buckets(type(self), update_fields))
        elif self._meta.parents and not (raw or only_updates):
            _pass_keys_up(self, type(self))
        if getattr(self._state, DOUBTS, False):
            setattr(self._state, DOUBTS, False)
            _refuse_doubtful_parents(self, update_fields)
        adding = self._state.adding
        new = adding or self.pk is None
        with ExitStack() as stack:
            for field in id_fields(type(self)):
                if only_updates:
                    refuse_doubtful(self, field, using, update_fields)
                if raw or only_updates:
                    continue
                explicit = adding and not field.is_missing(self)
                if explicit and field.assigned_for(self) != using:
                    field.check_explicit([self], using)
                if new or field.is_key or field.is_doubtful(self, using):
                    stack.enter_context(field.inserting([self], using))
            save_base(self, raw, force_insert, force_update, using, update_fields)

    return wrapper


def refuse_doubtful(
    instance: models.Model, field: Any, using: str, names: Iterable[str] | None
) -> None:
    """Raise `HiLoError` if an update would write to, or with, a doubtful id.

    ``names`` are the fields that are written; None: all.
    """
    is_meant = names is None or field.name in names or field.attname in names
    if (is_meant or field.is_key) and field.is_doubtful(instance, using):
        raise HiLoError(
            f"The row of {instance._meta.label} {field.value_of(instance)!r} was "
            f"rolled back or refused, and another row may have this id now. Call "
            f"save() without arguments: it keeps the id if no other row can have it, "
            f"and gives another one if not."
        )


def _pass_keys_up(instance: models.Model, model: Any) -> None:
    """Fill the empty keys of an instance's parents from the links, as save() does."""
    for parent, link in model._meta.parents.items():
        key = parent._meta.pk.attname
        if link is not None and getattr(instance, key, None) is None:
            setattr(instance, key, getattr(instance, link.attname))
        _pass_keys_up(instance, parent)


def _insert_assigned(save_table: Callable[..., bool]) -> Any:
    """Wrap a model's ``_save_table()``: an assigned key needs no UPDATE first."""

    @wraps(save_table)
    def wrapper(
        self: models.Model,
        raw: bool = False,
        cls: Any = None,
        force_insert: bool = False,
        force_update: bool = False,
        using: Any = None,
        update_fields: Any = None,
    ) -> bool:
        state: Any = self._state
        adding, only_updates = state.adding, force_update or bool(update_fields)
        explicit: list[Any] = []
        assigned: list[Any] = []
        # Fixtures get here without save_base().
        with ExitStack() as stack:
            for field in id_fields(type(self)):
                if field.model is not cls:
                    continue
                alias = field.assigned_for(self)
                if (field.primary_key or field.is_key) and not only_updates:
                    if alias is None and (raw or not adding):
                        # The key of an object that was loaded may have been changed.
                        field.check_explicit([self], using)
                    if alias is None and raw:
                        stack.enter_context(field.inserting([self], using))
                        alias = field.assigned_for(self)
                    force_insert = force_insert or (
                        alias is not None and field.must_insert(self)
                    )
                if alias == using:
                    assigned.append(field)
                elif not field.is_missing(self):
                    explicit.append(field)
            state.hilo_handled = True
            try:
                updated = save_table(
                    self, raw, cls, force_insert, force_update, using, update_fields
                )
                for field in assigned:
                    field.note_inserted(self, using)
                for field in () if updated else explicit:
                    field.record_inserted([self], using)
            except IntegrityError as error:
                for field in assigned:
                    field.note_refused([self], error, using)
                raise
            finally:
                state.hilo_handled = False
        return updated

    return wrapper


def _point_to_new_ids(prepare: Callable[..., None]) -> Any:
    """Wrap ``_prepare_related_fields_for_save()``, which drops parents of another id.

    A cached parent whose row was rolled back may have got another id since.
    """

    @wraps(prepare)
    def wrapper(self: models.Model, operation_name: str, fields: Any = None) -> None:
        meta = self._meta
        for field in (*meta.concrete_fields, *meta.private_fields):
            is_meant = field.is_relation and (fields is None or field in fields)
            is_cached = is_meant and field.is_cached(self)
            parent = field.get_cached_value(self) if is_cached else None
            if parent is not None and _is_noted(parent):
                _follow(self, field, parent)
                # save_base() knows which fields a save writes.
                setattr(self._state, DOUBTS, operation_name == "save")
                if operation_name != "save":
                    _refuse_doubtful_parent(self, field, parent)
        prepare(self, operation_name=operation_name, fields=fields)

    return wrapper


def _is_noted(parent: Any) -> bool:
    """Whether an object in memory has, or had, an id that a rollback may concern."""
    noted = vars(parent._state)
    return any(name == FORMER or name.startswith(NOTE) for name in noted)


def _refuse_doubtful_parents(instance: Any, names: Iterable[str] | None) -> None:
    """Raise `HiLoError` if fields that a save writes refer to a row that is no more."""
    meta = instance._meta
    for field in (*meta.concrete_fields, *meta.private_fields):
        if names is None or field.name in names or field.attname in names:
            is_cached = field.is_relation and field.is_cached(instance)
            parent = field.get_cached_value(instance) if is_cached else None
            if parent is not None:
                _refuse_doubtful_parent(instance, field, parent)


def _refuse_doubtful_parent(instance: Any, field: Any, parent: Any) -> None:
    target = key_behind(getattr(field, "target_field", parent._meta.pk))
    note = target.note_of(parent) if isinstance(target, MakesSure) else None
    if note is None or not note.is_doubtful or target.is_inserted(note):
        return
    if _names(instance, field, parent, [note.id]):
        raise HiLoError(
            f"The row of {parent._meta.label} {note.id!r} was rolled back or refused, "
            f"and another row may have this id now. Save it before the "
            f"{instance._meta.label} that refers to it."
        )


def _follow(instance: Any, field: Any, parent: Any) -> None:
    """Let an instance refer to the new id of an object in memory."""
    former = getattr(parent._state, FORMER, None)
    # A row that was loaded belongs to the row that has the id now.
    names = [ASSIGNED + each.attname for each in id_fields(type(instance))]
    is_ours = any(hasattr(instance._state, each) for each in names)
    if former and (is_ours or instance._state.adding):
        target = getattr(field, "target_field", parent._meta.pk).attname
        if _names(instance, field, parent, former.get(target, ())):
            # Setting the attribute would drop the parent.
            vars(instance)[_column_of(field)] = getattr(parent, target)


def _names(instance: Any, field: Any, parent: Any, ids: Iterable[Any]) -> bool:
    """Whether a relation names one of these ids, of an object of the parent's kind."""
    if str(vars(instance).get(_column_of(field))) not in map(str, ids):
        return False
    if not hasattr(field, "ct_field"):
        return True
    kind = field.get_content_type(obj=parent).pk
    return bool(getattr(instance, f"{field.ct_field}_id") == kind)


def _column_of(field: Any) -> str:
    # A generic relation names the key in a field of its own.
    return str(getattr(field, "fk_field", None) or field.attname)
