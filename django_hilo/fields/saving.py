"""Whether ``save()`` gives an id: the methods of models that are wrapped for it."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import Any

from django.db import IntegrityError, models, router

from django_hilo.exceptions import HiLoError
from django_hilo.fields.doubtful_ids import MakesSure, key_behind
from django_hilo.fields.instance_state import ASSIGNED, FORMER, ReadsNotes


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
    def wrapper(self: models.Model, *args: Any, **kwargs: Any) -> None:
        for field in (*self._meta.concrete_fields, *self._meta.private_fields):
            if field.is_relation and field.is_cached(self):
                parent = field.get_cached_value(self)
                if parent is not None:
                    _follow(self, field, parent)
        prepare(self, *args, **kwargs)

    return wrapper


def _follow(instance: Any, field: Any, parent: Any) -> None:
    target = getattr(field, "target_field", parent._meta.pk)
    key = key_behind(target)
    note = key.note_of(parent) if isinstance(key, MakesSure) else None
    if note is not None and note.is_doubtful and not key.is_inserted(note):
        raise HiLoError(
            f"The row of {parent._meta.label} {note.id!r} was rolled back or refused, "
            f"and another row may have this id now. Save it before the "
            f"{instance._meta.label} that refers to it."
        )
    former = getattr(parent._state, FORMER, None)
    # A row that was loaded belongs to the row that has the id now.
    names = [ASSIGNED + each.attname for each in id_fields(type(instance))]
    is_ours = any(hasattr(instance._state, each) for each in names)
    if former and (is_ours or instance._state.adding):
        # A generic relation names the key in a field of its own.
        name = getattr(field, "fk_field", None) or field.attname
        if str(vars(instance).get(name)) in map(str, former.get(target.attname, ())):
            # Setting the attribute would drop the parent.
            vars(instance)[name] = getattr(parent, target.attname)
