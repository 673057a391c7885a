"""Set and delete server prefixes, under rules that keep the ids of nodes apart."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections
from django.utils.translation import gettext_lazy as _

from django_hilo._operations.locations import homes
from django_hilo.conf import settings
from django_hilo.models import ServerPrefix
from django_hilo.signals import Change, send_counter_changed


def set_prefix(node_tag: str, prefix: str, *, using: str, user: Any) -> ServerPrefix:
    """Set the server prefix of a node; it holds from each process's next range on.

    Raises ValidationError for what is outside the grammar, and for the prefix of
    another node where ids do not show their tags.
    """
    row = ServerPrefix(node_tag=node_tag, prefix=prefix)
    row.clean_fields()
    check_prefix_is_free(node_tag, prefix)
    rows = ServerPrefix.objects.using(using)
    old = rows.filter(pk=node_tag).values_list("prefix", flat=True).first()
    # One statement: two that read first and write then would lock each other out.
    names_key = connections[using].features.supports_update_conflicts_with_target
    rows.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["node_tag"] if names_key else None,
        update_fields=["prefix"],
    )
    row._state.db = using
    send_counter_changed(row, using, Change.SET, old, prefix, user)
    return row


def delete_prefix(node_tag: str, *, using: str, user: Any) -> None:
    """Delete the server prefix of a node, which has the empty one then."""
    rows = ServerPrefix.objects.using(using).filter(pk=node_tag)
    old = rows.values_list("prefix", flat=True).first()
    rows.delete()
    row = ServerPrefix(node_tag=node_tag)
    send_counter_changed(row, using, Change.DELETED, old, None, user)


def check_prefix_is_free(node_tag: str, prefix: str) -> None:
    """Raise ValidationError where ids of two nodes would look the same."""
    if settings.SHOW_NODE_TAG:
        return
    for home in homes():
        others = ServerPrefix.objects.using(home).exclude(pk=node_tag)
        taken = others.filter(prefix=prefix).first()
        if taken is not None:
            refusal = ValidationError(
                _(
                    "The node %(node_tag)r already has the prefix %(prefix)r on "
                    "%(database)r. Use another: ids do not show the node tag "
                    "(HILO['SHOW_NODE_TAG'])."
                ),
                code="taken",
                params={"node_tag": taken.node_tag, "prefix": prefix, "database": home},
            )
            raise ValidationError({"prefix": refusal})
