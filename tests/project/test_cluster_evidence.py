"""`make cluster` sees each kind of wrong: a check that cannot fail is none."""

from pathlib import Path

import pytest

from tests.long.cluster.evidence import Evidence, collect
from tests.long.cluster.patroni.lost import Lost, assert_nothing_else_twice

FIRST = ["range orders/A 1 8", "given orders/1-A", "given orders/3-A"]
SECOND = ["range orders/A 9 16", "given orders/9-A", "stood orders/9-A"]


def journals_of(folder: Path, *journals: list[str]) -> Evidence:
    """Return what the journals of workers say, one each."""
    folder.mkdir(exist_ok=True)
    for seat, lines in enumerate(journals):
        text = "".join(f"{at} {line}\n" for at, line in enumerate(lines))
        (folder / f"{seat:04}-1-main.log").write_text(text)
    return collect(folder)


@pytest.fixture
def judge(tmp_path):
    """Judge the journals of workers, one each."""

    def judge(*journals: list[str]) -> None:
        journals_of(tmp_path, *journals).assert_nothing_twice()

    return judge


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


class TestAFailoverThatMayLoseNumbers:
    """Those above 3: a standby has not heard of them."""

    AFTER = "range orders/A 4 11", "given orders/4-A", "given orders/5-A"

    @pytest.fixture
    def judge(self, tmp_path):
        def judge(*journals: list[str], up_to: int = 8) -> None:
            evidence = journals_of(tmp_path, *journals)
            lost = Lost({"orders/A": 3})
            lost.end(journals_of(tmp_path / "before", [f"range orders/A 1 {up_to}"]))
            assert_nothing_else_twice(evidence, [lost])

        return judge

    @pytest.mark.parametrize(
        ("line", "wrong"),
        [
            ("given orders/3-A", "Given more than once: ['orders/3-A']"),
            ("range orders/A 3 3", "Ranges that overlap"),
        ],
    )
    def test_a_wrong_is_found(self, judge, line, wrong):
        with pytest.raises(AssertionError) as error:
            judge(FIRST, [*self.AFTER, line])
        assert wrong in str(error.value)

    def test_later_numbers_are_not_lost(self, judge):
        with pytest.raises(AssertionError, match="Given more than once"):
            judge([*FIRST, "given orders/4-A"], [*self.AFTER], up_to=3)
