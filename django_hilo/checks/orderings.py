"""System checks of lists that sort by a part of an id, such as ``id__number``."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import FieldError
from django.db.models import F, Model
from django.db.models.sql import Query

from django_hilo.fields.lookups import Bucket, Part


def check_orderings(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of models whose ``Meta.ordering`` computes a part of each id."""
    return [
        message
        for model in apps.get_models()
        # Some proxies have the ordering of their model.
        if not model._meta.proxy or "ordering" in model._meta.original_attrs
        for message in _warnings(
            model, model._meta.ordering or (), f"{model.__name__}.Meta", model
        )
    ]


def check_admin_orderings(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of lists in the admin that compute a part of each id to be sorted."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    lists = {
        (type(options), model): (*(options.ordering or ()), *_columns(options, model))
        for site in all_sites
        for model, options in site._registry.items()
    }
    return [
        message
        for (admin, model), orderings in sorted(lists.items(), key=str)
        for message in _warnings(model, orderings, admin.__name__, admin)
    ]


def _columns(options: Any, model: type[Model]) -> Iterator[Any]:
    """Yield what the columns of a list sort by, but for those that are fields."""
    for name in options.list_display:
        if options.sortable_by is None or name in options.sortable_by:
            column = name
            if not callable(name):
                column = getattr(options, name, None) or getattr(model, name, None)
            column = column.fget if isinstance(column, property) else column
            if order := getattr(column, "admin_order_field", None):
                yield order


def _warnings(
    model: type[Model], orderings: Iterable[Any], where: str, obj: Any
) -> Iterator[checks.Warning]:
    parts = [_part_of(model, each) for each in orderings]
    slow = {_path_of(part): part for part in parts if part and not _is_indexed(part)}
    for path, part in slow.items():
        label = part.lhs.target.model._meta.label
        stored = part._stored_column()
        name = path if stored is None else stored.target.name
        remedy = f'models.Index("{name}", name="...") to Meta.indexes'
        if isinstance(part, Bucket) and stored is None:
            remedy = "a BucketField(db_index=True)"
        yield checks.Warning(
            f"{where} sorts by {path}, which no index of {label} has, so the database "
            f"computes it for each row.",
            hint=f"Add {remedy} of {label}; MariaDB needs an indexed GeneratedField. "
            f"If the table stays small, silence this check.",
            obj=obj,
            id="django_hilo.W116",
        )


def _part_of(model: type[Model], ordering: Any) -> Any:
    """Return the part of an id in the model's own table that is sorted by, or None."""
    query = Query(model)
    if isinstance(ordering, str):
        ordering = F(ordering.lstrip("-"))
    part, table = _resolved(ordering, query), query.get_initial_alias()
    is_own = isinstance(part, Part) and getattr(part.lhs, "alias", None) == table
    return part if is_own else None


def _resolved(expression: Any, query: Query, **options: Any) -> Any:
    """Return an expression with its columns, without its direction."""
    try:
        expression = getattr(expression, "expression", expression)
        return expression.resolve_expression(query, **options)
    except (AttributeError, FieldError):
        return None  # random, an annotation, or what another check reports


def _is_indexed(part: Any) -> bool:
    """Whether an index of the model has a part, or the column that stores it."""
    model, stored = part.lhs.target.model, part._stored_column()
    if stored is not None and (stored.target.db_index or stored.target.unique):
        return True
    wanted = _kind_and_column(stored or part)
    query = Query(model, alias_cols=False)
    return any(
        _kind_and_column(_resolved(each, query, allow_joins=False)) == wanted
        for index in model._meta.indexes
        if index.condition is None
        for each in (*map(F, index.fields), *index.expressions)
    )


def _kind_and_column(found: Any) -> tuple[type, Any]:
    return type(found), getattr(getattr(found, "lhs", found), "target", None)


def _path_of(part: Any) -> str:
    """Return how an index names a part: ``order__id__number`` by a foreign key."""
    field = part.lhs.target
    names = [field.name]
    while field.remote_field is not None:
        field = field.target_field
        names.append(field.name)
    return "__".join([*names, part.lookup_name])
