"""For packages that need other versions; test_projects.py installs them."""

from tests.settings import *  # noqa: F403
