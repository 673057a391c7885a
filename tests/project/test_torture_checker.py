"""`make torture` sees each kind of wrong: a check that cannot fail is none."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.long.torture.checker import check, check_saved_again
from tests.long.torture.evidence import Evidence, Row, collect
from tests.long.torture.plan import plan_of
from tests.long.torture.stored import Stored
from tests.long.torture.supervisor import LEAST_GIVEN, PROCESSES, Course

RANGE = "1 reserving \n2 range orders/A 1 8 free\n"
LATER = "1 reserving \n3 range orders/A 9 16 free\n"
BOUND = "1 open \n2 reserving \n3 range orders/A 1 8 bound\n"
AGAIN = "6 reserving \n7 range orders/A 1 16 free\n"
LOST = BOUND + "4 given orders/A 1-2\n5 shut undone\n"
BORN = "3 open \n4 making Order 1.0.0\n5 born Order orders/1-A 1.0.0\n"
ROLLED_BACK = BOUND + BORN.partition("\n")[2] + "6 shut undone\n"
KEPT = "7 open \n8 making Order 1.0.0\n9 kept Order orders/1-A 1.0.0\n10 shut kept\n"
REBORN = "7 open \n8 reborn Order orders/3-A 1.0.0\n9 shut kept\n"
OTHERS = AGAIN + "8 given orders/A 1-3\n"
CHOSEN = (
    "1 choosing 5\n2 making Plain 1.0.0\n3 open \n3 open \n"
    "4 chosen plain-things/5-A 1.0.0\n5 shut kept\n6 shut "
)
NEXT = "7 reserving \n9 range plain-things/A 1 16 free\n"


def order(number: int, name: str = "1.0.0") -> Row:
    return "Order", f"orders/{number}-A", name


CHOSEN_ROW = [("Plain", "plain-things/5-A", "1.0.0")]
LETTERS = [("Letter", f"letters/{n}", f"1.0.{n}") for n in (1, 3)]
LETTERS_BORN = "".join(f"4 born {' '.join(row)}\n" for row in LETTERS)


def judge(
    folder: Path,
    journals: Sequence[str],
    rows: Sequence[Row] = (),
    servers: bool = True,
) -> list[str]:
    """Judge processes that left one journal each, seats 1, 2 ...; return the wrongs."""
    for seat, text in enumerate(journals, start=1):
        (folder / f"{seat:04}-1-1.log").write_text(text)
    stored = Stored(list(rows), {"orders/A": 16, "plain-things/A": 16}, {"letters": 3})
    return check(collect(folder), stored, servers=servers).failures


def test_a_clean_run_is_one(tmp_path):
    one = RANGE + (
        "3 given orders/A 1-3\n4 open \n5 making Order 1.0.0\n"
        "6 born Order orders/4-A 1.0.0\n7 shut kept\n8 ended normally\n"
    )
    letters = f"3 open \n{LETTERS_BORN}4 born Letter letters/2 1.0.2\n5 shut kept\n"
    journals = one, LATER + "4 given orders/A 9-16\n5 ended _exit\n", letters
    rows = [order(4), *LETTERS, ("Letter", "letters/2", "1.0.2")]
    assert judge(tmp_path, journals, rows) == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("4 given orders/A 1-4\n5 given orders/A 2-3", "Numbers given twice"),
        ("4 given orders/A 1-1\n5 had orders/A 1-1", "Numbers given twice"),
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
    assert any(wrong in each for each in judge(tmp_path, [RANGE + line + "\n"]))


@pytest.mark.parametrize(
    ("journals", "rows", "wrong"),
    [
        # Only what went back may come again.
        (
            [
                RANGE + "4 returning orders/A 8 3\n5 refused \n",
                "8 reserving \n9 range orders/A 4 16 free\n",
            ],
            [],
            "Ranges overlap",
        ),
        ([CHOSEN + "kept\n", NEXT], CHOSEN_ROW, "was chosen, and in the later range"),
        # Its process knows the number, whatever became of the transaction.
        ([CHOSEN + "unknown\n" + NEXT], CHOSEN_ROW, "in the later range"),
        (
            [
                "0 reserving \n0 range plain-things/A 1 16 free\n" + CHOSEN + "kept\n"
                "7 step next_id\n8 given plain-things/A 5-5\n"
            ],
            CHOSEN_ROW,
            "Seat 1 chose 5, and then gave it.",
        ),
        ([RANGE + BORN + "6 shut kept\n"], [], "Committed, but not in the table"),
        (
            [RANGE + BORN + "6 shut kept\n"],
            [order(1), order(2, "x")],
            "of no committed",
        ),
        ([RANGE + BORN + "6 shut undone\n"], [order(1)], "Rolled back, but in the"),
        (
            [
                RANGE + BORN + "6 making Order 1.0.1\n"
                "7 born Order orders/2-A 1.0.1\n8 shut unknown\n"
            ],
            [order(1)],
            "Torn",
        ),
        ([f"3 open \n{LETTERS_BORN}5 shut kept\n"], LETTERS, "Gaps"),
    ],
)
def test_a_run_that_must_not_be(tmp_path, journals, rows, wrong):
    assert any(wrong in each for each in judge(tmp_path, journals, rows))


@pytest.mark.parametrize(
    ("journals", "rows", "wrong"),
    [
        # One that was kept, one of the transaction itself, one after its block.
        ([BOUND + "4 given orders/A 1-2\n5 shut kept\n", OTHERS], [], "given twice"),
        ([LOST.replace("1-2\n", "1-2\n4 given orders/A 2-2\n")], [], "given twice"),
        (
            [f"0 open \n{LOST}6 given orders/A 3-3\n7 shut kept\n"],
            [],
            "ranges that had rolled back",
        ),
        # A process never gives a number again that was rolled back.
        ([LOST + AGAIN + "8 given orders/A 2-2\n"], [], "given twice: orders/A 2-2"),
        ([LOST + AGAIN + "8 lent orders/A 1-2\n9 given orders/A 2-2\n"], [], "twice"),
        # Objects that are saved again.
        ([ROLLED_BACK + KEPT, OTHERS], [order(1)], "kept that others"),
        ([ROLLED_BACK + AGAIN + KEPT], [order(1, "x")], "Committed, but not in"),
        ([ROLLED_BACK + AGAIN + REBORN], [order(1), order(3)], "One object, two rows"),
        (
            [(ROLLED_BACK + KEPT).replace("1 8", "1 20").replace("s/1-A", "s/17-A")],
            [order(17)],
            "Above Max 16: orders/A 17-17 (seat 1) (1)",
        ),
        # A row that nobody noted.
        (
            [ROLLED_BACK, "7 open \n8 making Order 2.0.0\n"],
            [order(1, "2.0.0")],
            "Numbers of no range of their process",
        ),
    ],
)
def test_sqlite_may_repeat_no_more_than_what_rolled_back_with_its_range(
    tmp_path, journals, rows, wrong
):
    found = judge(tmp_path, journals, rows, servers=False)
    assert any(wrong in each for each in found), found


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
    found = check_saved_again(Evidence(again=again), servers=servers)
    assert any(wrong in each for each in found)


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
