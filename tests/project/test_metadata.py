"""What the package says of itself is what is tested and pinned."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
CLASSIFIERS = PYPROJECT["project"]["classifiers"]
GROUPS = PYPROJECT["dependency-groups"]


def versions(start: str) -> set[str]:
    found = (text.removeprefix(start) for text in CLASSIFIERS if text.startswith(start))
    return {version for version in found if re.fullmatch(r"\d+\.\d+", version)}


def name_of(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name
    return name[0].lower().replace("_", "-")


def packages(group: str) -> set[str]:
    found: set[str] = set()
    for each in GROUPS[group]:
        if isinstance(each, dict):
            found |= packages(each["include-group"])
        else:
            found.add(name_of(each))
    return found


def pinned(file: Path) -> set[str]:
    """Return the packages of a file, which have versions and hashes, and no address."""
    text = file.read_text()
    assert "//" not in text
    found: set[str] = set()
    for entry in re.findall(r"^[^#\s].*(?:\n .*)*", text, re.MULTILINE):
        if entry.startswith("-r "):
            found |= pinned(file.parent / entry[3:])
        else:
            assert re.match(r"[^=]+==\S+( ;.*)? \\\n +--hash=sha256:", entry), entry
            found.add(name_of(entry))
    return found


def test_the_classifiers_are_the_tested_versions():
    makefile = (PROJECT / "Makefile").read_text()
    matrix = re.search(r"^MATRIX := (.*)$", makefile, re.MULTILINE)
    assert matrix
    tested = [pair.split(":") for pair in matrix[1].split()]
    assert versions("Framework :: Django :: ") == {django for django, _ in tested}
    pythons = {python for _, python in tested}
    assert versions("Programming Language :: Python :: ") == pythons


def test_the_night_tests_each_pair():
    makefile = (PROJECT / "Makefile").read_text()
    nightly = (PROJECT / ".ci/nightly").read_text()
    matrix = re.search(r"^MATRIX := (.*)$", makefile, re.MULTILINE)
    others = re.search(r'^others="(.*)"$', nightly, re.MULTILINE)
    assert matrix and others
    # Other steps of it run everything on the first.
    assert matrix[1].split()[1:] == others[1].split()


@pytest.mark.parametrize(
    ("page", "start"),
    [("README.md", r"\| Django, Python \|"), ("docs/index.md", "Tested with")],
)
def test_the_first_pages_name_them(page, start):
    line = re.search(f"^{start}.*$", (PROJECT / page).read_text(), re.MULTILINE)
    assert line
    assert set(re.findall(r"\d+\.\d+", line[0])) == {
        *versions("Framework :: Django :: "),
        *versions("Programming Language :: Python :: "),
    }


def test_the_lowest_versions_are_tested():
    lowest = min(versions("Programming Language :: Python :: "))
    assert PYPROJECT["project"]["requires-python"] == f">={lowest}"
    lowest = min(versions("Framework :: Django :: "))
    assert PYPROJECT["project"]["dependencies"] == [f"django>={lowest}"]


def test_what_groups_name_is_pinned():
    files = {file.stem: pinned(file) for file in (PROJECT / "requirements").iterdir()}
    assert files.keys() == GROUPS.keys()
    assert all(packages(group) <= files[group] for group in GROUPS)
