"""Generators of Hibernate's, and the sources that follow their rules; blocks of 10."""

from typing import Any

from django_hilo.sources import hibernate
from tests.long.interop.jvm import Counter, Shared, row, sequence


def segment(column: str, name: str) -> Counter:
    return Counter(
        f"INSERT INTO hibernate_sequences VALUES ('{name}', %s)",
        f"SELECT {column} FROM hibernate_sequences",
    )


OLD: Any = {"version": "3.6.10"}
SEQUENCE = "enhanced-sequence sequence_name=peer_counter increment_size=10"
SHARED = {
    "hilo": Shared(
        "hilo max_lo=9",
        hibernate.HiLo(max_lo=9),
        row("hibernate_unique_key", "next_hi"),
        first=0,
    ),
    "seqhilo": Shared(
        "seqhilo max_lo=9",
        hibernate.SequenceHiLo(max_lo=9),
        sequence("hibernate_sequence"),
        first=1,
    ),
    "multiple": Shared(
        "org.hibernate.id.MultipleHiLoPerTableGenerator max_lo=9",
        hibernate.MultipleHiLo(max_lo=9, name="peer_orders"),
        segment("sequence_next_hi_value", "peer_orders"),
        first=0,
    ),
}
for name, preset, first in [
    ("pooled", hibernate.Pooled, 11),
    ("pooled-lo", hibernate.PooledLo, 1),
]:
    SHARED[f"{name}, sequence"] = Shared(
        f"{SEQUENCE} optimizer={name}",
        preset(10, sequence="peer_counter", **OLD),
        sequence("peer_counter"),
        first,
    )
    SHARED[f"{name}, one row"] = Shared(
        f"{SEQUENCE} optimizer={name} force_table_use=true",
        preset(10, table="peer_counter", **OLD),
        row("peer_counter", "next_val"),
        first,
    )
    SHARED[f"{name}, segment"] = Shared(
        f"enhanced-table increment_size=10 optimizer={name}",
        preset(10, table="hibernate_sequences", segment="default", **OLD),
        segment("next_val", "default"),
        first,
    )
