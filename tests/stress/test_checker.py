"""The checker sees each kind of wrong: a check that cannot fail is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.stress.checker import Verdict, check, check_course
from tests.stress.evidence import Stored, collect
from tests.stress.supervisor import Course

ONE = "1 range 1 8 free\n2 given orders/1-A orders/2-A\n3 born orders/3-A a\n"
TWO = "1 range 9 16 free\n2 given orders/9-A\n3 drawn orders/10-A\n"


def judge(
    folder: Path, *journals: str, rows: Any = (), max: int = 16, servers: bool = True
) -> Verdict:
    """Judge processes that left one journal each."""
    for seat, text in enumerate(journals):
        (folder / f"{seat:04}-1-main.log").write_text(text)
    stored = Stored([(f"orders/{number}-A", name) for number, name in rows], max)
    return check(collect(folder, stored), stored, servers=servers)


def test_a_clean_run(tmp_path):
    one = ONE + "4 committed orders/3-A\n5 returned 3\n6 ended normally\n"
    two = TWO + "4 rolledback \n5 ended _exit\n"
    verdict = judge(tmp_path, one, two, rows=[(3, "a")])

    assert not verdict.failures
    assert verdict.figures["gaps (Max less numbers given)"] == 11
    assert verdict.figures["  gaps of processes that left by _exit"] == 6
    assert verdict.figures["returns"] == 1


@pytest.mark.parametrize(
    "line", ["4 given orders/9-A", "4 born orders/9-A c", "4 drawn orders/10-A"]
)
def test_a_repeated_number(tmp_path, line):
    verdict = judge(tmp_path, ONE, TWO + line + "\n")

    assert verdict.figures["duplicates"] == 1
    assert any("more than once" in failure for failure in verdict.failures)


def test_sqlite_may_repeat_what_only_a_rolled_back_transaction_saw(tmp_path):
    undone = TWO + "4 rolledback \n5 given orders/10-A\n"
    assert not judge(tmp_path, ONE, undone, servers=False).failures
    assert judge(tmp_path, ONE, undone, servers=True).failures


def test_sqlite_may_not_repeat_what_stands(tmp_path):
    stands = TWO + "4 committed orders/10-A\n5 given orders/10-A\n"
    assert judge(tmp_path, ONE, stands, servers=False).figures["duplicates"] == 1


def test_an_inner_block_that_rolled_back(tmp_path):
    inner = "1 range 1 8 free\n2 born orders/1-A a\n3 born orders/2-A b\n"
    verdict = judge(tmp_path, inner + "4 committed orders/1-A\n", rows=[(1, "a")])
    assert not verdict.failures
    assert verdict.figures["numbers that were rolled back"] == 1

    verdict = judge(tmp_path, inner + "4 committed orders/1-A\n", rows=[(2, "b")])
    assert len(verdict.failures) == 3


@pytest.mark.parametrize(
    ("end", "rows", "failure"),
    [
        ("4 committed orders/3-A\n", [], "Committed, but not in the table"),
        ("4 rolledback \n", [(3, "a")], "Rolled back, but in the table"),
        ("", [(3, "a"), (4, "x")], "In the table, but of no"),
    ],
)
def test_the_table_disagrees(tmp_path, end, rows, failure):
    failures = judge(tmp_path, ONE + end, rows=rows).failures
    assert any(failure in found for found in failures)


def test_the_table_tells_what_a_killed_process_could_not(tmp_path):
    assert not judge(tmp_path, ONE, rows=[(3, "a")]).failures
    assert not judge(tmp_path, ONE, rows=[]).failures
    assert not judge(tmp_path, ONE + "4 given orders/1-A", rows=[]).failures


@pytest.mark.parametrize(
    ("journals", "failure"),
    [
        ([ONE, TWO + "4 given orders/8-A\n"], "Not of a range of the process"),
        ([ONE, "1 range 8 16 free\n"], "Ranges overlap"),
        ([ONE + "4 returned 9\n"], "no range of its"),
        ([ONE + "4 returned 1\n", "5 range 3 9 free\n"], "more than once"),
        (["1 range 10 20 free\n2 given orders/17-A\n"], "Above Max 16"),
        ([ONE + "3 unknown \n4 repeated orders/3-A\n"], "Refused by the table"),
        ([ONE + "4 failed Traceback\\nKeyError\n"], "KeyError"),
    ],
)
def test_other_wrongs(tmp_path, journals, failure):
    if failure == "more than once":
        journals[1] += "6 given orders/3-A\n"
    assert any(failure in found for found in judge(tmp_path, *journals).failures)


def test_ranges_of_which_a_part_went_back_do_not_overlap(tmp_path):
    after_return = "5 range 4 9 free\n6 given orders/4-A\n"
    assert not judge(tmp_path, ONE + "4 returned 3\n", after_return).failures


def test_a_run_in_which_nothing_happened(tmp_path):
    verdict = judge(tmp_path, ONE, TWO + "4 forked 5\n")
    assert not verdict.failures

    stored = Stored([], 16)
    check_course(verdict, collect(tmp_path, stored), Course(failures=["Broken."]))

    assert verdict.failures[0] == "Broken."
    for missing in (
        "child",
        "killed",
        "forked",
        "did not overlap",
        "interleave",
        "returned",
    ):
        assert any(missing in failure for failure in verdict.failures)
