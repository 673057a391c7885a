"""Find the counter of what a caller names: once, where the answer lasts.

What was found belongs to the pool of the process, so a fork, a flush and changed
settings forget it, and to a thread, because only its connection knows of a schema. What
may give another answer the next time is not kept: instances of sources, models of other
registries, projects with routers, connections that switch schemas.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connections, models, router
from django.dispatch import receiver

from django_hilo._allocation import memory
from django_hilo._allocation.counter import Counter
from django_hilo._allocation.give_back import give_back
from django_hilo._allocation.in_tests import counter_of_test
from django_hilo._allocation.registry import (
    CounterField,
    Series,
    field_of,
    fields_of,
    given_source,
    home_of,
    named_source,
    own_home_and_source,
)
from django_hilo._database.identity import has_schemas
from django_hilo._database.own_connection import is_test_process
from django_hilo.counters.own import OwnSource
from django_hilo.counters.source import Source
from django_hilo.identifiers import check_collection

# A collection, a label such as "shop.Order", a model, an instance, a field or a source;
# or what was found of them.
AnyTarget = (
    str | type[models.Model] | models.Model | CounterField | Source | Counter | Series
)

_MOST = 1_000


def find(target: AnyTarget, using: str | None = None) -> Counter:
    """Return the counter that takes the numbers of a target, as `resolve` finds it.

    In a `TestCase` that is a counter in memory.
    """
    counter: Counter
    database: dict[str, Any]
    called: tuple[Any, str | None] = target, using
    if isinstance(target, models.Model):
        called = type(target), using or target._state.db
    found = memory.current().found.by_name
    try:
        counter, database, (name, host, port), installed = found[called]
        is_found = (
            connections.settings.get(counter.using) is database
            and database["NAME"] is name
            and database["HOST"] is host
            and database["PORT"] is port
            and "schema_name" not in counter.connection_vars
            and not router.routers
            # Another model may have the collection since models were loaded.
            and (not isinstance(target, str) or installed is _installed())
        )
    except (KeyError, TypeError):  # TypeError: `resolve` says what is wrong
        is_found = False
    if not is_found:
        counter = resolve(target, using)
        counter.may_be_tested = is_test_process() and isinstance(
            counter.source, OwnSource
        )
        if isinstance(target, Series):
            _forget_old_series(counter.key)
        if _is_kept(called[0], counter):
            if len(found) >= _MOST:
                found.clear()
            database = connections.settings[counter.using]
            place = [database[each] for each in ("NAME", "HOST", "PORT")]
            found[called] = counter, database, place, _installed()
    return counter_of_test(counter) if counter.may_be_tested else counter


def _forget_old_series(used: memory.Key) -> None:
    """Keep the series that were used last, and return what others hold."""
    pool = memory.current()
    old = pool.old_series(used, 2 * _MOST)
    if old:
        give_back(map(pool.memory, old))
        for key in old:
            pool.forget_one(key)


def _is_kept(named: Any, counter: Counter) -> bool:
    connection = connections[counter.using]
    if isinstance(named, Series):
        named = named.field
    elif getattr(counter.field, "per", ()):
        return False  # the next instance may be of another series
    if hasattr(named, "model"):
        named = named.model
    # Texts and sources have none.
    options: Any = getattr(named, "_meta", None)
    is_installed = options is not None and options.apps is apps
    return (
        (is_installed or isinstance(named, str))
        and not router.routers
        and not has_schemas(connection)
        and connections.settings[connection.alias] is connection.settings_dict
    )


def _installed() -> list[type[models.Model]]:
    # Django keeps this list until the installed apps change.
    return apps.get_models(include_auto_created=True)


@receiver(setting_changed)
def forget_settings(setting: str, **kwargs: object) -> None:
    """Let changed settings take effect from the next id on."""
    if setting in {"HILO", "DATABASE_ROUTERS", "DATABASES"}:
        memory.current().forget_found()


def resolve(target: AnyTarget, using: str | None = None) -> Counter:
    """Return the `Counter` of what a caller names: the database's, not a TestCase's.

    ``using`` is the database of the rows. ``None`` asks the routers where the model is
    written, and means "default" for a bare collection. Raises LookupError for an
    unknown label or a model without a HiLo field, and `InvalidDocumentId` for a
    collection outside the grammar.
    """
    if isinstance(target, Counter):
        return target
    if isinstance(target, Source):
        return Counter("", using or DEFAULT_DB_ALIAS, target)
    if isinstance(target, Series):
        home, own = home_of(using or DEFAULT_DB_ALIAS), OwnSource(target.name, "")
        return Counter(target.name, home, own, target.field, format=target.format)
    if isinstance(target, str) and "." not in target:
        return _of_collection(check_collection(target), using)
    if isinstance(target, str):
        try:
            target = apps.get_model(target)
        except ValueError as error:
            raise LookupError(
                f"{target!r} is not a model label such as 'shop.Order'."
            ) from error
    field = field_of(target)
    if using is None:
        # A child of a model with a HiLo key may have another database than its parent.
        if isinstance(target, models.Model):
            using = router.db_for_write(type(target), instance=target)
        else:
            model = target if isinstance(target, type) else field.model
            using = router.db_for_write(model)
    if field.per:
        if not isinstance(target, models.Model):
            raise LookupError(
                f"{field} has a series for each {', '.join(field.per)}: pass an "
                f"instance, whose values say which one."
            )
        return resolve(field.series_of(target), using)
    collection = check_collection(field.collection_name)
    source = given_source(field)
    if source is None:
        using, source = field.home_and_source(using)
    return Counter(collection, using, source, field, _width_of(field))


def _of_collection(collection: str, using: str | None) -> Counter:
    fields = fields_of(collection)
    if fields and fields[0].is_integer:
        return resolve(fields[0], using)
    # Several models may write their ids in different ways.
    field = fields[0] if len(fields) == 1 else None
    using, source = using or DEFAULT_DB_ALIAS, named_source(collection)
    if source is None:
        using, source = own_home_and_source(collection, using)
    return Counter(collection, using, source, field, _width_of(field))


def _width_of(field: Any) -> int:
    return getattr(field, "width", None) or 0
