"""Fences of mermaid, which GitHub draws; here a copy of mermaid that the site holds."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_START = '<pre class="mermaid">'


class Diagram(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        text = escape("\n".join(self.content))
        return [nodes.raw("", f"{_START}{text}</pre>", format="html")]


def add_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the three megabytes on pages that have a diagram."""
    raw = doctree.findall(nodes.raw) if doctree else ()
    if any(node.astext().startswith(_START) for node in raw):
        app.add_js_file("mermaid.min.js", loading_method="defer")
        app.add_js_file("diagrams.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("mermaid", Diagram)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True}
