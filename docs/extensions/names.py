"""`names` in docstrings link to what they name, wherever it is in the reference.

Docstrings name things as code does that imports them: `reserve`, `DocumentId`. A name
that two things have, and one of Django's, stays as it is written.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGE = "django_hilo."


def find(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.TextElement
) -> nodes.Element | None:
    """Resolve a name by its end; raise no warning for names of other packages."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removesuffix("()")
    objects = env.domains.python_domain.objects
    found = [name for name in objects if name.endswith(f".{target}")]
    if len(found) == 1:
        docname, node_id = objects[found[0]].docname, objects[found[0]].node_id
        return make_refnode(
            app.builder, node["refdoc"], docname, node_id, content, found[0]
        )
    is_ours = node["reftarget"].startswith(PACKAGE)
    return None if is_ours else content


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("missing-reference", find)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
