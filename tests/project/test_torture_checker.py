"""`make torture` sees each kind of wrong: a check that cannot fail is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.long.torture import __main__ as torture
from tests.long.torture import seats
from tests.long.torture.checker import Verdict, check
from tests.long.torture.evidence import Row, collect
from tests.long.torture.plan import faults_of, plan_of
from tests.long.torture.stored import Stored
from tests.long.torture.supervisor import LEAST_GIVEN, PROCESSES, Course

RANGE = "1 reserving orders/A 8\n2 range orders/A 1 8 free\n"
LATER = "1 reserving orders/A 8\n3 range orders/A 9 16 free\n"
BOUND = "1 open \n2 reserving orders/A 8\n3 range orders/A 1 8 bound\n"


def judge(
    folder: Path,
    *journals: str,
    rows: Sequence[Row] = (),
    max: int = 16,
    letters: int = 0,
    servers: bool = True,
) -> list[str]:
    """Judge processes that left one journal each, seats 1, 2 ...; return the wrongs."""
    return verdict_of(
        folder, *journals, rows=rows, max=max, letters=letters, servers=servers
    ).failures


def verdict_of(
    folder: Path,
    *journals: str,
    rows: Sequence[Row] = (),
    max: int = 16,
    letters: int = 0,
    servers: bool = True,
) -> Verdict:
    for seat, text in enumerate(journals, start=1):
        (folder / f"{seat:04}-1-1.log").write_text(text)
    counters = {"orders/A": max, "plain-things/A": max}
    stored = Stored(list(rows), counters, {"letters": letters})
    return check(collect(folder), stored, servers=servers)


def order(number: int, name: str) -> Row:
    return "Order", f"orders/{number}-A", name


def explained(text: str) -> str:
    """Add what makes the numbers of the counter that is not meant lost ones."""
    return f"0 reserving plain-things/A 16\n{text}"


def test_a_clean_run_is_one(tmp_path):
    one = RANGE + (
        "3 given orders/A 1-3\n4 open \n5 making Order 1.0.0\n"
        "6 born Order orders/4-A 1.0.0\n7 shut kept\n8 ended normally\n"
    )
    two = LATER + "4 given orders/A 9-16\n5 ended _exit\n"
    verdict = verdict_of(
        tmp_path, explained(one), two, rows=[order(4, "1.0.0")], max=16
    )

    assert verdict.failures == []
    figures = verdict.tables["Numbers of orders/A"]
    assert figures["given"] == 12
    assert figures["not the newest range when its process gave it back"] == 4
    assert verdict.tables["Numbers"]["given"] == 12


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("4 given orders/A 1-1\n5 given orders/A 1-1", "Numbers given twice"),
        ("4 given orders/A 1-4\n5 given orders/A 2-3", "Numbers given twice"),
        ("4 given orders/A 9-9", "Numbers of no range of their process"),
        ("4 got orders/A 1-1", "Numbers of no range of their process"),
        ("4 failed Traceback\\nKeyError: 1", "Seat 1: KeyError: 1"),
        ("4 range orders/A 8 12 free", "Ranges overlap"),
        ("4 range orders/A 9 17 free", "Max of orders/A is 16, under the range 9-17"),
        ("4 returning orders/A 9 3\n5 returned ", "no range of its"),
        ("4 range plain-things/A 1 1 bound", "bound to a transaction on a server"),
        ("4 collided own plain-things/3-A", "Refused by the table"),
        ("4 counting x\n5 counting x\n6 counted x 1\n7 counted x 1", "came twice"),
        ("4 counting x\n5 counted x 1", "x is at 0; 1 asked, 1 were told"),
    ],
)
def test_a_line_that_must_not_be(tmp_path, line, wrong):
    found = judge(tmp_path, explained(RANGE + line + "\n"))
    assert any(wrong in failure for failure in found), found


def test_numbers_that_went_back_may_come_again_and_others_not(tmp_path):
    one = RANGE + "3 given orders/A 1-3\n4 returning orders/A 8 3\n5 returned \n"
    two = (
        "6 reserving orders/A 8\n7 range orders/A {low} 16 free\n"
        "8 given orders/A {low}-5\n"
    )
    assert judge(tmp_path, explained(one), two.format(low=4)) == []
    found = judge(tmp_path, explained(one), two.format(low=3))
    assert any("Numbers given twice" in failure for failure in found)


@pytest.mark.parametrize(
    "end", ["", "5 retry again\n6 refused \n", "5 error OperationalError lost\n"]
)
def test_a_return_that_may_have_been_taken(tmp_path, end):
    one = RANGE + "3 given orders/A 1-3\n4 returning orders/A 8 3\n"
    two = "8 reserving orders/A 13\n9 range orders/A 4 16 free\n"
    assert judge(tmp_path, explained(one + end), two) == []


def test_a_return_that_was_refused_left_the_range(tmp_path):
    one = RANGE + "4 returning orders/A 8 3\n5 refused \n"
    two = "8 reserving orders/A 13\n9 range orders/A 4 16 free\n"
    found = judge(tmp_path, explained(one), two)
    assert any("Ranges overlap" in failure for failure in found)


def test_sqlite_may_repeat_what_rolled_back_with_its_range(tmp_path):
    one = BOUND + "4 given orders/A 1-2\n5 shut undone\n"
    two = "6 reserving orders/A 16\n7 range orders/A 1 16 free\n8 given orders/A 1-3\n"
    assert judge(tmp_path, explained(one), two, servers=False) == []
    found = judge(
        tmp_path, explained(one.replace("undone", "kept")), two, servers=False
    )
    assert any("Numbers given twice" in failure for failure in found)


def test_sqlite_may_not_repeat_what_rolled_back_without_its_range(tmp_path):
    one = RANGE + "3 open \n4 given orders/A 1-2\n5 shut undone\n6 given orders/A 2-2\n"
    found = judge(tmp_path, explained(one), LATER, servers=False)
    assert any("Numbers given twice" in failure for failure in found)


def test_sqlite_may_not_repeat_within_the_transaction(tmp_path):
    one = BOUND + "4 given orders/A 1-2\n5 given orders/A 2-2\n6 shut undone\n"
    found = judge(tmp_path, explained(one), servers=False, max=0)
    assert any("Numbers given twice" in failure for failure in found)


def test_a_range_ends_with_the_block_that_it_is_bound_to(tmp_path):
    outer = "0 open \n" + BOUND + "4 given orders/A 1-1\n5 shut undone\n"
    after = "6 given orders/A 2-2\n7 shut kept\n"
    found = judge(tmp_path, explained(outer + after), servers=False, max=0)
    assert any("ranges that had rolled back" in failure for failure in found)
    assert (
        judge(tmp_path, explained(outer + "7 shut kept\n"), servers=False, max=0) == []
    )


def test_numbers_of_nobody_are_seen(tmp_path):
    assert judge(tmp_path, explained(RANGE), LATER) == []
    found = judge(tmp_path, explained(RANGE), LATER, max=17)
    assert any("orders/A: 1 numbers are in no journal" in each for each in found)
    killed = RANGE + "5 reserving orders/A 1\n"
    assert (
        judge(tmp_path, explained(killed).replace("A 16", "A 17"), LATER, max=17) == []
    )


def test_raising_by_hand_and_choosing_an_id_explain_gaps(tmp_path):
    raised = RANGE + "3 raising orders/A 8\n4 raised orders/A 8 16\n"
    chosen = "1 floor plain-things/A 16\n"
    assert judge(tmp_path, raised + chosen) == []
    found = judge(tmp_path, RANGE + chosen)
    assert any("orders/A: 8 numbers are in no journal" in each for each in found)


@pytest.mark.parametrize(("outcome", "is_right"), [("undone", True), ("kept", False)])
def test_a_chosen_id_jumps_over_what_rolled_back(tmp_path, outcome, is_right):
    """1 to 8 go back, as 9 to 12 did; no walk down from 16 may end at those."""
    back = "1 range plain-things/A 1 8 free\n2 returning plain-things/A 8 0\n"
    above = f"3 open \n4 range plain-things/A 9 12 bound\n5 shut {outcome}\n"
    floor = "7 floor plain-things/A 16\n8 floored plain-things/A\n"
    one = back + above + "6 returned \n" + floor + "9 ended _exit\n"
    found = judge(tmp_path, RANGE + one, LATER + "9 ended _exit\n", servers=False)
    lost = "plain-things/A: 8 numbers are in no journal"
    assert any(lost in each for each in found) != is_right, found


@pytest.mark.parametrize(
    ("after", "is_right"),
    [
        ("", False),
        ("6 ended _exit\n", True),
        ("3 lent orders/A 8\n6 ended normally\n", True),
        ("5 warned Unused numbers on %r stay a gap: %s\n6 ended normally\n", True),
        ("4 returning orders/A 8 0\n5 returned \n6 ended normally\n", True),
        ("4 returning orders/A 8 0\n5 refused \n6 ended normally\n", False),
    ],
)
def test_who_ends_normally_gives_the_newest_range_back(tmp_path, after, is_right):
    journal = RANGE + (after or "6 ended normally\n")
    later = "7 reserving orders/A 8\n8 range orders/A {low} {high} free\n"
    low = 1 if "returned" in after else 9
    found = judge(
        tmp_path, explained(journal), later.format(low=low, high=low + 7), max=low + 7
    )
    kept = "orders/A: 1-8 did not go back when seat 1 ended, and nothing had come"
    assert any(kept in each for each in found) != is_right, found


@pytest.mark.parametrize(
    ("reserving_at", "is_right"), [(3, True), (6, False)], ids=["crossed", "after"]
)
def test_what_goes_back_while_another_thread_reserves_over_it(
    tmp_path, reserving_at, is_right
):
    """It had looked at what its process held before that went back."""
    other = f"{reserving_at} reserving orders/A 8\n7 range orders/A 9 16 free\n"
    (tmp_path / "0001-1-2.log").write_text(other)
    one = RANGE + "4 returning orders/A 8 2\n5 returned \n"
    found = judge(tmp_path, explained(one))
    lost = "orders/A: 6 numbers are in no journal, but only 0 can have been lost: 3-8"
    assert (lost in found) != is_right, found


@pytest.mark.parametrize(
    ("other", "is_right"),
    [
        ("4 reserving orders/A 8\n7 range orders/A 9 16 free\n", True),
        ("7 reserving orders/A 8\n8 range orders/A 9 16 free\n", False),
        ("4 raising orders/A 8\n7 raised orders/A 8 16\n", True),
        ("7 raising orders/A 8\n8 raised orders/A 8 16\n", False),
        ("4 floor orders/A 16\n", True),
        ("7 floor orders/A 16\n", False),
        ("4 floor orders/A 0\n5 floored orders/A\n", True),
        ("1 floor orders/A 0\n5 floored orders/A\n", True),
        (
            "0 floor orders/A 0\n0 floored orders/A\n" + LATER.replace("1", "7", 1),
            False,
        ),
        (
            "7 floor orders/A 0\n7 floored orders/A\n" + LATER.replace("1", "7", 1),
            False,
        ),
        ("4 floor orders/A 5\n7 reserving orders/A 8\n", True),
        # Killed before it noted what was in the way.
        ("4 reserving orders/A 8\n", True),
    ],
)
def test_what_comes_over_a_range_before_its_process_ends_keeps_it(
    tmp_path, other, is_right
):
    found = judge(tmp_path, explained(RANGE + "6 ended normally\n"), other)
    assert any("did not go back" in each for each in found) != is_right, found


def test_the_numbers_of_a_range_that_rolled_back_are_those_of_others(tmp_path):
    one = BOUND + "4 shut undone\n5 ended normally\n"
    two = "6 reserving orders/A 8\n7 range orders/A 1 8 free\n9 ended normally\n"
    three = "8 reserving orders/A 8\n9 range orders/A 9 16 free\n"
    found = judge(tmp_path, explained(one), two, three, servers=False)
    assert found == []


def test_a_sequence_takes_nothing_back(tmp_path):
    drawn = RANGE.replace("free", "drawn") + "6 ended normally\n"
    assert judge(tmp_path, explained(drawn), max=8) == []


@pytest.mark.parametrize(
    ("block", "is_right"), [("raw_rollback_to", True), ("raw_release", False)]
)
def test_a_range_is_dropped_where_sql_rolled_back_some(tmp_path, block, is_right):
    one = BOUND + (
        f"4 step block, {block}\n5 open \n6 shut undone\n7 did block, {block}\n"
        "8 shut kept\n9 ended normally\n"
    )
    found = judge(tmp_path, explained(one), servers=False, max=8)
    assert any("did not go back" in each for each in found) != is_right, found


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ("", 8),
        ("3 locked orders/A\n", 0),
        ("2 retry lost\n3 locked orders/A\n", 8),
        ("2 retry lost\n3 error OperationalError lost\n", 16),
    ],
)
def test_what_a_lock_kept_from_being_reserved_is_not_lost(tmp_path, lines, lost):
    (tmp_path / "0001-1-1.log").write_text("1 reserving orders/A 8\n" + lines)
    assert collect(tmp_path).lost["orders/A"] == lost


def test_what_a_lock_kept_from_being_raised_or_returned_is_not_lost(tmp_path):
    raising = "3 raising orders/A 8\n4 error ReservationTimeout locked\n"
    back = "5 returning orders/A 8 0\n6 locked orders/A 8 0\n"
    (tmp_path / "0001-1-1.log").write_text(RANGE + raising + back)
    evidence = collect(tmp_path)
    assert (evidence.lost["orders/A"], evidence.returns) == (0, [])


@pytest.mark.parametrize("word", ["choosing", "floor plain-things/A"])
def test_a_chosen_id_explains_no_more_than_it_can_have_jumped(tmp_path, word):
    (tmp_path / "0001-1-1.log").write_text(f"1 {word} 1000000\n")
    found = check(
        collect(tmp_path), Stored([], {"plain-things/A": 1_000_000}, {}), servers=True
    )
    reach = 300 if word == "choosing" else 300 + 2 * 32
    text = f"plain-things/A: {1_000_000 - reach} numbers are in no journal"
    assert any(text in each for each in found.failures), found.failures


def test_a_run_in_which_nothing_happened_is_none():
    idle = Course(possible_faults=["kill"])
    assert idle.nothing_done(1) == [
        f"0 of {PROCESSES} processes were started.",
        "No fault came.",
        f"1 numbers were given, under {LEAST_GIVEN}.",
    ]
    idle.started = PROCESSES
    idle.faults["kill"] = 1
    assert idle.nothing_done(LEAST_GIVEN) == []


@pytest.mark.parametrize("seconds", ["5", "14.9", "0", "-1", "nan"])
def test_a_run_too_short_to_show_anything_is_refused(monkeypatch, capsys, seconds):
    line = ["torture", "--database", "sqlite", f"--seconds={seconds}"]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as caught:
        torture.arguments()
    assert caught.value.code == 2
    assert "a run on sqlite needs at least 15." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "is_short"),
    [(["--seconds=20"], True), (["--seconds=50"], False), (["--full"], False)],
)
def test_a_short_run_says_so(monkeypatch, options, is_short):
    monkeypatch.setattr("sys.argv", ["torture", "--database=postgres", *options])
    assert ("short run" in torture.kept(torture.arguments())) == is_short


CHOSEN = (
    "1 choosing 5\n2 making Plain 1.0.0\n3 open \n4 chosen plain-things/5-A 1.0.0\n"
    "5 shut kept\n"
)


def test_no_later_range_holds_a_number_that_was_chosen(tmp_path):
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    range = "{at} reserving plain-things/A 16\n9 range plain-things/A 1 16 free\n"
    others = "1 reserving orders/A 16\n"
    before = judge(tmp_path, CHOSEN, others + range.format(at=4), rows=rows)
    after = judge(tmp_path, CHOSEN, others + range.format(at=6), rows=rows)
    assert before == []
    assert any("5 was chosen, and in the later range 1-16" in each for each in after)
    unstored = CHOSEN + "6 unstored 5\n"
    assert judge(tmp_path, unstored, others + range.format(at=6), rows=rows) == []


def test_who_chose_a_number_does_not_give_it(tmp_path):
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    held = "0 reserving plain-things/A 16\n0 range plain-things/A 1 16 free\n"
    gives = "6 step next_id\n7 given plain-things/A 5-5\n"
    others = "1 reserving orders/A 16\n"
    found = judge(tmp_path, held + CHOSEN + gives, others, rows=rows)
    assert found == ["Seat 1 chose 5, and then gave it."]
    assert judge(tmp_path, held + CHOSEN, others, rows=rows) == []


BORN = "3 open \n4 making Order 1.0.0\n5 born Order orders/1-A 1.0.0\n"


@pytest.mark.parametrize(
    ("end", "rows", "wrong"),
    [
        ("6 shut kept\n", [], "Committed, but not in the table"),
        ("6 shut kept\n", [order(1, "other")], "Committed, but not in the table"),
        ("6 shut undone\n", [order(1, "1.0.0")], "Rolled back, but in the table"),
        ("6 shut kept\n", [order(1, "1.0.0"), order(2, "x")], "of no committed"),
        ("6 shut kept\n", [order(1, "1.0.0")], ""),
        ("6 shut undone\n", [], ""),
        # The table tells what a killed process, or a lost commit, could not.
        ("", [order(1, "1.0.0")], ""),
        ("", [], ""),
        ("6 shut unknown\n", [order(1, "1.0.0")], ""),
        ("6 shut unknown\n", [], ""),
        ("6 open \n", [order(1, "1.0.0")], "Rolled back, but in the table"),
        ("6 making Order 1.0.1\n", [order(1, "1.0.0"), order(2, "1.0.1")], ""),
        (
            "6 making Order 1.0.1\n7 born Order orders/2-A 1.0.1\n8 shut unknown\n",
            [order(1, "1.0.0")],
            "Torn",
        ),
        (
            "6 open \n7 making Order 1.0.1\n8 born Order orders/2-A 1.0.1\n"
            "9 shut undone\n10 shut kept\n",
            [order(1, "1.0.0"), order(2, "1.0.1")],
            "Rolled back, but in the table",
        ),
    ],
)
def test_the_table_against_the_journals(tmp_path, end, rows, wrong):
    found = judge(tmp_path, explained(RANGE + BORN + end), LATER, rows=rows)
    if wrong:
        assert any(wrong in failure for failure in found), found
    else:
        assert found == []


@pytest.mark.parametrize(
    ("numbers", "letters", "is_right"),
    [((1, 2), 2, True), ((1, 3), 3, False), ((1, 2), 3, False), ((2,), 1, False)],
)
def test_gapless_ids_have_no_gap(tmp_path, numbers, letters, is_right):
    rows = [("Letter", f"letters/{number}", f"1.0.{number}") for number in numbers]
    born = "".join(f"4 born {' '.join(row)}\n" for row in rows)
    journal = explained(RANGE + f"3 open \n{born}5 shut kept\n")
    found = judge(tmp_path, journal, LATER, rows=rows, letters=letters)
    assert (found == []) == is_right, found


def test_a_plan_is_a_function_of_the_seed_and_the_seat():
    def text(seed: str, seat: int) -> str:
        return "\n".join(plan_of(seed, seat).lines())

    assert text("7", 3) == text("7", 3)
    assert len({text("7", 3), text("7", 4), text("8", 3)}) == 3
    one, two = faults_of("7"), faults_of("7")
    assert [next(one) for _ in range(50)] == [next(two) for _ in range(50)]


def test_seats_of_children_are_their_own():
    found = {
        seats.child_seat(seat, thread, fork)
        for seat in range(1, 200)
        for thread in range(3)
        for fork in range(1, 60)
    }
    assert len(found) == 199 * 3 * 59
    assert all(seats.is_child(seat) for seat in found)


def test_what_comes_again_is_counted(tmp_path):
    one = BOUND + "4 given orders/A 1-3\n5 shut undone\n"
    two = "6 reserving orders/A 16\n7 range orders/A 1 16 free\n8 given orders/A 2-8\n"
    verdict = verdict_of(tmp_path, explained(one), two, servers=False)
    figures = verdict.tables["Numbers"]
    assert figures["that came again, as SQLite's may"] == 2


@pytest.mark.parametrize(("given_at", "is_right"), [(10, True), (4, False)])
def test_a_thread_gives_of_a_range_that_another_has_yet_to_note(
    tmp_path, given_at, is_right
):
    """The range is there once more, after the transaction that took it rolled back."""
    one = BOUND + (
        "4 given orders/A 1-2\n5 shut undone\n6 step again\n"
        "7 reserving orders/A 8\n20 range orders/A 1 8 free\n"
    )
    (tmp_path / "0001-1-2.log").write_text(f"{given_at} given orders/A 2-2\n")
    found = judge(tmp_path, explained(one), servers=False, max=8)
    assert any("rolled back" in each for each in found) != is_right, found


@pytest.mark.parametrize("outcome", ["unknown", "undone"])
@pytest.mark.parametrize(("made", "is_right"), [(2, True), (1, False)])
def test_rows_that_a_lost_connection_left_unnoted_have_their_numbers(
    tmp_path, made, is_right, outcome
):
    names = " ".join(f"1.0.{number}" for number in range(made))
    one = (
        f"0 making Order {names}\n1 open \n2 reserving orders/A 8\n"
        f"3 range orders/A 1 8 free\n4 shut {outcome}\n"
        "5 returning orders/A 8 2\n6 returned orders/A 8 2\n7 ended normally\n"
    )
    later = "8 reserving orders/A 8\n9 range orders/A 3 10 free\n"
    found = judge(tmp_path, explained(one), later, max=10)
    assert any("did not go back" in each for each in found) != is_right, found


@pytest.mark.parametrize(
    ("lost", "is_right"),
    [
        ("3 making Order 1.0.0\n4 open \n5 shut unknown\n", True),
        (
            "3 making Order 1.0.0\n4 open \n5 shut unknown\n6 given orders/A 3-3\n",
            True,
        ),
        ("", False),
        ("0 making Order 1.0.0\n0 open \n0 shut unknown\n", False),
        ("3 making Plain 1.0.0\n4 open \n5 shut unknown\n", False),
        (
            "3 making Order 1.0.0\n4 open \n5 shut unknown\n"
            "6 error ReservationTimeout of OperationalError Locked\n",
            False,
        ),
        (
            "3 open \n4 making Order 1.0.0\n5 error ConcurrencyError Lost\n"
            "6 shut undone\n",
            False,
        ),
    ],
    ids=[
        *("one more", "and others were given", "none", "before the range"),
        *("of another counter", "without a number", "nor in a transaction"),
    ],
)
def test_rows_fail_one_after_the_other_and_in_other_threads(tmp_path, lost, is_right):
    """The numbers that they have went to nobody else, and cannot go back."""
    other = "3 making Order 1.1.0\n4 open \n5 shut unknown\n"
    (tmp_path / "0001-1-2.log").write_text(other)
    last = 3 if "given" in lost else 2
    back = f"7 returning orders/A 8 {last}\n8 returned orders/A 8 {last}\n"
    after = "9 making Order 1.0.9\n10 open \n11 shut unknown\n12 ended normally\n"
    later = f"13 reserving orders/A 8\n14 range orders/A {last + 1} {last + 8} free\n"
    one = explained(RANGE + lost + back + after)
    found = judge(tmp_path, one, later, max=last + 8)
    assert any("did not go back" in each for each in found) != is_right, found


def test_a_row_that_is_in_the_table_excuses_no_other(tmp_path):
    one = RANGE + "3 making Order 1.0.0\n4 open \n5 shut unknown\n"
    back = "7 returning orders/A 8 2\n8 returned orders/A 8 2\n9 ended normally\n"
    later = "10 reserving orders/A 8\n11 range orders/A 3 10 free\n"
    rows = [order(1, "1.0.0")]
    found = judge(tmp_path, explained(one + back), later, rows=rows, max=10)
    assert any("orders/A: 2-2 did not go back" in each for each in found), found


@pytest.mark.parametrize(
    ("end", "is_right"),
    [
        ("6 floor plain-things/A 5\n", True),
        ("6 floor plain-things/A 4\n", False),
        ("6 floor plain-things/A 5\n6 floored plain-things/A\n", False),
        ("6 floor plain-things/A 5\n7 ended normally\n", False),
    ],
)
def test_only_who_is_killed_over_a_floor_is_excused_from_it(tmp_path, end, is_right):
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    later = "7 reserving plain-things/A 16\n9 range plain-things/A 1 16 free\n"
    found = judge(
        tmp_path, CHOSEN + end, "1 reserving orders/A 16\n8 step a\n" + later, rows=rows
    )
    assert any("in the later range" in each for each in found) != is_right, found
