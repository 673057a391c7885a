"""What `make audit` makes of the answers of the advisory service."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.project import audit

SOUND = {"name": "rich", "version": "15.0.0", "vulns": []}
WRONG = {"name": "old", "version": "1", "vulns": [{"id": "PYSEC-1"}, {"id": "CVE-2"}]}
SKIPPED = {"name": "django", "skip_reason": "Dependency not found"}


@pytest.fixture
def answers(monkeypatch, tmp_path):
    def answer(*packages, text=None):
        printed = json.dumps({"dependencies": packages}) if text is None else text

        def run(*arguments, **named):
            return subprocess.CompletedProcess([], 1, printed, "no route to host")

        (tmp_path / "test.txt").touch()
        monkeypatch.setattr(audit, "PINNED", [tmp_path / "test.txt"])
        monkeypatch.setattr(subprocess, "run", run)

    return answer


@pytest.mark.parametrize(
    ("packages", "text", "code", "said"),
    [
        ([SOUND, WRONG], None, 1, "old 1: PYSEC-1, CVE-2"),
        ([SKIPPED], None, 0, "so nothing is known: django"),
        ([], "", 0, "nobody answered. no route to host"),
        ([SOUND], None, 0, "1 packages asked about, 0 vulnerable"),
    ],
)
def test_a_vulnerability_fails_and_nothing_else(
    answers, capsys, packages, text, code, said
):
    answers(*packages, text=text)
    assert audit.main() == code
    assert said in capsys.readouterr().out


def test_each_file_of_pinned_packages_is_asked_about():
    assert {file.name for file in audit.PINNED} >= {"example.txt", "test.txt"}
