"""A table in use adopts HiLoBigAutoField while others go on inserting.

Old versions and other programs insert by the column's default. On MariaDB they stop for
the switch.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.patience import LONGEST, PATIENCE, PATIENT
from tests.support.projects import Project, project_in
from tests.support.warm import Popen

pytestmark = pytest.mark.servers

EXISTING = 100_000
MODELS = """
    from django.db import models
    from django_hilo.fields import HiLoBigAutoField

    class Customer(models.Model):
        {key}
        owner = models.CharField(max_length=20)

    class Order(models.Model):
        {key}
        customer = models.ForeignKey(Customer, models.CASCADE)
        owner = models.CharField(max_length=20)
"""
OLD_KEY = "id = models.BigAutoField(primary_key=True)"
NEW_KEY = "id = HiLoBigAutoField(primary_key=True)"
FILL = f"""
    from shop.models import Customer, Order
    rows = [Customer(owner="before") for _ in range({EXISTING})]
    Customer.objects.bulk_create(rows, 5000)
    keys = list(Customer.objects.values_list("pk", flat=True)[:2000])
    Order.objects.bulk_create([Order(customer_id=key, owner="before") for key in keys])
"""
# Inserts pairs of rows until its input ends; any error ends it with another code.
WRITE = """
    import select, sys
    from shop.models import Customer, Order
    owner, made = sys.argv[1], 0
    print(type(Customer._meta.pk).__name__, flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        customer = Customer.objects.create(owner=owner)
        Order.objects.create(customer=customer, owner=owner)
        made += 1
    print(made)
"""
READ = """
    from shop.models import Customer, Order
    for model in (Customer, Order):
        rows = model.objects.exclude(owner="before").order_by("pk")
        print(*rows.values_list("owner", flat=True))
"""
CHECK = """
    from django.db.models import F
    from shop.models import Customer, Order
    orders = Order.objects.exclude(owner=F("customer__owner"))
    print(Customer.objects.filter(owner="before").count(), orders.count())
"""


@pytest.fixture
def project(tmp_path, django_db_blocker) -> Iterator[Project]:
    with django_db_blocker.unblock(), project_in(tmp_path) as project:
        # Short ranges, so that the owners of rows alternate soon.
        hilo = {"MAX_CAPACITY": 64, **PATIENT}
        project.set(INSTALLED_APPS=["django_hilo", "shop"], HILO=hilo)
        yield project


class Writers:
    """The processes that insert; each is stopped by the end of its input."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.running: dict[str, Popen] = {}
        self.made: Counter[str] = Counter()

    def start(self, owner: str, key: str) -> None:
        process = self.project.start(WRITE, owner)
        self.running[owner] = process
        assert process.stdout is not None
        assert process.stdout.readline().strip() == key

    def stop(self, owner: str) -> None:
        process = self.running.pop(owner)
        output, errors = process.communicate("", timeout=PATIENCE)
        assert process.returncode == 0, errors
        self.made[owner] += int(output)

    def owners(self) -> list[list[str]]:
        """Return who inserted each new row, in the order of their keys, by table."""
        return [line.split() for line in self.project.run(READ).splitlines()]

    def wait_for(self, is_enough: Callable[[list[str]], bool]) -> None:
        give_up = time.monotonic() + LONGEST
        while not all(is_enough(owners) for owners in self.owners()):
            assert time.monotonic() < give_up, "The writers do not get on."
            ended = [name for name, p in self.running.items() if p.poll() is not None]
            for name in ended:
                self.stop(name)  # tells its error


def changes(owners: list[str]) -> int:
    return sum(first != second for first, second in pairwise(owners))


@pytest.fixture
def writers(project) -> Iterator[Writers]:
    writers = Writers(project)
    yield writers
    for process in writers.running.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("by_setting", [False, True], ids=["field", "setting"])
def test_a_table_in_use(project, writers, by_setting):
    old_key, new_key = ("", "") if by_setting else (OLD_KEY, NEW_KEY)
    project.write("shop/models.py", MODELS.format(key=old_key))
    project.manage("makemigrations", "shop", "-v0")
    project.manage("migrate", "-v0")
    project.run(FILL)
    writers.start("old", "BigAutoField")
    writers.wait_for(lambda owners: len(owners) > 100)

    if IS_MYSQL:
        writers.stop("old")
    project.write("shop/models.py", MODELS.format(key=new_key))
    if by_setting:
        project.set(DEFAULT_AUTO_FIELD="django_hilo.fields.HiLoBigAutoField")
    made = project.manage("makemigrations", "shop")
    assert made.count("~ Alter field id") == 2
    project.manage("migrate", "-v0")

    before = Counter(writers.owners()[0])["old"]
    for owner in ("first", "second"):
        writers.start(owner, "HiLoBigAutoField")
    writing = {"first", "second"} if IS_MYSQL else {"first", "second", "old"}

    def have_mixed(owners: list[str]) -> bool:
        recent = owners[before:]
        return changes(recent) >= 20 and all(
            Counter(recent)[owner] > 200 for owner in writing
        )

    writers.wait_for(have_mixed)
    for owner in ("first", "second"):
        writers.stop(owner)
    if not IS_MYSQL:
        after = len(writers.owners()[0])
        writers.wait_for(lambda owners: len(owners) > after + 50)
        writers.stop("old")
    found = writers.owners()
    assert [Counter(owners) for owners in found] == [writers.made] * 2
    assert project.run(CHECK) == f"{EXISTING} 0"
    print(f"{CHOSEN}: {writers.made}, {changes(found[0])} changes of the owner")


@pytest.mark.skipif(not IS_MYSQL, reason="Elsewhere the default may go on.")
def test_why_others_stop_on_mariadb(project, writers):
    """AUTO_INCREMENT gives the numbers of a range that a process holds."""
    project.write("shop/models.py", MODELS.format(key=OLD_KEY))
    project.manage("makemigrations", "shop", "-v0")
    project.manage("migrate", "-v0")
    writers.start("old", "BigAutoField")
    project.write("shop/models.py", MODELS.format(key=NEW_KEY))
    project.set(SILENCED_SYSTEM_CHECKS=[])
    assert "django_hilo.W025" in project.manage(
        "check", "--database=default", "--fail-level=WARNING", expect=1
    )
    writers.start("new", "HiLoBigAutoField")
    with pytest.raises(AssertionError, match="IntegrityError"):
        writers.wait_for(lambda owners: len(owners) > 100_000)
