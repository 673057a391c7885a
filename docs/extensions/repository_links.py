"""Links from pages to what is not in docs/, as they work on GitHub, work on the site.

README.md and the like are pages here too. Any other file gets a page that shows its
text, below ``repository/``. A folder has none: the link is its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

# What a Markdown file outside of docs/ is on the site.
PAGES = {
    "README.md": "index",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing/index",
}

_REFERENCE = "repository-file"
_files: set[str] = set()


class RepositoryLinks(SphinxTransform):
    """Find the links that lead out of docs/."""

    # Before Sphinx collects the files of download references.
    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        root = Path(self.env.srcdir).parent
        for node in list(self.document.findall(nodes.Element)):
            path = self._path_of(node)
            if path is None:
                continue
            if path.is_dir():
                node.replace_self(node.children)
                continue
            if path.is_relative_to(self.env.srcdir):
                continue
            name = path.relative_to(root).as_posix()
            if PAGES.get(name) in self.env.found_docs:
                # Its headings are not those of the page.
                attributes = {
                    "refdomain": "doc",
                    "reftarget": PAGES[name],
                    "reftargetid": None,
                }
            elif path.is_file():
                attributes = {"refdomain": "", "reftarget": name}
                attributes["reftype"] = _REFERENCE
            else:
                continue  # Sphinx warns of it
            node.replace_self(
                addnodes.pending_xref(
                    "", *node.children, **{**node.attributes, **attributes}
                )
            )

    def _path_of(self, node: nodes.Element) -> Path | None:
        if node.get("reftype") != "myst" or not node["reftarget"]:
            return None
        srcdir = Path(self.env.srcdir)
        target = node["reftarget"].partition("#")[0]
        if node["refdomain"] == "doc":
            return (srcdir / f"{target}.md").resolve()
        path = (srcdir / self.env.docname).parent.joinpath(target).resolve()
        # In a file that a page includes, links are those of its own folder.
        return path if path.exists() else srcdir.parent / target


def refer(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.Element
) -> nodes.reference | None:
    """Link to the page of a file, and remember to write it."""
    if node["reftype"] != _REFERENCE:
        return None
    _files.add(node["reftarget"])
    uri = app.builder.get_relative_uri(node["refdoc"], _page_of(node["reftarget"]))
    return nodes.reference("", "", *node.children, refuri=uri, internal=True)


def show_files(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that a page links to."""
    for name in sorted(_files):
        path = Path(app.srcdir).parent / name
        language = "python" if path.suffix == ".py" else "guess"
        text = app.builder.highlighter.highlight_block(
            path.read_text(), language, force=True
        )
        body = f"<h1><code>{name}</code></h1>{text}"
        yield _page_of(name), {"title": name, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(RepositoryLinks)
    app.connect("missing-reference", refer)
    app.connect("html-collect-pages", show_files)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _page_of(name: str) -> str:
    return f"repository/{name}"
