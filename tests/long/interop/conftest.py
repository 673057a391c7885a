import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.long.interop.mixing import Mixed, Peer, django_peer, mix

# Of Django's processes: one block of 10 at a time, two, three; or ranges of just so
# many numbers, where the rule leaves their size free.
CAPACITIES = (5, 15, 25)


@pytest.fixture
def mixed(tmp_path) -> Iterator[Callable[..., Mixed]]:
    """Let three processes of Django's join others that are open."""
    ours: list[Peer] = []

    def run(
        theirs: Sequence[Peer],
        source: Any,
        shown: Callable[[Mixed], object] = Mixed.overlap,
        **pace: Any,
    ) -> Mixed:
        ours.extend(django_peer(tmp_path, capacity) for capacity in CAPACITIES)
        for peer in ours:
            peer.do("open", json.dumps(source.deconstruct()))
        return mix([*theirs, *ours], shown, **pace)

    yield run
    for peer in ours:
        peer.end()


@pytest.fixture
def capacity(settings) -> Callable[[int], None]:
    """Set the size of this process's own ranges; at first one block, if there are."""

    def set_(numbers: int) -> None:
        sizes = {"CAPACITY": numbers, "MAX_CAPACITY": numbers}
        settings.HILO = {**settings.HILO, **sizes}

    set_(1)
    return set_
