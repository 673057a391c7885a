"""`make torture` sees each kind of wrong: a check that cannot fail is none."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.long.torture import seats
from tests.long.torture.checker import check, check_saved_again
from tests.long.torture.evidence import Evidence, Row, collect
from tests.long.torture.plan import faults_of, plan_of
from tests.long.torture.stored import Stored
from tests.long.torture.supervisor import LEAST_GIVEN, PROCESSES, Course

RANGE = "1 reserving \n2 range orders/A 1 8 free\n"
LATER = "1 reserving \n3 range orders/A 9 16 free\n"
BOUND = "1 open \n2 reserving \n3 range orders/A 1 8 bound\n"
AGAIN = "6 reserving \n7 range orders/A 1 16 free\n8 given orders/A 1-3\n"


def judge(
    folder: Path,
    *journals: str,
    rows: Sequence[Row] = (),
    letters: int = 0,
    servers: bool = True,
) -> list[str]:
    """Judge processes that left one journal each, seats 1, 2 ...; return the wrongs."""
    for seat, text in enumerate(journals, start=1):
        (folder / f"{seat:04}-1-1.log").write_text(text)
    counters = {"orders/A": 16, "plain-things/A": 16}
    stored = Stored(list(rows), counters, {"letters": letters})
    return check(collect(folder), stored, servers=servers).failures


def order(number: int, name: str) -> Row:
    return "Order", f"orders/{number}-A", name


def expect(found: list[str], wrong: str) -> None:
    """Expect a failure with this text. Each run shows that others are none."""
    assert any(wrong in failure for failure in found), found


def test_a_clean_run_is_one(tmp_path):
    one = RANGE + (
        "3 given orders/A 1-3\n4 open \n5 making Order 1.0.0\n"
        "6 born Order orders/4-A 1.0.0\n7 shut kept\n8 ended normally\n"
    )
    two = LATER + "4 given orders/A 9-16\n5 ended _exit\n"
    assert judge(tmp_path, one, two, rows=[order(4, "1.0.0")]) == []


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
    expect(judge(tmp_path, RANGE + line + "\n"), wrong)


@pytest.mark.parametrize(
    ("end", "low", "wrong"),
    [
        ("5 returned \n", 3, "Numbers given twice"),
        ("5 refused \n", 4, "Ranges overlap"),
        ("5 locked \n", 4, "Ranges overlap"),
    ],
)
def test_only_numbers_that_went_back_may_come_again(tmp_path, end, low, wrong):
    one = RANGE + "3 given orders/A 1-3\n4 returning orders/A 8 3\n" + end
    two = f"8 reserving \n9 range orders/A {low} 16 free\n9 given orders/A {low}-5\n"
    expect(judge(tmp_path, one, two), wrong)


@pytest.mark.parametrize(
    ("one", "two", "wrong"),
    [
        (BOUND + "4 given orders/A 1-2\n5 shut kept\n", AGAIN, "Numbers given twice"),
        (
            RANGE + "3 open \n4 given orders/A 1-2\n5 shut undone\n"
            "6 given orders/A 2-2\n",
            LATER,
            "Numbers given twice",
        ),
        (
            BOUND + "4 given orders/A 1-2\n5 given orders/A 2-2\n6 shut undone\n",
            "",
            "Numbers given twice",
        ),
        (
            f"0 open \n{BOUND}4 given orders/A 1-1\n5 shut undone\n"
            "6 given orders/A 2-2\n7 shut kept\n",
            "",
            "ranges that had rolled back",
        ),
    ],
    ids=[
        *("kept", "without its range", "within the transaction"),
        "after the block of its range",
    ],
)
def test_sqlite_may_repeat_what_rolled_back_with_its_range_only(
    tmp_path, one, two, wrong
):
    expect(judge(tmp_path, one, two, servers=False), wrong)


LOST = BOUND + "4 given orders/A 1-2\n5 shut undone\n"


@pytest.mark.parametrize(
    ("later", "wrong"),
    [
        ("8 given orders/A 2-2\n", "Numbers given twice: orders/A 2-2 (seat 1)"),
        ("7 open \n8 given orders/A 2-3\n9 shut undone\n", "Numbers given twice"),
        ("8 born Order orders/1-A 1.0.0\n9 shut unknown\n", "Numbers given twice"),
        ("8 had orders/A 1-1\n", "Numbers given twice"),
        ("8 lent orders/A 1-2\n9 given orders/A 2-2\n", "Numbers given twice"),
    ],
)
def test_a_process_never_gives_a_number_again_that_was_rolled_back(
    tmp_path, later, wrong
):
    again = "6 reserving \n7 range orders/A 1 16 free\n"
    block = "7 open \n" if "born" in later else ""
    expect(judge(tmp_path, LOST + again + block + later, servers=False), wrong)


def test_a_thread_gives_of_a_range_that_is_not_there_yet(tmp_path):
    """The range is there once more, after the transaction that took it rolled back."""
    one = BOUND + (
        "4 given orders/A 1-2\n5 shut undone\n6 step again\n"
        "7 reserving \n20 range orders/A 1 8 free\n"
    )
    (tmp_path / "0001-1-2.log").write_text("4 given orders/A 3-3\n")
    found = judge(tmp_path, one, servers=False)
    expect(found, "ranges that had rolled back")


CHOSEN = (
    "1 choosing 5\n2 making Plain 1.0.0\n3 open \n4 chosen plain-things/5-A 1.0.0\n"
)


@pytest.mark.parametrize(
    ("end", "wrong"),
    [
        ("5 shut kept\n", "5 was chosen, and in the later range 1-16"),
        # It committed by itself, so that the floor came before the note.
        ("", "in the later range"),
        ("5 shut unknown\n", "in the later range"),
    ],
)
def test_no_later_range_holds_a_number_that_was_chosen(tmp_path, end, wrong):
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    later = "6 reserving \n9 range plain-things/A 1 16 free\n"
    expect(judge(tmp_path, CHOSEN + end, later, rows=rows), wrong)


@pytest.mark.parametrize(
    ("seat", "servers"), [(1, True), (2, False)], ids=["its own process", "SQLite"]
)
def test_a_floor_is_lost_at_the_commit_for_others_on_servers_only(
    tmp_path, seat, servers
):
    """Its process was killed, or its session ended; but it knows the number."""
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    one = CHOSEN.replace("3 open", "3 open \n3 open") + "5 shut kept\n"
    one += "6 shut unknown\n"
    later = "7 reserving \n9 range plain-things/A 1 16 free\n"
    (tmp_path / f"000{seat}-1-2.log").write_text(later)
    found = judge(tmp_path, one, rows=rows, servers=servers)
    expect(found, "in the later range")


def test_who_chose_a_number_does_not_give_it(tmp_path):
    rows = [("Plain", "plain-things/5-A", "1.0.0")]
    held = "0 reserving \n0 range plain-things/A 1 16 free\n"
    gives = "6 step next_id\n7 given plain-things/A 5-5\n"
    found = judge(tmp_path, held + CHOSEN + "5 shut kept\n" + gives, rows=rows)
    assert found == ["Seat 1 chose 5, and then gave it."]


BORN = "3 open \n4 making Order 1.0.0\n5 born Order orders/1-A 1.0.0\n"


@pytest.mark.parametrize(
    ("end", "rows", "wrong"),
    [
        ("6 shut kept\n", [], "Committed, but not in the table"),
        ("6 shut kept\n", [order(1, "other")], "Committed, but not in the table"),
        ("6 shut undone\n", [order(1, "1.0.0")], "Rolled back, but in the table"),
        ("6 shut kept\n", [order(1, "1.0.0"), order(2, "x")], "of no committed"),
        ("6 open \n", [order(1, "1.0.0")], "Rolled back, but in the table"),
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
    expect(judge(tmp_path, RANGE + BORN + end, LATER, rows=rows), wrong)


AGAIN_KEPT = "7 open \n8 making Order 1.0.0\n9 kept Order orders/1-A 1.0.0\n"
ROLLED_BACK = BOUND + BORN.partition("\n")[2] + "6 shut undone\n"


@pytest.mark.parametrize(
    ("again", "two", "rows", "wrong"),
    [
        # It was killed before it could note the row, whose number it had before.
        (AGAIN_KEPT.rpartition("9")[0], AGAIN, [order(1, "1.0.0")], "kept that others"),
        (AGAIN_KEPT + "10 shut kept\n", AGAIN, [order(1, "1.0.0")], "kept that others"),
        (AGAIN_KEPT + "10 shut kept\n", "", [order(1, "x")], "Committed, but not in"),
        (AGAIN_KEPT + "10 shut undone\n", "", [order(1, "1.0.0")], "Rolled back, but"),
        (
            AGAIN_KEPT + "10 shut kept\n11 open \n12 kept Order orders/1-A 1.0.1\n"
            "13 shut kept\n",
            "",
            [order(1, "1.0.1")],
            "kept that others have: orders/A 1-1 (seat 1)",
        ),
        (
            "7 open \n8 reborn Order orders/3-A 1.0.0\n9 shut kept\n",
            "",
            [order(1, "1.0.0"), order(3, "1.0.0")],
            "One object, two rows",
        ),
    ],
)
def test_an_object_that_is_saved_again(tmp_path, again, two, rows, wrong):
    one = ROLLED_BACK + ("" if two else "6 reserving \n7 range orders/A 3 16 free\n")
    expect(judge(tmp_path, one + again, two, rows=rows, servers=False), wrong)


def test_a_number_that_an_object_keeps_is_not_above_max(tmp_path):
    one = ROLLED_BACK.replace("1 8", "1 20").replace("orders/1-A", "orders/17-A")
    one += AGAIN_KEPT.replace("orders/1-A", "orders/17-A") + "10 shut kept\n"
    found = judge(tmp_path, one, rows=[order(17, "1.0.0")], servers=False)
    assert found == ["Above Max 16: orders/A 17-17 (seat 1) (1)"]


def test_a_row_that_nobody_noted_is_of_a_range_of_its_process(tmp_path):
    two = "7 open \n8 making Order 2.0.0\n"
    found = judge(tmp_path, ROLLED_BACK, two, rows=[order(1, "2.0.0")], servers=False)
    expect(found, "Numbers of no range of their process")


@pytest.mark.parametrize(
    ("end", "wrong"),
    [("3 had orders/A 2-2\n", "given twice"), ("3 had orders/A 17-17\n", "no range")],
)
def test_numbers_of_refused_rows_are_given(tmp_path, end, wrong):
    one = RANGE + "3 given orders/A 2-3\n" + end
    expect(judge(tmp_path, one, ""), wrong)


@pytest.mark.parametrize(
    ("counts", "servers", "wrong"),
    [
        ({"left": 1}, False, "No object that was saved again kept its id."),
        ({"kept": 1}, False, "No object was refused"),
        ({"kept": 1, "left": 1}, True, "1 objects were not saved again."),
        ({"kept": 1, "reborn": 1}, True, "1 objects that were saved again got another"),
    ],
)
def test_a_run_must_save_objects_again(counts, servers, wrong):
    again = Counter({(word, "Item"): count for word, count in counts.items()})
    again["kept", "Plain"] = again["reborn", "Plain"] = again["left", "Plain"] = 1
    expect(check_saved_again(Evidence(again=again), servers=servers), wrong)


@pytest.mark.parametrize(
    ("numbers", "letters", "wrong"),
    [((1, 3), 3, "Gaps"), ((1, 2), 3, "Gaps"), ((2,), 1, "Gaps")],
)
def test_gapless_ids_have_no_gap(tmp_path, numbers, letters, wrong):
    rows = [("Letter", f"letters/{number}", f"1.0.{number}") for number in numbers]
    born = "".join(f"4 born {' '.join(row)}\n" for row in rows)
    journal = f"3 open \n{born}5 shut kept\n"
    expect(judge(tmp_path, journal, rows=rows, letters=letters), wrong)


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
