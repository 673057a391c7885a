"""The directive ``folder``: a toctree of all pages of a folder, some of them first.

A new page is thereby in the contents at once. Pages of ``:without:``, and those of
folders there (``api/``), have their place elsewhere.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree


class Folder(TocTree):
    """List the pages of its argument: those of its content, as they stand, first."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        **TocTree.option_spec,
        "without": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        start = f"{self.arguments[0]}/"
        left_out = [
            f"{start}{name}" for name in self.options.get("without", "").split()
        ]
        folders = tuple(name for name in left_out if name.endswith("/"))
        wanted = [f"{start}{name.strip()}" for name in self.content]
        first = [name for name in wanted if name in self.env.found_docs]
        others = sorted(
            name
            for name in self.env.found_docs
            if name.startswith(start)
            and name not in [*first, *left_out]
            and not name.startswith(folders)
        )
        pages = [f"/{name}" for name in first + others]
        if not pages:
            return []
        self.content = StringList(pages, source=self.env.docname)
        # Read again when pages come and go.
        self.options["glob"] = None
        return super().run()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("folder", Folder)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
