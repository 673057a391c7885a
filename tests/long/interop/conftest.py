import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tests.long.interop.jvm import Shared
from tests.long.interop.mixing import Mixed, Peer, django_peer, mix, schema
from tests.support.sql import execute

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
            peer.do("open", json.dumps(source, default=lambda part: part.deconstruct()))
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


@pytest.fixture
def opened(peers, new_process, capacity) -> Iterator[Callable[..., list[Peer]]]:
    """Make the counter of a generator, and open it in the test's JVMs."""
    new_process()
    with ExitStack() as stack:

        def open_(case: Shared, first: int | None = None, count: int = 3) -> list[Peer]:
            for peer in peers[:count]:
                peer.do("open", case.generator)
            stack.enter_context(schema(peers[0]))
            execute(case.counter.store, case.first if first is None else first)
            return peers[:count]

        yield open_
