"""The columns that contain a key: its own, foreign keys of any depth, generic ones.

Foreign keys come from the state of the migration. Generic ones are in no state: they
come from the installed apps, and from what the operation names.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.apps import apps as installed
from django.core.exceptions import FieldDoesNotExist
from django.db import models, router

from django_hilo._database.dialects.base import rows_of
from django_hilo.exceptions import HiLoError

# {"app.Model": (foreign key to ContentType, column with the object's id)}
Generic = Mapping[str, tuple[str, str]]

# Columns that no GenericForeignKey declares.
_KNOWN: Generic = {"admin.LogEntry": ("content_type", "object_id")}


class Column(NamedTuple):
    """A column that holds the key: its field as it was, and as it will be."""

    old: Any
    new: Any

    @property
    def table(self) -> str:
        return str(self.new.model._meta.db_table)

    @property
    def column(self) -> str:
        return str(self.new.column)

    @property
    def is_referred_to(self) -> bool:
        """Whether foreign keys may name it."""
        return bool(self.new.unique)

    def __str__(self) -> str:
        return f"{self.new.model._meta.label}.{self.new.name}"


class GenericColumn(NamedTuple):
    """A text column that holds keys of any model, told apart by another column."""

    table: str
    column: str
    type_column: str
    type_ids: tuple[int, ...]
    max_length: int | None
    label: str

    @property
    def types(self) -> str:
        """The ids of the content types, as SQL has them after IN."""
        return f"({', '.join(map(str, self.type_ids))})"

    def __str__(self) -> str:
        return self.label


def columns_of(old_key: Any, new_key: Any, using: str) -> list[Column]:
    """Return the columns that hold a key, itself first; any depth of foreign keys."""
    found = [Column(old_key, new_key)]
    old_apps, new_apps = old_key.model._meta.apps, new_key.model._meta.apps
    related = [
        field
        for model in new_apps.get_models(include_auto_created=True)
        if is_ours(model, using)
        for field in model._meta.local_concrete_fields
        if field.remote_field
    ]
    for holder in found:
        for field in related:
            if field.target_field is holder.new:
                old_model = old_apps.get_model(field.model._meta.label)
                old = old_model._meta.get_field(field.name)
                found.append(Column(old, field))
    return found


def is_ours(model: type[models.Model], using: str) -> bool:
    """Whether migrations make the table of a model on a database."""
    options = model._meta
    return (
        options.managed
        and not options.proxy
        and not options.swapped
        and bool(router.allow_migrate_model(using, model))
    )


def generic_columns(
    columns: list[Column], given: Generic, connection: Any
) -> list[GenericColumn]:
    """Return the generic columns with keys of these models.

    Raises `HiLoError` for a column that ``given`` names and that is not there.
    """
    if not installed.is_installed("django.contrib.contenttypes"):
        return []
    quote = connection.ops.quote_name
    tables = set(connection.introspection.table_names())
    type_ids = _type_ids(columns, tables, connection.alias)
    types = ", ".join(map(str, type_ids))
    found: dict[tuple[str, str], GenericColumn] = {}
    for model, type_name, id_name in _generic_keys(given):
        if not (type_ids and model._meta.managed):
            continue
        for each in _as_of_now(columns[0].new.model._meta.apps, model, type_name):
            try:
                type_field = each._meta.get_field(type_name)
                id_field = each._meta.get_field(id_name)
            except FieldDoesNotExist:
                continue  # a later migration adds it
            column = GenericColumn(
                each._meta.db_table,
                id_field.column,
                type_field.column,
                type_ids,
                _room(id_field),
                f"{each._meta.label}.{id_name}",
            )
            names = names_in(column.table, tables, connection)
            is_there = {column.column, column.type_column} <= names
            # Others need not have room for ids.
            of_ours = f"{quote(column.type_column)} IN ({types})"
            if is_there and has_rows(connection, column.table, of_ours):
                found[column.table, column.column] = column
    return list(found.values())


def _as_of_now(state: Any, model: Any, type_name: str) -> list[Any]:
    """Return the models of the state whose table may be that of an installed model.

    A later migration may change the name of its table, or its own name. The old name is
    that of a model which is not installed, and which has the same columns. An app that
    the migration does not depend on is not in the state: then it is as installed.
    """
    models_by_label = {each._meta.label_lower: each for each in state.get_models()}
    named = models_by_label.pop(model._meta.label_lower, None)
    if named is not None:
        has_type = any(each.name == type_name for each in named._meta.get_fields())
        return [named if has_type else model]
    for each in installed.get_models():
        models_by_label.pop(each._meta.label_lower, None)
    return [
        model,
        *(each for each in models_by_label.values() if _has_type(each, type_name)),
    ]


def _has_type(model: Any, name: str) -> bool:
    """Whether a field of a model is a foreign key to ContentType."""
    for field in model._meta.concrete_fields:
        if field.name == name and field.related_model is not None:
            label = field.related_model._meta.label_lower
            return bool(label == "contenttypes.contenttype" and model._meta.managed)
    return False


def names_in(table: str, tables: set[str], connection: Any) -> set[str]:
    """Return the names of a table's columns; none if it does not exist."""
    quoted = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # in whichever schema
            cursor.execute("SELECT to_regclass(%s)", [quoted])
            if cursor.fetchone()[0] is None:
                return set()
        elif table not in tables:
            return set()
        cursor.execute(f"SELECT * FROM {quoted} LIMIT 0")
        return {each[0] for each in cursor.description}


