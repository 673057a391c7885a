"""The simulation of docs/how-to/large-fleets.md."""

import pytest

from benchmarks import simulation
from benchmarks.simulation import Fleet


@pytest.fixture(autouse=True)
def defaults(settings):
    settings.HILO = {}


def test_what_the_page_says_of_capacity():
    assert Fleet(10_000, 32).run(900).settled_at > 890
    assert Fleet(10_000, 512).run(900).settled_at < 300


def test_a_fleet_that_reserves_more_often_than_one_row_allows(monkeypatch):
    monkeypatch.setattr(simulation, "UNDER_LOCK", 0.4)
    found = Fleet(180, 32).run(1200)
    assert found.settled_at > 1190
    assert found.timeouts > 1200
    assert found.rate(600, 1200) == pytest.approx(1 / 0.4, rel=0.01)
    assert Fleet(180, 512, start=180).run(1200).timeouts == 0
