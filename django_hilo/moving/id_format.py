"""The format of moved ids: the one that the field gives to new ids."""

from typing import Any, NamedTuple

from django_hilo._allocation.target import Target, resolve
from django_hilo.conf import settings
from django_hilo.identifiers import check_separator, id_end, id_start
from django_hilo.models import ServerPrefix
from django_hilo.sources.own import OwnCounter


class IdFormat(NamedTuple):
    """The counter of the ids, and the text around their numbers.

    Zeros fill a number up to ``width`` digits.
    """

    target: Target
    start: str
    end: str
    width: int

    def example(self, number: int) -> str:
        """Return the id of a number."""
        return f"{self.start}{number:0{max(self.width, 1)}}{self.end}"


def id_format_of(field: Any, using: str, *, reads_prefix: bool = True) -> IdFormat:
    """Return the format of a field's ids now, for rows on ``using``.

    The field may be one of a migration's state.
    """
    target = resolve(field, using)
    own = isinstance(target.source, OwnCounter)
    prefix = None
    if own and reads_prefix:
        rows = ServerPrefix.objects.using(target.using).filter(pk=target.node_tag)
        prefix = rows.values_list("prefix", flat=True).first()
    separator = check_separator(settings.SEPARATOR)
    start = id_start(target.collection, separator, prefix or "")
    end = id_end(target.node_tag if settings.SHOW_NODE_TAG and own else "")
    return IdFormat(target, start, end, target.width)
