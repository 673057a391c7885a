"""Objects in memory that refer to others, whose ids may be doubtful or new."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from django.db import models

from django_hilo.exceptions import HiLoError
from django_hilo.fields._doubtful_ids import MakesSure, key_behind
from django_hilo.fields._notes import FORMER, GIVEN, NOTE, id_fields


def point_to_new_ids(prepare: Callable[..., None]) -> Any:
    """Wrap ``_prepare_related_fields_for_save()``, which drops parents of another id.

    A cached parent whose row was rolled back may have got another id since.
    """

    @wraps(prepare)
    def wrapper(self: models.Model, operation_name: str, fields: Any = None) -> None:
        for field, parent in noted_parents(self):
            if fields is None or field in fields:
                _follow(self, field, parent)
                # save_base() knows which fields a save writes.
                if operation_name != "save":
                    refuse_doubtful_parent(self, field, parent)
        prepare(self, operation_name=operation_name, fields=fields)

    return wrapper


def noted_parents(instance: Any) -> list[tuple[Any, Any]]:
    """Return relations to objects in memory that have, or had, a doubtful id."""
    found, meta = [], instance._meta
    for field in (*meta.concrete_fields, *meta.private_fields):
        if field.is_relation:
            parent = instance._state.fields_cache.get(field.cache_name)
            if parent is not None and _is_noted(parent):
                found.append((field, parent))
    return found


def _is_noted(parent: Any) -> bool:
    state = parent._state
    # Not its type: request.user is a SimpleLazyObject.
    for field in id_fields(parent.__class__):
        note = getattr(state, NOTE + field.attname, None)
        if note is not None and note.is_doubtful:
            return True
    return getattr(state, FORMER, None) is not None


def refuse_doubtful_parent(instance: Any, field: Any, parent: Any) -> None:
    target = key_behind(getattr(field, "target_field", parent._meta.pk))
    note = target.note_of(parent) if isinstance(target, MakesSure) else None
    if note is None or not note.is_doubtful or target.is_inserted(parent):
        return
    id = target.value_of(parent)
    if _names(instance, field, parent, [id]):
        raise HiLoError(
            f"The row of {parent._meta.label} {id!r} was rolled back or refused, "
            f"and another row may have this id now. Save it before the "
            f"{instance._meta.label} that refers to it."
        )


def _follow(instance: Any, field: Any, parent: Any) -> None:
    """Let an instance refer to the new id of an object in memory."""
    former = getattr(parent._state, FORMER, None)
    # A row that was loaded belongs to the row that has the id now.
    names = [GIVEN + each.attname for each in id_fields(type(instance))]
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
