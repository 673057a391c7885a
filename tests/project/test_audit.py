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


def test_a_vulnerability_fails(answers, capsys):
    answers(SOUND, WRONG)
    assert audit.main() == 1
    assert "old 1: PYSEC-1, CVE-2" in capsys.readouterr().out


def test_what_nobody_knows_is_told_and_does_not_fail(answers, capsys):
    answers(SKIPPED)
    assert audit.main() == 0
    out = capsys.readouterr().out
    assert "0 packages asked about" in out
    assert "NOT KNOWN to the service, so nothing is known: django" in out


def test_a_service_that_is_away_is_told_and_does_not_fail(answers, capsys):
    answers(text="")
    assert audit.main() == 0
    assert "nobody answered. no route to host" in capsys.readouterr().out


def test_all_is_well(answers, capsys):
    answers(SOUND)
    assert audit.main() == 0
    assert "1 packages asked about, 0 vulnerable" in capsys.readouterr().out


def test_each_file_of_pinned_packages_is_asked_about():
    assert {file.name for file in audit.PINNED} >= {"example.txt", "test.txt"}
