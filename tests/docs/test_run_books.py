"""The commands of docs/how-to/run-books.md, as they stand there, in a project."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from tests.support.commands import PROJECT
from tests.support.databases import CHOSEN
from tests.support.pages import Follower
from tests.support.programs import require
from tests.support.projects import project_in

PAGE = (PROJECT / "docs/how-to/run-books.md").read_text()
NAMES = {
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "mysql": "MariaDB",
    "sqlite": "SQLite",
}
TOOLS = {
    "postgres": ["pg_dump", "psql"],
    "mariadb": ["mariadb-dump", "mariadb"],
    "mysql": ["mariadb-dump", "mariadb"],
    "sqlite": ["sqlite3"],
}
MODELS = """
    from django.db import models

    from django_hilo.fields import GaplessIdField, HiLoField
    from django_hilo.managers import HiLoManager


    class Order(models.Model):
        id = HiLoField(primary_key=True)
        objects = HiLoManager()


    class Invoice(models.Model):
        id = HiLoField(primary_key=True, anchor="order")
        order = models.ForeignKey(Order, models.PROTECT)
        objects = HiLoManager()


    class Letter(models.Model):
        id = GaplessIdField(primary_key=True)
        objects = HiLoManager()
"""


class Shop(Follower):
    """The project that the page speaks of."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        if CHOSEN == "sqlite":
            self.database = str(folder / "db.sqlite3")
        given = connections["default"].settings_dict
        (folder / ".my.cnf").write_text(
            f"[client]\nhost={given['HOST']}\nport={given['PORT'] or 3306}\n"
            f"user={given['USER']}\npassword={given['PASSWORD']}\nprotocol=tcp\n"
        )
        self.write("shop/models.py", MODELS)
        self.write("urls.py", "urlpatterns = []")
        self.set(INSTALLED_APPS=["django_hilo", "shop"], MIDDLEWARE=[])
        self.manage("makemigrations", "shop")
        self.manage("migrate")

    def follow(self, title: str) -> None:
        """Run the commands of a section; each line under one is in what it prints."""
        for block in blocks("console", title):
            first = block[0]
            if first.startswith("# ") and not first.startswith(f"# {NAMES[CHOSEN]}:"):
                continue
            assert any(line.startswith("$ ") for line in block), block
            printed: list[str] = []
            for line in block:
                if line.startswith("$ "):
                    printed = self.shell(line[2:]).splitlines()
                elif not line.startswith("# "):
                    assert line.rstrip() in printed, "\n".join(printed)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the tools: where the database is."""
        given = connections["default"].settings_dict
        server = {
            "PGHOST": given["HOST"],
            "PGPORT": given["PORT"],
            "PGUSER": given["USER"],
            "PGPASSWORD": given["PASSWORD"],
            "PGDATABASE": self.database,
        }
        return {
            **super().environment,
            "HOME": str(self.folder),
            "DATABASE": self.database,
            **(server if CHOSEN == "postgres" else {}),
        }

    def save(self, count: int, model: str = "Order") -> list[str]:
        """Save objects in a process of their own; return their ids."""
        return self.run(
            "import sys\n"
            "from shop import models\n"
            "model = getattr(models, sys.argv[2])\n"
            "for _ in range(int(sys.argv[1])): print(model.objects.create().pk)",
            str(count),
            model,
        ).split()

    def ids(self) -> list[str]:
        return self.run(
            "from shop.models import Order\n"
            "for key in Order.objects.values_list('pk', flat=True): print(key)"
        ).split()


def blocks(language: str, title: str) -> Iterator[list[str]]:
    (section,) = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S
    )
    for text in re.findall(rf"^```{language}\n(.*?)^```", section, re.M | re.S):
        yield text.splitlines()


def comment(title: str) -> str:
    """Return the command in the comment for the database of this run."""
    for block in blocks("console", title):
        if block[0].startswith(f"# {NAMES[CHOSEN]}: "):
            return block[0].partition(": ")[2]
    raise AssertionError(title)


@pytest.fixture
def shop(tmp_path, transactional_db) -> Iterator[Shop]:
    with project_in(tmp_path) as plain:
        yield Shop(tmp_path, plain.database)


def test_every_command_of_the_page_is_run():
    """A section with commands has a test of its own below."""
    titles = re.findall(r"^## (.+)$", PAGE, re.M)
    with_commands = {title for title in titles if any(blocks("console", title))}
    source = Path(__file__).read_text()
    assert with_commands == set(re.findall(r'\.follow\(\s*"([^"]+)"', source))


def disjoint(*families: list[str]) -> bool:
    together = [each for family in families for each in family]
    return len(set(together)) == len(together)


class TestRestore:
    def test_everything(self, shop):
        missing = [tool for tool in TOOLS[CHOSEN] if shutil.which(tool) is None]
        if missing:
            require(f"Not installed: {', '.join(missing)}")
        first = shop.save(5)
        assert shop.save(3, "Letter")[-1] == "letters/3"
        shop.shell(comment("Restore everything"))
        lost = shop.save(40)
        shop.save(4, "Letter")
        shop.follow("Restore everything")
        assert shop.ids() == sorted(first)
        # The page ends with a counter that was raised by hand.
        assert shop.save(1) == ["orders/5001-A"]
        assert shop.save(1, "Letter") == ["letters/4"]
        assert disjoint(first, lost, shop.save(40))

    def test_tables_only(self, shop):
        first = shop.save(5)
        lost = shop.save(40)
        delete_all_but(shop, first)
        shop.follow("Restore only tables")
        assert disjoint(first, lost, shop.save(40))

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM django_hilo_hilodocument",
            "UPDATE django_hilo_hilodocument SET max = 0, floor = 0",
        ],
    )
    def test_counters_only(self, shop, statement):
        first = shop.save(45)
        execute(shop, statement)
        shop.follow("Counters lost or lowered")
        assert disjoint(first, shop.save(40))

    def test_fixtures(self, shop):
        first = shop.save(45)
        (shop.folder / "orders.json").write_text(
            '[{"model": "shop.order", "pk": "orders/44-A", "fields": {}}]'
        )
        shop.manage("loaddata", "orders.json")
        execute(shop, "INSERT INTO shop_order (id) VALUES ('orders/900-A')")
        shop.follow("Fixtures and SQL")
        assert disjoint(first, ["orders/900-A"], shop.save(40))


class TestChanges:
    def test_node_tag_that_ids_hide(self, shop):
        shop.set(HILO={"NODE_TAG": "A", "SHOW_NODE_TAG": False})
        first = shop.save(45)
        shop.set(HILO={"NODE_TAG": "B", "SHOW_NODE_TAG": False})
        shop.follow("Changing the node tag")
        assert shop.save(1) == ["orders/46"]
        assert "orders/45" in first

    def test_a_prefix_of_another_node(self, shop):
        """What the page warns of, and its remedy."""
        node = {"SHOW_NODE_TAG": False}
        shop.set(HILO={**node, "NODE_TAG": "B"})
        set_prefixes(shop, A="North/", B="South/")
        of_b = shop.save(20)
        set_prefixes(shop, A="South/", B="North/")
        shop.set(HILO={**node, "NODE_TAG": "A"})
        shop.manage("hilo_raise_max")
        assert of_b[0] == "orders/South/1"
        assert shop.save(1) == ["orders/South/21"]

    def test_a_node_more(self, shop):
        shop.save(3)
        shop.set(HILO={"NODE_TAG": "B"})
        shop.follow("Adding a node")
        assert shop.save(1) == ["orders/1-B"]


def set_prefixes(shop: Shop, **prefixes: str) -> None:
    shop.run(
        "import sys\n"
        "from django_hilo.models import ServerPrefix\n"
        "for each in sys.argv[1:]:\n"
        "    tag, prefix = each.split('=')\n"
        "    ServerPrefix(pk=tag, prefix=prefix).save()",
        *(f"{tag}={prefix}" for tag, prefix in prefixes.items()),
    )


def execute(shop: Shop, statement: str) -> None:
    shop.run(
        "import sys\n"
        "from django.db import connection\n"
        "connection.cursor().execute(sys.argv[1])",
        statement,
    )


def delete_all_but(shop: Shop, ids: list[str]) -> None:
    execute(shop, f"DELETE FROM shop_order WHERE id NOT IN {tuple(ids)}")
