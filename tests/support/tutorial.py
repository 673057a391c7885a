"""A page that one can follow, followed: its files written, its commands run.

What a page shows is what must be printed, but for lines ``...``, which stand for any
lines, times, and the address of a server. A command without output may print anything.
"""

import doctest
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.support import warm
from tests.support.commands import at_a_terminal
from tests.support.patience import PATIENCE
from tests.support.servers import runserver

ADDRESS = "http://127.0.0.1:8000"
# The environment is the caller's; the rest of such a block is run.
SETS_UP = ("python -m venv ", ". .venv/", "python -m pip install ")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_URL = re.compile(re.escape(ADDRESS) + r"[\w/?=&.-]*")
_TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(?<=in )[\d.]+(?=s\b)")

# Runs in `manage.py shell`: blocks of a session come as lines of JSON, and what is
# wrong with each goes back.
_SESSION = """
import doctest, json, sys
names = {}
for line in sys.stdin:
    test = doctest.DocTestParser().get_doctest(json.loads(line), names, "page", None, 0)
    wrong = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=wrong.append, clear_globs=False)
    names = test.globs
    print(json.dumps("".join(wrong)), flush=True)
"""


class Block(NamedTuple):
    """A fence of a page, and the text up to the next one."""

    line: int
    language: str
    text: str
    after: str


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the fences of a page in their order."""
    found = list(_BLOCK.finditer(page))
    ends = [block.start() for block in found[1:]] + [len(page)]
    for block, end in zip(found, ends, strict=True):
        line = page[: block.start()].count("\n") + 1
        yield Block(line, block[1], block[2], page[block.end() : end])


class Reader:
    """Follows a page in a folder, as somebody with two terminals would."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        # Pages show what a terminal shows: both streams in the order of their lines.
        self.environment = {**environment, "PYTHONUNBUFFERED": "1"}
        self.port: int | None = None
        self.shell: warm.Popen | None = None
        self.server = ExitStack()
        self.answer = ""

    def follow(self, page: str) -> int:
        """Do what each fence says; return how many there were."""
        done = 0
        try:
            for block in blocks_of(page):
                try:
                    getattr(self, f"_{block.language}")(block.text)
                    if self.port:
                        self._visit(block.after)
                except AssertionError as error:
                    raise AssertionError(f"line {block.line}: {error}") from error
                done += 1
        finally:
            self._leave()
        return done

    def _python(self, text: str) -> None:
        first, _, rest = text.partition("\n")
        named = re.fullmatch(r"# ([\w/]+\.py)(, at the end)?", first)
        assert named, f"names no file: {first}"
        file = self.folder / named[1]
        assert file.parent.is_dir(), f"there is no folder for {named[1]}"
        self._stop_server()
        file.write_text(file.read_text() + rest if named[2] else text)

    def _console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            variable = re.fullmatch(r"export (\w+)=(\S+)", command)
            if command == "python manage.py shell":
                self._open_shell()
            elif command == "python manage.py runserver":
                self._stop_server()
                server = runserver(self.folder, self.environment)
                self.port = self.server.enter_context(server)
            elif variable:
                self.environment[variable[1]] = variable[2]
            elif not command.startswith(SETS_UP):
                self._run(command, shown)

    def _run(self, command: str, shown: str) -> None:
        printed = at_a_terminal(command, self.folder, self.environment)
        assert not shown or matches(shown, printed), (
            f"$ {command}\nis said to print\n{shown}\nand prints\n{printed}"
        )

    def _open_shell(self) -> None:
        assert self.shell is None, "the last shell was not left with exit()"
        self.shell = warm.Popen(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", _SESSION],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _pycon(self, text: str) -> None:
        assert self.shell, "no shell is open"
        is_last = text.endswith(">>> exit()\n")
        print(
            json.dumps(text.removesuffix(">>> exit()\n")),
            file=self.shell.stdin,
            flush=True,
        )
        wrong = json.loads(self.shell.stdout.readline())
        assert not wrong, wrong
        assert doctest.DocTestParser().get_examples(text), "has no >>>"
        if is_last:
            self.shell.communicate(timeout=PATIENCE)
            assert self.shell.returncode == 0
            self.shell = None

    def _visit(self, text: str) -> None:
        for url in _URL.findall(text):
            self.answer = self._get(url)

    def _get(self, url: str) -> str:
        here = url.replace(ADDRESS, f"http://127.0.0.1:{self.port}")
        with urllib.request.urlopen(here, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def _json(self, text: str) -> None:
        assert json.loads(text) == json.loads(self.answer), self.answer

    def _stop_server(self) -> None:
        self.server.close()
        self.port = None

    def _leave(self) -> None:
        self._stop_server()
        if self.shell:
            self.shell.kill()
            self.shell.communicate()
            self.shell = None


def matches(shown: str, printed: str) -> bool:
    """Whether a text is what was printed; a line ``...`` stands for any lines."""
    parts = re.split(r"^\.\.\.\n", _TIMES.sub("TIME", shown), flags=re.MULTILINE)
    pattern = "(?:.*\n)*?".join(map(re.escape, parts))
    return re.fullmatch(pattern, _TIMES.sub("TIME", printed)) is not None
