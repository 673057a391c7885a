"""django-tenants: one alias, a schema a tenant, each with counters of its own."""

import json
from collections.abc import Iterator

import pytest
from django.db import connections

from tests.long.hosting.conftest import need
from tests.long.hosting.sessions import counting
from tests.support.databases import CHOSEN
from tests.support.projects import Project, project_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHOSEN != "postgres", reason="schemas of PostgreSQL"),
]
TENANTS = ("north", "south", "west")
SHARED = ["django_tenants", "customers", "django.contrib.contenttypes"]
OF_TENANTS = ["django_hilo", "shop"]


@pytest.fixture(scope="module")
def project(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[Project]:
    need("django_tenants")
    with (
        django_db_blocker.unblock(),
        project_in(tmp_path_factory.mktemp("tenants")) as project,
    ):
        project.write(
            "customers/models.py",
            """
            from django.db import models
            from django_tenants.models import DomainMixin, TenantMixin

            class Customer(TenantMixin):
                auto_create_schema = True

            class Domain(DomainMixin):
                pass
            """,
        )
        project.write(
            "shop/models.py",
            """
            from django.db import models
            from django_hilo.fields import HiLoField
            from django_hilo.managers import HiLoManager

            class Order(models.Model):
                id = HiLoField(primary_key=True)
                objects = HiLoManager()
            """,
        )
        names = ("USER", "PASSWORD", "HOST", "PORT")
        own = connections["default"].settings_dict
        project.set(
            DATABASES={
                "default": {
                    "ENGINE": "django_tenants.postgresql_backend",
                    "NAME": project.database,
                    **{name: own[name] for name in names},
                }
            },
            DATABASE_ROUTERS=["django_tenants.routers.TenantSyncRouter"],
            SHARED_APPS=SHARED,
            TENANT_APPS=OF_TENANTS,
            INSTALLED_APPS=[*SHARED, *OF_TENANTS],
            TENANT_MODEL="customers.Customer",
            TENANT_DOMAIN_MODEL="customers.Domain",
            HILO={"NODE_TAG": "A", "CAPACITY": 8, "MAX_CAPACITY": 8},
        )
        project.manage("makemigrations", "customers", "shop")
        project.manage("migrate_schemas", "--shared")
        project.run(
            f"""
            from customers.models import Customer
            for name in {TENANTS!r}:
                Customer.objects.create(schema_name=name)
            """
        )
        yield project


THREADS = """
    import json, sys, threading
    from collections import defaultdict
    from django.db import connection, transaction
    from django_tenants.utils import schema_context
    from shop.models import Order
    TENANTS = {tenants!r}
    start, keys = threading.Barrier(4), defaultdict(list)
    def work(mine):
        start.wait()
        for turn in range(57):
            tenant = TENANTS[(turn + mine) % len(TENANTS)]
            with schema_context(tenant):
                if turn % 2:
                    keys[tenant].append(Order.objects.create().pk)
                else:
                    with transaction.atomic():
                        keys[tenant].append(Order.objects.create().pk)
        connection.close()
    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    rows = dict()
    for tenant in TENANTS:
        with schema_context(tenant):
            rows[tenant] = sorted(Order.objects.values_list("pk", flat=True))
    print(json.dumps([keys, rows]))
"""
MAX = """
    from django_hilo.models import HiLoDocument
    from django_tenants.utils import schema_context
    for tenant in {tenants!r}:
        with schema_context(tenant):
            print(tenant, *HiLoDocument.objects.values_list("collection", "max"))
"""


def test_threads_that_switch_tenants(project):
    """Two processes, one after the other: each tenant's ids go on where they were."""
    for before in (0, 76):
        with counting(project.database) as peak:
            output = project.run(THREADS.format(tenants=TENANTS))
        told, rows = json.loads(output)
        for tenant in TENANTS:
            expected = {f"orders/{n}-A" for n in range(before + 1, before + 77)}
            assert len(told[tenant]) == len(set(told[tenant]))
            assert set(told[tenant]) == expected, f"of {tenant}, without a gap"
            assert len(rows[tenant]) == before + 76
        assert peak.sessions <= 5 + 1, "a thread's own each, and one of the process"
    counters = project.run(MAX.format(tenants=TENANTS))
    assert counters.splitlines() == [f"{name} ('orders', 152)" for name in TENANTS]


def test_every_tenants_range_goes_back(project):
    project.run(
        f"""
        from django_hilo.generator import next_number
        from django_tenants.utils import schema_context
        for tenant in {TENANTS!r}:
            with schema_context(tenant):
                next_number("returned")
        """
    )
    counters = project.run(MAX.format(tenants=TENANTS))
    for line in counters.splitlines():
        assert "('returned', 1)" in line


def test_commands(project):
    """tenant_command runs ours in one schema, the others' counters stay."""
    project.run(
        """
        from django_tenants.utils import schema_context
        from django.db import connection
        with schema_context("south"), connection.cursor() as cursor:
            cursor.execute("INSERT INTO shop_order (id) VALUES ('orders/7000-A')")
        """
    )
    of_south = ("--schema=south", "--no-color")
    project.manage("tenant_command", "hilo_raise_max", *of_south)
    assert "7000" in project.manage("tenant_command", "hilo_show", *of_south)
    of_all = project.manage("all_tenants_command", "hilo_show", "--no-color")
    assert [f"to: {name}" in of_all for name in TENANTS] == [True] * len(TENANTS)
    assert of_all.count("7000 ") == 2, "Max and floor of one"
    counters = project.run(MAX.format(tenants=TENANTS)).splitlines()
    raised = [line for line in counters if "('orders', 7000)" in line]
    assert [line.split()[0] for line in raised] == ["south"]
