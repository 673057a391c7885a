"""A page has one title: what else begins with one ``#`` is a section of it.

Without this each of them would stand in the contents as a page.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class OneTitle(SphinxTransform):
    """Move the further sections of a page into its first one."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        first, *others = [
            child for child in self.document if isinstance(child, nodes.section)
        ] or [None]
        for section in others:
            self.document.remove(section)
            first.append(section)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(OneTitle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
