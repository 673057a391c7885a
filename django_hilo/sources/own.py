import logging

from django_hilo.counters import reservation
from django_hilo.counters.key_column import KeyColumn
from django_hilo.counters.ranges import Reservation
from django_hilo.exceptions import RangeNotReturned
from django_hilo.identifiers import counter_key
from django_hilo.sources.base import Source, Wanted

logger = logging.getLogger("django_hilo")


class OwnCounter(Source):
    """A `HiLoDocument`: the counter of a collection and a node tag."""

    # The column whose own numbering rises along with each range, if any.
    shared_column: KeyColumn | None = None

    def __init__(self, collection: str, node_tag: str) -> None:
        self.collection = collection
        self.node_tag = node_tag

    @property
    def name(self) -> str:
        return f"HiLoDocument {counter_key(self.collection, self.node_tag)!r}"

    @property
    def key(self) -> tuple[str, str]:
        return self.collection.lower(), self.node_tag

    def reserve(self, using: str, wanted: Wanted) -> list[Reservation]:
        """Reserve one range, which can be returned."""
        return [
            reservation.reserve_range(
                self.collection,
                wanted.size,
                node_tag=self.node_tag,
                at_least=wanted.at_least,
                minimum=wanted.minimum,
                issuer=wanted.issuer,
                column=self.shared_column,
                using=using,
                bound=wanted.bound,
            )
        ]

    def read_max(self, using: str) -> int:
        return reservation.read_max(self.collection, using, node_tag=self.node_tag)

    def raise_floor(self, using: str, number: int) -> None:
        reservation.raise_floor(self.collection, number, using, node_tag=self.node_tag)

    def give_back(self, using: str, reserved: Reservation, last: int) -> bool:
        try:
            reservation.return_range(
                reserved.collection,
                reserved.range.high,
                last,
                reserved.ticket,
                node_tag=reserved.node_tag,
                column=self.shared_column,
                using=using,
            )
        except RangeNotReturned as error:
            logger.debug("%s", error)
            return False
        return True
