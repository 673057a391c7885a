"""README as the package index shows it."""

import re
import tomllib

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from readme_renderer.markdown import render

from django_hilo import __version__
from tests.support.commands import PROJECT

HOME = "https://forge.example/hilo"
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
HAS_HOME = bool(PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"])


def built(home):
    """Return what a build reads from pyproject.toml with this home."""
    config = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    config["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"] = home
    return ProjectMetadata(str(PROJECT), PluginManager(), config).core


def headings(page):
    return re.findall(r' id="user-content-([^"]+)"', page)


@pytest.mark.parametrize("home", ["", HOME])
def test_each_link_leads_somewhere(home):
    package = built(home)
    page = render(package.readme)
    links = re.findall(r'(?:href|src)="([^#][^"]*)"', page)
    assert len(links) > 15
    urls = [package.urls[name] for name in ("Documentation", "Changelog") if home]
    for link in links + urls:
        place, _, heading = link.partition("#")
        kind = "raw" if place.endswith(".png") else "blob"
        start = f"{home}/{kind}/{__version__}/" if home else ""
        assert place.startswith(start)
        file = PROJECT / place.removeprefix(start)
        assert file.is_file(), link
        assert not heading or heading in headings(render(file.read_text())), link


def test_without_a_home_there_are_no_urls():
    assert built("").urls == {}
    assert built(HOME).urls["Homepage"] == HOME


def test_tables_pictures_and_code_are_shown():
    page = render(built(HOME).readme)
    assert page.count("<table>") == 2
    assert f'<img src="{HOME}/raw/' in page
    assert '<pre lang="pycon"><span class="gp">&gt;&gt;&gt; </span>' in page


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/tutorial.md"])
def test_what_a_page_installs_is_there(name):
    """Without a home there is no release: pages install a checkout."""
    first = re.search("pip install (\\S+)", (PROJECT / name).read_text())
    checkout = "." if name == "README.md" else "../django-hilo"
    assert first and first[1] == ("django-hilo" if HAS_HOME else checkout)
