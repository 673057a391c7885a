"""The primary of a group fails under load, or hands over; the address follows it."""

from collections.abc import Callable, Iterator

import pytest

from tests.long.cluster.evidence import FEWEST_CHANGES, collect
from tests.long.cluster.group_replication.single import SingleMember, SinglePrimary
from tests.long.cluster.load import Load, migrate, running
from tests.support.patience import PATIENCE
from tests.support.programs import require

WORKERS = 4
LABELS = "records.Order", "records.Order", "numbers.Item"


@pytest.fixture(scope="module")
def group(folder) -> Iterator[SinglePrimary]:
    if lacks := SinglePrimary.missing():
        require(f"no group without {', '.join(lacks)}")
    with running(SinglePrimary(folder)) as group:
        migrate(group.environment(PATIENCE))
        yield group


@pytest.fixture
def load(tmp_path, group) -> Iterator[Load]:
    load = Load(tmp_path)
    yield load
    load.end_by_force()
    for node in group.nodes:
        if not node.is_running:
            node.launch()
        node.thaw()
    group.wait_until_whole()
    group.route.lead_to(group.primary(group.nodes))


def kill(group: SinglePrimary, primary: SingleMember) -> None:
    primary.kill()


def freeze(group: SinglePrimary, primary: SingleMember) -> None:
    primary.freeze()


def hand_over(group: SinglePrimary, primary: SingleMember) -> None:
    other = group.others(primary)[0]
    other.set_primary(other.port)


@pytest.mark.parametrize("act", [kill, freeze, hand_over])
def test_no_id_comes_twice(group, load, capsys, act: Callable[..., None]):
    primary = group.primary(group.nodes)
    seats = load.start(WORKERS, group.environment(), *LABELS)
    load.wait_for_ids()
    act(group, primary)
    successor = group.primary(group.others(primary))
    group.route.lead_to(successor)
    if act is freeze:
        load.wait_for("stood", seats, 20)
        primary.thaw()
    load.wait_for_ids(seats)
    load.wait_for("stood", seats, 20)
    load.end()

    everything = collect(load.folder)
    with capsys.disabled():
        ids, rows = (everything.longest(kind, seats) for kind in ("ids", "rows"))
        print(f"\n{act.__name__}: {everything}; longest {ids:.1f} s, {rows:.1f} s")
    everything.assert_nothing_twice()
    assert everything.changes("orders/A") >= FEWEST_CHANGES
    codes = {outcome.rpartition(":")[2] for outcome in everything.errors()}
    assert codes <= group.kind.known, codes
