"""Where the server prefix of a node is read: in the same query as the counter's row."""

from typing import Any

from django.db.models.expressions import RawSQL


def with_prefix(rows: Any, node_tag: str) -> Any:
    """Return rows with the attribute ``prefix``, None if the node has none."""
    from django_hilo.models import ServerPrefix

    # Not a Subquery, which Django takes longer to compile than all else takes here.
    sql = f"SELECT prefix FROM {ServerPrefix._meta.db_table} WHERE node_tag = %s"  # noqa: S608 - our own table
    return rows.annotate(prefix=RawSQL(sql, [node_tag]))  # noqa: S611
