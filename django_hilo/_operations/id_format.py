"""The format of the next ids of a counter."""

from django_hilo._allocation.counter import Counter
from django_hilo.conf import settings
from django_hilo.counters.own import OwnCounter
from django_hilo.identifiers import IdFormat, check_separator


def format_of(target: Counter, *, reads_prefix: bool = True) -> IdFormat:
    """Return the format of a target's next ids, without a server prefix if not read."""
    prefix = None
    if reads_prefix and isinstance(target.source, OwnCounter):
        # Migrations import this, and need not have the app.
        from django_hilo.models import ServerPrefix

        rows = ServerPrefix.objects.using(target.using).filter(pk=target.node_tag)
        prefix = rows.values_list("prefix", flat=True).first()
    tag = target.node_tag if settings.SHOW_NODE_TAG else ""
    parts = (target.collection, check_separator(settings.SEPARATOR), prefix or "", tag)
    return IdFormat.of(*parts)._replace(width=target.width)
