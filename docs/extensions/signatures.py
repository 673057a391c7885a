"""Signatures of classes that Django's `deconstructible` has given a ``__new__``.

Sources are such classes: what they take is what their ``__init__`` takes.
"""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature


def of_init(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    return_annotation: str | None,
) -> tuple[str, None] | None:
    """Return the signature of ``__init__`` where that of ``__new__`` tells nothing."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    found = inspect.signature(obj.__init__, eval_str=False)
    parameters = list(found.parameters.values())[1:]
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return stringify_signature(inspect.Signature(plain)), None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-signature", of_init)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
