"""The simulation of docs/how-to/large-fleets.md."""

import pytest

from benchmarks import simulation
from benchmarks.fleet import CAPACITIES, HEAD, HOUR, cells
from benchmarks.markdown import row
from benchmarks.simulation import Fleet
from tests.support.pages import page


@pytest.fixture(autouse=True)
def defaults(settings):
    settings.HILO = {}


def test_the_page_has_what_is_simulated_now():
    lines = page("how-to/large-fleets.md").read_text().splitlines()
    assert row(HEAD) in lines
    for capacity in CAPACITIES:
        found = Fleet(100, capacity).run(HOUR)
        assert row(cells(100, capacity, found)) in lines


def test_a_fleet_that_reserves_more_often_than_one_row_allows(monkeypatch):
    monkeypatch.setattr(simulation, "UNDER_LOCK", 0.4)
    found = Fleet(180, 32).run(1200)
    assert found.settled_at > 1190
    assert found.timeouts > 1200
    assert found.rate(600, 1200) == pytest.approx(1 / 0.4, rel=0.01)
    assert Fleet(180, 512, start=180).run(1200).timeouts == 0
