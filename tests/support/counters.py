"""The rows of counters, where tests look up what is stored, and their statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created

from django_hilo.models import HiLoDocument
from tests.support.databases import IS_MYSQL


def counter(
    collection: str = "orders", tag: str = "A", using: str = "default"
) -> HiLoDocument:
    return HiLoDocument.objects.using(using).get(collection=collection, node_tag=tag)


def max_of(collection: str = "orders", tag: str = "A", using: str = "default") -> int:
    return counter(collection, tag, using).max


def preset(max: int, collection: str = "orders") -> None:
    HiLoDocument.objects.create(collection=collection, node_tag="A", max=max)


@contextmanager
def counters_wrapped(wrapper: Any) -> Iterator[None]:
    """Wrap the statements of counters, outside of transactions."""
    if not IS_MYSQL:
        with connection.execute_wrapper(wrapper):
            yield
        return

    def wrap(connection, **kwargs):
        connection.execute_wrappers.append(wrapper)

    # In tests each reservation opens the process's own connection anew.
    connection_created.connect(wrap)
    try:
        yield
    finally:
        connection_created.disconnect(wrap)
