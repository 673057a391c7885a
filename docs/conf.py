"""How Sphinx builds the site: `make docs`. No page of it needs the network."""

from __future__ import annotations

import sys
from pathlib import Path

import django
from django.conf import settings

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "extensions")]

# Autodoc imports models, and the REST endpoints' serializers.
settings.configure(
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django_hilo",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()

import django_hilo  # noqa: E402 - found by the path above

project = "django-hilo"
author = "the django-hilo contributors"
project_copyright = author
version = release = django_hilo.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    # Our own, of docs/extensions.
    "diagrams",
    "folders",
    "names",
    "one_title",
    "repository_links",
    "signatures",
]
exclude_patterns = ["extensions"]
nitpicky = True
# Types in signatures that are nobody's to use.
nitpick_ignore = [
    ("py:class", "django_hilo.managers.Model"),
    ("py:class", "django_hilo.counters.source.Source"),
]

# Headings are link targets by GitHub's rule, down to ####.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# What django_hilo.metrics needs, and pages do not.
autodoc_mock_imports = ["opentelemetry", "prometheus_client"]
autodoc_member_order = "bysource"
# Of sources; migrations call it.
autodoc_default_options = {"exclude-members": "deconstruct"}
# `name` in a docstring.
default_role = "py:obj"
autodoc_type_aliases = {"AnyTarget": "Target"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"django-hilo {release}"
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static", "../build/mermaid.min.js"]
html_css_files = ["tables.css"]

# Prompts are no part of what one copies, and neither is what a command prints.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
