"""Every state of the model of docs/explanation/protocol.md, and how it can fail.

HILO_TEST_PROTOCOL=full looks further: some minutes, some gigabytes.
"""

import os
import re

import pytest

from tests.long.protocol.spin import require_spin, search, shortest_trace
from tests.support.commands import PROJECT

DOCS = (PROJECT / "docs/explanation/protocol.md").read_text()
IS_FULL = os.environ.get("HILO_TEST_PROTOCOL") == "full"

RESTORED = ["RESTORE", "RAISE_MAX", "RESTART"]
# Title, switches, and what they are at full length.
HOLDS = {
    "a server": (["PROCESSES=4", "LAST=6"], ["PROCESSES=4", "LAST=8"]),
    "ranges of 1 to 3": (["SIZE=3", "LAST=5"], ["SIZE=3", "LAST=7"]),
    "bound ranges": (
        ["BOUND", "PROCESSES=3", "LAST=4"],
        ["BOUND", "PROCESSES=3", "LAST=5"],
    ),
    "bound, 4 processes": (["BOUND", "LAST=3"], ["BOUND", "LAST=4"]),
    "lent ranges": (["LENT", "MESSAGES=2", "LAST=4"], ["LENT", "MESSAGES=2", "LAST=5"]),
    "lent, no mark": (
        ["LENT", "NO_MARK", "MESSAGES=2", "LAST=4"],
        ["LENT", "NO_MARK", "MESSAGES=2", "LAST=5"],
    ),
    "restored": ([*RESTORED, "LAST=4"], [*RESTORED, "LAST=5"]),
    "restored, bound": (
        [*RESTORED, "BOUND", "PROCESSES=2", "LAST=3"],
        [*RESTORED, "BOUND", "PROCESSES=2", "LAST=4"],
    ),
    "restored, own": (
        ["RESTORE", "OWN", "PROCESSES=2", "LAST=4"],
        ["RESTORE", "OWN", "PROCESSES=3", "LAST=4"],
    ),
}
FAULTS = {
    "RavenDB's return": ["RAVENDB_RETURN"],
    "the lower bound without a ticket": ["NO_TICKET"],
    "a range kept after a rollback": ["BOUND", "KEEP"],
    "burnt numbers that are forgotten": ["BOUND", "FORGET"],
    "burnt numbers kept whatever Max was": ["BOUND", "UNSEEN"],
    "an answer that was rolled back": ["BOUND", "OUTLIVE"],
    "a range shared by a fork": ["SHARE"],
    "a COMMIT that failed": ["TRUST"],
    "a restore alone": ["RESTORE"],
    "a restore under processes": ["RESTORE", "RAISE_MAX"],
    "hilo_raise_max without a floor": [*RESTORED, "RAISE_MAX_ONLY"],
    "a return without a ticket, older than a restore": [*RESTORED, "LENT"],
}
SHOWN = ["RavenDB's return", "a restore under processes"]
SMALL = ["PROCESSES=2", "LAST=4"]


@pytest.fixture(autouse=True)
def spin() -> None:
    require_spin()


@pytest.mark.parametrize("title", HOLDS)
def test_no_number_twice(title, tmp_path, capsys):
    switches = [*HOLDS[title][IS_FULL], "SYMMETRY"]
    found = search(tmp_path, switches)
    with capsys.disabled():
        print(f"\n{title} ({' '.join(switches)}): {found}")
    assert found.errors == 0, found.report
    assert found.is_complete, found.report
    assert found.unreached == ['"-end-"'], "a step that never came"


@pytest.mark.parametrize("title", FAULTS)
def test_the_model_can_fail(title, tmp_path):
    trace = shortest_trace(tmp_path, [*SMALL, *FAULTS[title]])
    assert re.fullmatch(r"[A-Z] (uses|keeps) \d+: AGAIN", trace[-1]), trace
    if title in SHOWN:
        assert "```text\n" + "\n".join(trace) + "\n```" in DOCS


@pytest.mark.parametrize("title", FAULTS)
def test_symmetry_hides_no_fault(title, tmp_path):
    assert search(tmp_path, [*SMALL, *FAULTS[title], "SYMMETRY"], "-O0").errors == 1
