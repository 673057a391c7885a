"""The shop over several databases, which EXAMPLE_SHARDS names: what goes where.

Orders, with their lines and invoices, are on the shard of their bucket. Customers and
products, which all of them refer to, are on each shard with the same ids.
"""

from __future__ import annotations

from django.conf import settings

from django_hilo.sharding import shard_of
from example_project.shop.graph import Graph


def shards() -> list[str]:
    """Return the aliases of the shards, none where one database has all."""
    return list(settings.HILO.get("SHARDS", {}))


def rows_over_shards(graph: Graph) -> int:
    """Return how many rows the objects of a graph have on all shards."""
    copied = len(graph.customers) + len(graph.products)
    return len(graph) + copied * (len(shards()) - 1)


def parts_of(graph: Graph) -> dict[str, Graph]:
    """Return what goes to which shard, of objects that have their ids."""
    parts = {alias: Graph(graph.customers, graph.products) for alias in shards()}
    for order in graph.orders:
        parts[shard_of(order.pk)].orders.append(order)
    for line in graph.lines:
        parts[shard_of(line.pk)].lines.append(line)
    for invoice in graph.invoices:
        parts[shard_of(invoice.pk)].invoices.append(invoice)
    return parts
