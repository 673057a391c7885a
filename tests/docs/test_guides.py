"""The guides do what they say: each is followed as it stands on its page."""

import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain
from threading import Thread
from typing import Any

import pytest

from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.pages import Follower, fences, page
from tests.support.programs import require
from tests.support.projects import database, project_in

MODELS = """
    from django.db import models
    from django_hilo.fields import HiLoField
    from django_hilo.managers import HiLoManager


    class Order(models.Model):
        id = HiLoField(primary_key=True)
        objects = HiLoManager()


    class OrderLine(models.Model):
        id = HiLoField(primary_key=True)
        order = models.ForeignKey(Order, models.CASCADE)
        objects = HiLoManager()
"""


@pytest.fixture
def follower(tmp_path, transactional_db) -> Iterator[Follower]:
    with project_in(tmp_path) as plain:
        yield Follower(tmp_path, plain.database)


@pytest.mark.parametrize("name", ["how-to/new-project.md", "how-to/rest.md"])
def test_a_page_that_makes_its_models(follower, name):
    if "$ curl" in page(name).read_text() and shutil.which("curl") is None:
        require("Not installed: curl")
    follower.follow(page(name))


def test_transactions_and_gaps(follower):
    follower.write("shop/models.py", MODELS)
    follower.manage("makemigrations", "shop")
    follower.manage("migrate")
    follower.follow(page("explanation/transactions.md"))


class Stub(BaseHTTPRequestHandler):
    """Answers by a list: a status with Retry-After or without, or not at all."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, wait = self.server.answers.pop(0)
        if status is None:
            return
        body = b'{"low": 1, "high": 2}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if wait is not None:
            self.send_header("Retry-After", wait)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def test_the_client_asks_again_where_that_helps():
    (code,) = [
        fence.text
        for fence in fences(page("how-to/rest.md"))
        if fence.file == "hilo_client.py"
    ]
    read: dict[str, Any] = {}
    exec(code, read)
    server = HTTPServer(("127.0.0.1", 0), Stub)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    ask = partial(read["HiLoClient"](address, "token").post, "somewhere", {})
    try:
        server.answers = [(503, "0"), (None, None), (429, "0"), (201, None)]
        assert ask() == {"low": 1, "high": 2}
        for status in 400, 409, 503:
            server.answers = [(status, None), (201, None)]
            with pytest.raises(RuntimeError, match=str(status)):
                ask()
            assert len(server.answers) == 1
        server.answers = [(503, "1000")]
        with pytest.raises(RuntimeError, match="No response"):
            ask()
    finally:
        server.shutdown()
        server.server_close()


def test_several_databases(tmp_path, transactional_db):
    with project_in(tmp_path) as plain, database("hilo_eu") as name:
        home = plain.database
        eu = str(tmp_path / "eu.sqlite3") if CHOSEN == "sqlite" else name
        places = {"default": home, "eu": eu}
        follower = Follower(tmp_path, home, places)
        follower.follow(page("how-to/several-databases.md"))


def test_what_shows_that_ids_are_unique():
    """Each step of the page names tests, and they are there."""
    text = page("explanation/uniqueness.md").read_text()
    steps = re.split(r"^\*\*\d+\. ", text, flags=re.MULTILINE)[1:]
    named = [re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)+)`", step) for step in steps]
    assert len(steps) == 10
    assert all(named)
    for file, names in chain.from_iterable(named):
        source = (PROJECT / file).read_text()
        *classes, test = names.removeprefix("::").split("::")
        for name in classes:
            assert f"\nclass {name}" in source, names
            source = source.split(f"\nclass {name}")[1].split("\nclass ")[0]
        assert f"def {test}(" in source, names


def test_figures_of_the_comparison_are_those_of_the_benchmarks():
    """After `make bench` the page and README have to be read again."""
    measured = page("explanation/benchmarks.md").read_text()
    results = page("explanation/benchmarks/results.json").read_text()
    for median in re.findall(r'"median": ([\d.]+)', results):
        measured += f" {float(median):.1f}"
    pages = page("explanation/comparison.md"), PROJECT / "README.md"
    text = "".join(each.read_text() for each in pages)
    figures = re.findall(r"([\d.,]+)(?: (?:ns|us|ms|MB|rows/s)|x|%)(?!\w)", text)
    assert len(figures) > 12
    for figure in figures:
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d])", measured), figure
