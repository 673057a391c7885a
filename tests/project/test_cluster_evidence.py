"""`make cluster` sees each kind of wrong: a check that cannot fail is none."""

import pytest

from tests.long.cluster.evidence import collect

FIRST = ["range orders/A 1 8", "given orders/1-A", "given orders/3-A"]
SECOND = ["range orders/A 9 16", "given orders/9-A", "stood orders/9-A"]


@pytest.fixture
def judge(tmp_path):
    """Judge the journals of workers, one each."""

    def judge(*journals: list[str]) -> None:
        for seat, lines in enumerate(journals):
            text = "".join(f"{at} {line}\n" for at, line in enumerate(lines))
            (tmp_path / f"{seat:04}-1-main.log").write_text(text)
        collect(tmp_path).assert_nothing_twice()

    return judge


def test_a_clean_run_is_one(judge):
    judge(FIRST, SECOND)


def test_what_a_worker_gave_up_may_come_again(judge):
    judge([*FIRST, "emptied "], ["range orders/A 4 11", "given orders/4-A"])


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("given orders/3-A", "Given more than once: ['orders/3-A']"),
        ("range orders/A 8 8", "Ranges that overlap"),
        ("refused orders/8-A", "Refused by the table: ['orders/8-A']"),
        ("given orders/4-A", "Not over what the process had before"),
        ("failed Traceback", "What must not happen"),
    ],
)
def test_a_wrong_is_found(judge, line, wrong):
    with pytest.raises(AssertionError) as error:
        judge(FIRST, [*SECOND, line])
    assert wrong in str(error.value)
