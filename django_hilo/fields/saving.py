"""What a field with ids adds to its model's ``save()``: methods that it wraps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.db import models, router

from django_hilo.freshness import (
    fresh_on,
    is_fresh,
    note_inserted,
    unwatch,
    watch,
)
from django_hilo.inheritance import pass_keys_up
from django_hilo.sharding.placement import place

if TYPE_CHECKING:
    from django_hilo.fields.base import GivesIds

# What most rows are inserted in.
NOTHING = nullcontext()


def give_first(field: GivesIds, save_base: Callable[..., None]) -> Any:
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
        giving: Any = NOTHING
        if force_update or update_fields:
            field.refuse_lost(self)
        elif not raw:
            giving = _giving(field, self, using)
        with giving:
            if field.is_key:
                using = place(self, using)
            save_base(
                self,
                raw=raw,
                force_insert=force_insert,
                force_update=force_update,
                using=using,
                update_fields=update_fields,
            )

    return wrapper


def _giving(field: GivesIds, instance: models.Model, using: str) -> Any:
    """Give an instance the ids that it needs, or say in what its row is inserted."""
    if instance._meta.parents:
        pass_keys_up(instance, type(instance))
    elif field.give_at_once(instance, using):
        return NOTHING
    giving: Any = NOTHING
    new = instance._state.adding or instance.pk is None
    if field.is_key or new or field.was_rolled_back(instance):
        giving = field.inserting([instance], using)
    if instance._state.adding and fresh_on(instance, field) != using:
        field.check_explicit([instance], using)
    return giving


def insert_fresh(field: GivesIds, save_table: Callable[..., bool]) -> Any:
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
        is_key = ours and field.is_key
        only_update = force_update or bool(update_fields)
        if (
            is_key
            and self._state.adding
            and not (raw or only_update)
            and fresh_on(self, field) == using
        ):
            watch(self)
            try:
                save_table(self, False, cls, True, False, using, None)
            except BaseException:
                unwatch(self)
                raise
            note_inserted(self, field)
            return False
        giving: Any = NOTHING
        if is_key:
            assert using is not None
            if only_update and field.is_missing(self):
                raise ValueError(
                    "Cannot force an update in save() with no primary key."
                )
            if not only_update and field.needs_id(self):
                giving = field.inserting([self], using)
        with giving:
            watch(self)
            try:
                if is_key:
                    if raw or not (self._state.adding or only_update):
                        # The key of an object that was loaded may be another now.
                        assert using is not None
                        field.check_explicit([self], using)
                    if raw:
                        assert using is not None
                        place(self, using)
                    fresh = self._state.adding and is_fresh(self, field)
                    force_insert = force_insert or (fresh and not only_update)
                updated = save_table(
                    self, raw, cls, force_insert, force_update, using, update_fields
                )
                if ours and not updated:
                    assert using is not None
                    field.observe_inserted([self], using)
            finally:
                unwatch(self)
        return updated

    return wrapper


def insert_given(field: GivesIds, do_insert: Callable[..., Any]) -> Any:
    """Wrap a model's ``_do_insert()``: a key that was given is not asked back."""

    @wraps(do_insert)
    def wrapper(
        self: models.Model,
        manager: Any,
        using: str,
        fields: Any,
        returning_fields: Any,
        raw: bool,
    ) -> Any:
        asked = field.not_given(returning_fields, fields, [self])
        return do_insert(self, manager, using, fields, asked, raw)

    return wrapper
