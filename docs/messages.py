"""Compare docs/reference/messages.md with the code.

``python docs/messages.py`` prints the messages of the page that the code lacks, and
the warnings and errors of the log that the page lacks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/messages.md"
LEVELS = {"warning", "error", "exception", "critical"}


def faults() -> list[str]:
    """Return what the page and the code do not share."""
    items = re.findall(r"^- `(.+)`$", PAGE.read_text(), re.MULTILINE)
    trees = [ast.parse(file.read_text()) for file in ROOT.glob("django_hilo/**/*.py")]
    known = {text for tree in trees for text in texts(tree)}
    logged = {text for tree in trees for text in texts_logged(tree)}
    return [
        *(f"Not in the code: {item}" for item in items if not found(item, known)),
        *(
            f"Not on the page: {text}"
            for text in sorted(logged)
            if not any(found(item, {text}) for item in items)
        ),
    ]


def found(item: str, known: set[str]) -> bool:
    """Whether an item is a text, or the beginning of one if it ends in ``…``."""
    start = item.removesuffix("…") if item.endswith(" …") else None
    return item in known or (
        start is not None and any(text.startswith(start) for text in known)
    )


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings below a node, with ``…`` in place of what varies."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str(text)):
                text = re.sub(r"%(\(\w+\))?[rsdg]", "…", text)
            case ast.JoinedStr(parts):
                text = "".join(_part(part) for part in parts)
            case _:
                continue
        yield " ".join(text.split())


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


def texts_logged(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of the log from WARNING, or from a level that varies."""
    for block in ast.walk(tree):
        if not isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(block):
            match node:
                case ast.Call(ast.Attribute(ast.Name("logger"), "log"), [_, text, *_]):
                    yield from texts(_assigned(text, block))
                case ast.Call(ast.Attribute(ast.Name("logger"), level), [text, *_]):
                    if level in LEVELS:
                        yield from texts(_assigned(text, block))


def _assigned(text: ast.expr, block: ast.AST) -> ast.AST:
    """Return what a name was set to in a function, or the text itself."""
    for node in ast.walk(block):
        match node:
            case ast.Assign([ast.Name() as name], value):
                if ast.unparse(name) == ast.unparse(text):
                    return value
    return text


if __name__ == "__main__":
    print(*faults(), sep="\n")
    raise SystemExit(bool(faults()))
