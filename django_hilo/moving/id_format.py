"""The format of moved ids: the one that the field gives to new ids."""

from typing import Any

from django_hilo._allocation.target import Target, resolve
from django_hilo.conf import settings
from django_hilo.counters.own import OwnCounter
from django_hilo.identifiers import IdFormat, check_separator
from django_hilo.models import ServerPrefix


def id_format_of(
    field: Any, using: str, *, reads_prefix: bool = True
) -> tuple[Target, IdFormat]:
    """Return the counter and the format of a field's ids now, for rows on ``using``.

    The field may be one of a migration's state.
    """
    target = resolve(field, using)
    own = isinstance(target.source, OwnCounter)
    prefix = None
    if own and reads_prefix:
        rows = ServerPrefix.objects.using(target.using).filter(pk=target.node_tag)
        prefix = rows.values_list("prefix", flat=True).first()
    tag = target.node_tag if settings.SHOW_NODE_TAG and own else ""
    parts = (target.collection, check_separator(settings.SEPARATOR), prefix or "", tag)
    return target, IdFormat.of(*parts)._replace(width=target.width)
