"""Look up the counter that an address names, or raise NotFound."""

from collections.abc import Callable

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound

from django_hilo._allocation.counter import Counter
from django_hilo._operations import known_counters
from django_hilo.conf import settings
from django_hilo.models import HiLoDocument, validate_collection, validate_node_tag
from django_hilo.rest_framework.errors import Conflict

NO_TAG = "-"


def tag_of(text: str) -> str:
    """Return the node tag that stands in an address, where ``-`` is the empty one."""
    return "" if text == NO_TAG else text


def _named(validate: Callable[[str], None], name: str) -> str:
    try:
        validate(name)
    except ValidationError as error:
        raise NotFound(error.messages[0]) from error
    return name


def lendable(
    collection: str,
    using: str | None,
    look_up: Callable[[str, str | None], Counter] = known_counters.known_counter,
) -> Counter:
    """Return the counter of a collection that a model or a counter knows."""
    try:
        return look_up(_named(validate_collection, collection), using)
    except LookupError as error:
        raise NotFound(str(error)) from error


def gapless(collection: str, using: str | None) -> Counter:
    """Return the counter of a collection that also a gapless counter may know."""
    counter = lendable(collection, using, known_counters.known_gapless_counter)
    if not settings.SHOW_NODE_TAG and counter.field is not None:
        raise Conflict(
            _(
                "Gapless ids of %(collection)s could equal ids of a range, because ids "
                "do not show the node tag."
            )
            % {"collection": counter.collection}
        )
    return counter


def stored(collection: str, node_tag: str, using: str | None) -> HiLoDocument:
    """Return a stored counter."""
    tag = _named(validate_node_tag, tag_of(node_tag))
    _named(validate_collection, collection)
    alias = known_counters.counter_of(collection, using).using
    key = HiLoDocument.key(collection, tag)
    row = HiLoDocument.objects.using(alias).filter(pk=key).first()
    if row is None:
        raise NotFound(
            _("There is no counter %(counter)r on %(database)r.")
            % {"counter": key, "database": alias}
        )
    return row


def node(node_tag: str) -> str:
    """Return a node tag inside the grammar."""
    return _named(validate_node_tag, node_tag)
