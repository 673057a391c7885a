"""Which counter an address means; 404 for none."""

from __future__ import annotations

from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound

from django_hilo import lending
from django_hilo.conf import settings
from django_hilo.exceptions import InvalidDocumentId
from django_hilo.identifiers import check_collection, check_node_tag
from django_hilo.models import HiLoDocument
from django_hilo.rest_framework.errors import Conflict
from django_hilo.targets import Target, fields_of, resolve

NO_TAG = "-"


def tag_of(text: str) -> str:
    """Return the node tag that stands in an address, where ``-`` is the empty one."""
    return "" if text == NO_TAG else text


def lendable(collection: str, using: str | None) -> Target:
    """Return the counter of a collection that a model or a counter knows."""
    try:
        return lending.known_target(collection, using)
    except (LookupError, InvalidDocumentId) as error:
        raise NotFound(str(error)) from error


def gapless(collection: str, using: str | None) -> Target:
    """Return the counter of a collection that also a gapless counter may know."""
    try:
        target = lending.known_gapless_target(collection, using)
    except (LookupError, InvalidDocumentId) as error:
        raise NotFound(str(error)) from error
    if not settings.SHOW_NODE_TAG and target.field is not None:
        raise Conflict(
            _(
                "The ids of %(collection)s do not show the node tag, so a gapless one "
                "would look like one of a range."
            )
            % {"collection": target.collection}
        )
    return target


def stored(collection: str, node_tag: str, using: str | None) -> HiLoDocument:
    """Return a stored counter."""
    tag = tag_of(node_tag)
    try:
        check_collection(collection)
        check_node_tag(tag)
    except InvalidDocumentId as error:
        raise NotFound(str(error)) from error
    fields = fields_of(collection)
    alias = resolve(fields[0] if fields else collection, using).using
    key = HiLoDocument.key(collection, tag)
    row = HiLoDocument.objects.using(alias).filter(pk=key).first()
    if row is None:
        raise NotFound(
            _("There is no counter %(key)r on %(alias)r.")
            % {"key": key, "alias": alias}
        )
    return row


def node(node_tag: str) -> str:
    """Return a node tag that may have a server prefix."""
    try:
        return check_node_tag(node_tag)
    except InvalidDocumentId as error:
        raise NotFound(str(error)) from error
