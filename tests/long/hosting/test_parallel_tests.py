"""A project's own tests in several processes, each with a clone of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.hosting.conftest import need
from tests.long.hosting.sessions import counting
from tests.support.projects import Project, project_in

pytestmark = pytest.mark.django_db(transaction=True)

# Both processes are at work before either goes on: each has its clone.
TESTS = """
    import json
    import os
    import time
    from pathlib import Path

    from django.db import connection, transaction
    from django.test import TestCase, TransactionTestCase

    from shop.models import Order

    JOURNAL = Path(__file__).parent.parent / "journal"

    def note(keys):
        line = [os.getpid(), str(connection.settings_dict["NAME"]), keys]
        with (JOURNAL / str(os.getpid())).open("a") as file:
            file.write(json.dumps(line) + "\\n")
        give_up = time.monotonic() + 180
        while len(list(JOURNAL.iterdir())) < 2:
            assert time.monotonic() < give_up, "one process ran all the tests"
            time.sleep(0.01)

    def create():
        keys = [Order.objects.create().pk for _ in range(5)]
        with transaction.atomic():
            keys += [Order.objects.create().pk for _ in range(5)]
        return keys

    class InTransaction(TestCase):
        def check(self):
            note(create())
            assert Order.objects.count() == 10

        def test_first(self):
            self.check()

        def test_second(self):
            self.check()

    class InTransactionToo(InTransaction):
        pass

    class InTransactionAsWell(InTransaction):
        pass

    class Committing(TransactionTestCase):
        def test_first(self):
            note(create())

        def test_second(self):
            note(create())

    class CommittingToo(Committing):
        pass
"""


@pytest.fixture
def project(tmp_path, transactional_db) -> Iterator[Project]:
    with project_in(tmp_path) as project:
        project.write(
            "shop/models.py",
            """
            from django.db import models
            from django_hilo.fields import HiLoField

            class Order(models.Model):
                id = HiLoField(primary_key=True)
            """,
        )
        project.write("shop/tests.py", TESTS)
        project.set(
            INSTALLED_APPS=["django_hilo", "shop"],
            HILO={"NODE_TAG": "A", "CAPACITY": 4, "MAX_CAPACITY": 4},
        )
        project.manage("makemigrations", "shop")
        (tmp_path / "journal").mkdir()
        with counting(project.database):
            yield project


def check(folder: Path) -> None:
    """Each test began at the first number of a counter of its own process's clone."""
    files = list((folder / "journal").iterdir())
    lines = [
        json.loads(line) for file in files for line in file.read_text().splitlines()
    ]
    assert len(lines) == 10
    assert len({pid for pid, _, _ in lines}) == 2
    assert len({name for _, name, _ in lines}) == 2, "each has a clone"
    for _, _, keys in lines:
        assert keys == [f"orders/{n}-A" for n in range(1, 11)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_manage_py_test_parallel(project, tmp_path, method):
    output = project.run(
        f"""
        import multiprocessing
        from django.core.management import execute_from_command_line
        multiprocessing.set_start_method({method!r})
        execute_from_command_line(["manage.py", "test", "--parallel=2"])
        """
    )
    assert "Found 10 test(s)" in output
    check(tmp_path)


def test_pytest_xdist(project, tmp_path):
    need("xdist")
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_files = tests.py\n")
    output = project.run(
        """
        import os, sys, pytest
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ.pop("PYTEST_ADDOPTS", None)  # options of plugins that are not loaded
        plugins = ["-p", "xdist.plugin", "-p", "pytest_django.plugin"]
        sys.exit(pytest.main(["-q", "-n2", *plugins, "shop"]))
        """
    )
    assert "10 passed" in output
    check(tmp_path)
