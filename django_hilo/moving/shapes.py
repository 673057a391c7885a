"""What a moved id looks like: as the field makes it for a number of the counter."""

from __future__ import annotations

from typing import Any, NamedTuple

from django_hilo._allocation.formats import TextFormat
from django_hilo._allocation.target import Target, resolve
from django_hilo.conf import settings
from django_hilo.identifiers import check_separator, id_end, id_start
from django_hilo.models import ServerPrefix
from django_hilo.sources.own import OwnCounter


class Shape(NamedTuple):
    """The counter of the ids, and what stands around their numbers."""

    target: Target
    format: TextFormat

    def length(self, number: int) -> int:
        """Return how many characters the id of a number has."""
        digits = max(len(str(number)), self.format.width)
        return len(self.format.start) + digits + len(self.format.end)

    def example(self, number: int) -> str:
        """Return the id of a number."""
        format = self.format
        return f"{format.start}{number:0{max(format.width, 1)}}{format.end}"


def shape_of(field: Any, using: str, *, reads_prefix: bool = True) -> Shape:
    """Return how ids of a field look now, for rows on ``using``.

    The field may be one of a migration's state.
    """
    target = resolve(field, using)
    own = isinstance(target.source, OwnCounter)
    prefix = _prefix(target) if own and reads_prefix else ""
    start = id_start(target.collection, check_separator(settings.SEPARATOR), prefix)
    end = id_end(target.node_tag if settings.SHOW_NODE_TAG and own else "")
    return Shape(target, TextFormat(start, end, target.width))


def _prefix(target: Target) -> str:
    rows = ServerPrefix.objects.using(target.using).filter(pk=target.node_tag)
    return rows.values_list("prefix", flat=True).first() or ""
