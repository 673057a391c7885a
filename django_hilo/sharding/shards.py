"""RavenDB's shard numbers: which of its shards has a document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django_hilo.sharding.buckets import BUCKETS, bucket_of, lower


@dataclass(frozen=True)
class Shards:
    """The sharding settings of a RavenDB database whose buckets were never moved.

    ``Shards(3, {"eu/": [0], "asia/": [1, 2]})`` has three shards; ids that start with
    ``asia/``, in any case, are shared equally by the last two. If several prefixes
    match, the longest counts. Raises ValueError for settings that RavenDB refuses.
    """

    count: int
    prefixes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.count <= BUCKETS:
            raise ValueError(
                f"The number of shards must be from 1 to {BUCKETS}, not {self.count!r}."
            )
        for prefix, numbers in self.prefixes.items():
            if len(prefix) < 2 or not prefix.endswith(("/", "-")):
                raise ValueError(f"The prefix {prefix!r} must end in '/' or '-'.")
            if not numbers or not set(numbers) <= set(range(self.count)):
                raise ValueError(
                    f"The shards of {prefix!r} must be numbers from 0 to "
                    f"{self.count - 1}, not {numbers!r}."
                )
        if len({lower(prefix) for prefix in self.prefixes}) < len(self.prefixes):
            raise ValueError("A prefix occurs twice, in different case.")

    def sharing(self, id: str) -> Sequence[int]:
        """Return the numbers of the shards that share the ids like this one."""
        start = lower(id)
        found = [each for each in self.prefixes if start.startswith(lower(each))]
        if not found:
            return range(self.count)
        return sorted(set(self.prefixes[max(found, key=len)]))


def shard_of(id: str, shards: int | Shards) -> int:
    """Return the number of the shard that RavenDB keeps an id on, from 0.

    ``shards`` says how many there are, or is `Shards` where prefixes have shards of
    their own. Raises `InvalidDocumentId` if ``id`` is not a text.
    """
    bucket = bucket_of(id)
    settings = shards if isinstance(shards, Shards) else Shards(shards)
    numbers = settings.sharing(id)
    # The last shard takes what the division leaves over.
    place = min(bucket // (BUCKETS // len(numbers)), len(numbers) - 1)
    return numbers[place]
