"""`make release`, in clones of a copy of the project."""

import hashlib
import os
import re
import shutil
import sys
from zipfile import ZipFile

import pytest

from tests.support.commands import PROJECT, run

HOME = "https://forge.example/hilo"
GIT = {
    "EMAIL": "tests@example.com",
    "GIT_AUTHOR_NAME": "Tests",
    "GIT_COMMITTER_NAME": "Tests",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
WITHOUT = (PROJECT / ".gitignore").read_text().replace("/", "").split()


def run_in(folder, *command, **options):
    """Run a command; return what it printed, its errors first."""
    done = run(*command, cwd=folder, env=os.environ | GIT, **options)
    return done.stderr + done.stdout


def commit(folder, file, pattern, new):
    path = folder / file
    text, found = re.subn(pattern, new, path.read_text(), count=1, flags=re.M)
    assert found
    path.write_text(text)
    run_in(folder, "git", "commit", "-qam", "A change")


def release(folder, version="9.8.7", **options):
    return run_in(
        folder, "tests/project/release.sh", sys.executable, version, **options
    )


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A repository of this project, ready for the release of 9.8.7."""
    folder = tmp_path_factory.mktemp("release") / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns(".git", *WITHOUT))
    run_in(folder, "git", "init", "-q")
    run_in(folder, "git", "add", ".")
    commit(folder, "django_hilo/__init__.py", r'"\d.*"', '"9.8.7"')
    commit(folder, "CHANGELOG.md", "^## ", "## 9.8.7 (2026-01-31)\n\n## ")
    commit(folder, "pyproject.toml", '^home = ".*"', f'home = "{HOME}"')
    return folder


@pytest.fixture
def clone(ready, tmp_path):
    run_in(tmp_path, "git", "clone", "-q", str(ready), "clone")
    return tmp_path / "clone"


def test_a_release(clone):
    *_, command = release(clone).splitlines()
    assert command.startswith("git push origin 9.8.7 && ")
    assert command.endswith(" -m twine upload dist/*.whl dist/*.tar.gz")
    sums = (clone / "dist/SHA256SUMS").read_text().split()
    files = {name: (clone / "dist" / name) for name in sums[1::2]}
    assert sorted(file.suffix for file in files.values()) == [".gz", ".whl"]
    made = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files.values()]
    assert made == sums[::2]
    metadata = ZipFile(clone / "dist/django_hilo-9.8.7-py3-none-any.whl").read(
        "django_hilo-9.8.7.dist-info/METADATA"
    )
    assert f"Project-URL: Homepage, {HOME}\n".encode() in metadata
    assert run_in(clone, "git", "tag", "--points-at", "HEAD") == "9.8.7\n"
    assert "the tag 9.8.7 exists" in release(clone, expect=1)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pyproject.toml", HOME, "", "home in pyproject.toml is empty"),
        ("CHANGELOG.md", "2026-01-31", "unreleased", "CHANGELOG.md does not begin"),
        ("django_hilo/__init__.py", "9.8.7", "9.8.8", "__version__ in"),
        (
            "hatch_build.py",
            ": text}",
            ': f"{object()}"}',
            "two builds of this commit differ",
        ),
    ],
)
def test_a_commit_that_is_not_ready(clone, file, old, new, said):
    commit(clone, file, old, new)
    refused(clone, said)


def test_changes_that_are_not_committed(clone):
    (clone / "new.py").touch()
    refused(clone, "commit your changes")


def refused(clone, said, **options):
    assert f"Not released: {said}" in release(clone, expect=1, **options)
    assert run_in(clone, "git", "tag") == ""
    assert not (clone / "dist").exists()
