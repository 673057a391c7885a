"""The tutorial, followed word by word, in an empty folder.

This interpreter and a path to the checkout stand in for the virtual environment and
``pip install``: what a page installs is not looked at.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.tutorial import Reader, blocks_of

pytestmark = pytest.mark.skipif(
    CHOSEN != "sqlite", reason="The tutorial brings its own database: tested once."
)

PAGE = (PROJECT / "docs/tutorial.md").read_text()
COMMANDS = (PROJECT / "docs/reference/commands.md").read_text()


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """Somebody with an empty folder."""
    ours = ("DJANGO_SETTINGS_MODULE", "DJANGO_SUPERUSER_PASSWORD")
    environment = {name: v for name, v in os.environ.items() if name not in ours}
    environment["PYTHONPATH"] = str(PROJECT)
    bin = Path(sys.executable).parent
    environment["PATH"] = f"{bin}{os.pathsep}{environment['PATH']}"
    return Reader(tmp_path, environment)


def test_the_tutorial_prints_what_it_says(reader):
    assert reader.follow(PAGE) == len(list(blocks_of(PAGE))) > 20
    # Which goes on where the tutorial ends.
    assert reader.follow(COMMANDS) == len(list(blocks_of(COMMANDS))) > 3


def test_what_is_wrong_is_found(reader):
    beginning = PAGE.partition("## Use a second process")[0]
    right, wrong = "'orders/2-A'", "'orders/3-A'"
    assert right in beginning
    with pytest.raises(AssertionError, match=r"^line \d+: "):
        reader.follow(beginning.replace(right, wrong, 1))
