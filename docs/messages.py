"""Compare the messages in the code with docs/reference/messages.md.

``python docs/messages.py`` prints the messages that only one of them has.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/messages.md"
# docs/reference/checks.md lists the checks by id.
ELSEWHERE = ROOT / "django_hilo/checks"

# Calls that show a text to somebody, apart from those that are raised.
SHOWN = {"warning", "exception", "warn", "add_error", "_refused", "Fault"}
ATTRIBUTES = {"default_detail", "default_error_messages"}


def in_code() -> set[str]:
    """Return the messages, with ``{name}`` or ``…`` in place of what varies."""
    files = ROOT.glob("django_hilo/**/*.py")
    modules = [Module(each) for each in files if ELSEWHERE not in each.parents]
    shown = SHOWN.union(*(module.raised() for module in modules))
    texts = {_plain(text) for module in modules for text in module.messages(shown)}
    return set(filter(_is_message, texts))


def on_page() -> set[str]:
    """Return the messages of the page: each is an item of a list."""
    items = re.findall(r"^- (`+)(.+?)\1$", PAGE.read_text(), re.MULTILINE)
    return {text.strip() for _, text in items}


class Module:
    """A module, and the values that its names and functions may have."""

    def __init__(self, path: Path) -> None:
        self.nodes = list(ast.walk(ast.parse(path.read_text())))
        self.values: dict[str, list[ast.expr | None]] = {}
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    self.values.setdefault(name, []).append(value)
                case ast.Assign(targets=[ast.Tuple(names)], value=ast.Tuple(values)):
                    for name, value in zip(names, values, strict=True):
                        self.values.setdefault(ast.unparse(name), []).append(value)
                case ast.FunctionDef(name):
                    returns = (n for n in ast.walk(node) if isinstance(n, ast.Return))
                    self.values.setdefault(name, []).extend(n.value for n in returns)

    def raised(self) -> set[str]:
        """Return the names of exceptions, and of functions that make one to raise."""
        raised = (node.exc for node in self.nodes if isinstance(node, ast.Raise))
        return {_name(each.func) for each in raised if isinstance(each, ast.Call)}

    def messages(self, shown: set[str]) -> Iterator[str]:
        for node in self.nodes:
            match node:
                case ast.Call(func) if _name(func) == "Fault":
                    yield from self.texts(node)
                case ast.Call(func, args) if _name(func) in shown | {"cls"}:
                    for each in args:
                        yield from self.texts(each)
                case ast.Call(ast.Name("_report"), [*_, level, ast.Name() as text]):
                    if ast.unparse(level) in ("messages.ERROR", "messages.WARNING"):
                        yield from self.texts(self.latest(text))
                case ast.Assign([ast.Name(name)], value) if name in ATTRIBUTES:
                    yield from self.texts(value)
                case ast.keyword("if_missing", value):
                    yield from self.texts(value)

    def latest(self, name: ast.Name) -> ast.expr | None:
        """Return the value that was assigned last above this use of a name."""
        before = (each for each in self.values[name.id] if each)
        return max(
            (each for each in before if each.lineno < name.lineno),
            key=lambda each: each.lineno,
            default=None,
        )

    def texts(self, node: ast.expr | None, depth: int = 0) -> Iterator[str]:
        """Yield what an expression may be, through names, functions and ``%``."""
        parts: list[ast.expr | None] = []
        match node:
            case ast.Constant(str(text)):
                yield text
            case ast.JoinedStr(values):
                yield "".join(
                    each.value if isinstance(each, ast.Constant) else _field(each)
                    for each in values
                )
            case ast.Call(func, [message, remedy, *_]) if _name(func) == "Fault":
                pairs = zip(self.texts(message), self.texts(remedy), strict=False)
                yield from map(" ".join, pairs)
            case ast.BinOp(left):
                parts = [left]
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case ast.Dict(values=values) | ast.BoolOp(values=values):
                parts = list(values)
            case ast.List(elts=values):
                parts = list(values)
            case ast.Name(name) | ast.Call(ast.Name(name)) if name in self.values:
                parts = self.values[name] if depth < 4 else []
                depth += 1
            case ast.Call(args=args):
                parts = list(args)
        for part in parts:
            yield from self.texts(part, depth)


def _is_message(text: str) -> bool:
    """Whether a text is more than a part of a message, or a name."""
    is_sentence = text[-1:] in (".", ")") or re.search("[a-z}]: |[.:] [A-Z{…]|…", text)
    return bool(is_sentence) and len(text.split()) > 2


def _plain(text: str) -> str:
    """Return a text with one kind of placeholders, in one line."""
    named = re.sub(r"%\((\w+)\)[rsd]", r"{\1}", text)
    return " ".join(re.sub("%[rsdg]", "…", named).split())


def _name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _field(node: ast.expr) -> str:
    """Return the placeholder of a name, or of one that a function makes readable."""
    match node:
        case (
            ast.FormattedValue(value)
            | ast.Call(ast.Name("shown" | "str" | "sorted"), [value])
            | ast.Call(ast.Attribute(value, "strip"), [])
            | ast.Call(ast.Attribute(attr="join"), [value])
        ):
            return _field(value)
        case ast.Name(name) | ast.Attribute(attr=name) if not name.startswith("__"):
            return f"{{{name.strip('_')}}}"
    return "…"


if __name__ == "__main__":
    code, page = in_code(), on_page()
    for text in sorted(code ^ page):
        print("only in the code:" if text in code else "only on the page:", text)
    raise SystemExit(code != page)