def has_rows(connection: Any, table: str, condition: str = "1 = 1") -> bool:
    """Whether a table has a row that meets an SQL condition."""
    quoted = connection.ops.quote_name(table)
    query = f"SELECT 1 FROM {quoted} WHERE {condition} LIMIT 1"
    return bool(rows_of(connection, query))


def _generic_keys(given: Generic) -> Iterator[tuple[type[models.Model], str, str]]:
    from django.contrib.contenttypes.fields import GenericForeignKey

    seen = set()
    for model in installed.get_models():
        for field in model._meta.private_fields:
            if isinstance(field, GenericForeignKey) and field.model is model:
                seen.add((model._meta.label_lower, field.fk_field))
                if not model._meta.proxy:
                    yield model, field.ct_field, field.fk_field
    for label, (type_name, id_name) in {**_KNOWN, **given}.items():
        if (label.lower(), id_name) in seen:
            continue
        try:
            model = installed.get_model(label)
            model._meta.get_field(type_name)
            model._meta.get_field(id_name)
        except (LookupError, ValueError, FieldDoesNotExist) as error:
            if label in given:
                raise HiLoError(
                    f"generic contains {label!r} with {type_name!r} and {id_name!r}, "
                    f"which does not exist: {error}"
                ) from error
        else:
            yield model, type_name, id_name


def _type_ids(columns: list[Column], tables: set[str], using: str) -> tuple[int, ...]:
    """Return the content types of all models whose objects have the key as theirs."""
    from django.contrib.contenttypes.models import ContentType

    if ContentType._meta.db_table not in tables:
        return ()
    keys = [column.new.model for column in columns if column.new.primary_key]
    state = keys[0]._meta.apps
    named = {
        (model._meta.app_label, model._meta.model_name)
        for model in state.get_models()
        if model._meta.concrete_model in keys  # and their proxies
    }
    rows = ContentType.objects.using(using).values_list("app_label", "model", "pk")
    return tuple(sorted(pk for label, model, pk in rows if (label, model) in named))


def _room(field: Any) -> int | None:
    """Return how many characters a field takes: 0 if it is no text field."""
    if isinstance(field, models.TextField):
        return None
    if isinstance(field, models.CharField):
        return field.max_length
    return 0
