"""Fill in what the package index shows: README.md and the project's URLs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURES = (".png", ".svg")


class HomeLinks(MetadataHookInterface):
    """Make the relative links of README.md lead to the tagged version at `home`.

    Without a home they stay relative, and the package has no URLs.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        home, version = self.config["home"].rstrip("/"), metadata["version"]

        def at_home(path: str) -> str:
            kind = "raw" if path.endswith(PICTURES) else "blob"
            return f"{home}/{kind}/{version}/{path}"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        urls = {}
        if home:
            relative = r"(?<=\]\()(?!https?:|#)[^)\s]+(?=\))"
            text = re.sub(relative, lambda found: at_home(found[0]), text)
            urls = {
                "Homepage": home,
                "Documentation": at_home("docs/index.md"),
                "Changelog": at_home("CHANGELOG.md"),
                "Issues": f"{home}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls
