"""The simulation of docs/how-to/large-fleets.md."""

import pytest

from benchmarks import simulation
from benchmarks.simulation import Fleet


@pytest.fixture(autouse=True)
def defaults(settings):
    settings.HILO = {}


def test_what_the_page_says_of_capacity():
    at_once = Fleet(10_000, 32).run(900)
    assert at_once.last_timeout < 120
    assert at_once.unused < 0.2
    assert Fleet(3_000, 32, start=60).run(900).timeouts == 0


def test_a_fleet_that_reserves_more_often_than_one_row_allows(monkeypatch):
    monkeypatch.setattr(simulation, "UNDER_LOCK", 0.4)
    found = Fleet(180, 32).run(1200)
    assert 900 < found.timeouts < 1100
    assert found.last_timeout < 80
    assert found.rate(600, 1200) < 0.5 / 0.4
    assert Fleet(180, 512, start=180).run(1200).timeouts == 0
