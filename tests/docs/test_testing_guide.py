"""What docs/how-to/testing.md shows, run as it stands there in a project of its own."""

import re
from collections.abc import Iterator

import pytest

from tests.support.commands import PROJECT
from tests.support.projects import Project, project_in

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (PROJECT / "docs/how-to/testing.md").read_text()
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))

# Beside those of the page: rows of a migration, and a live server.
REGION = """

class Region(models.Model):
    id = HiLoField(primary_key=True)
    name = models.CharField(max_length=50, default="")
    objects = HiLoManager()
"""
FACTORIES = """
    from factory import LazyAttribute, SubFactory
    from factory.django import DjangoModelFactory
    from shop.models import Customer, Order, Region

    class CustomerFactory(DjangoModelFactory):
        class Meta:
            model = Customer

    class OrderFactory(DjangoModelFactory):
        customer = SubFactory(CustomerFactory)

        class Meta:
            model = Order

    class RegionFactory(DjangoModelFactory):
        id = LazyAttribute(lambda region: Region.objects.next_id())
        name = LazyAttribute(lambda region: f"region {region.id}")

        class Meta:
            model = Region
"""
MORE = """
    from django.test import TestCase, TransactionTestCase
    from django_hilo.testing import HiLoTestMixin
    from shop.models import Customer, Order, Region
    from shop.tests.factories import CustomerFactory, OrderFactory, RegionFactory

    class TestFactories(TestCase):
        def test_create(self):
            assert OrderFactory.build(customer=None).id is None
            assert OrderFactory().id == "orders/1-A"

        def test_an_attribute_made_of_the_id(self):
            region = RegionFactory()
            assert region.name == f"region {region.pk}"
            assert region.name.startswith("region regions/")

        def test_many(self):
            customer = CustomerFactory()
            orders = OrderFactory.build_batch(500, customer=customer)
            assert Order.objects.bulk_create(orders)[-1].id == "orders/500-A"

    class TestOfAMigration(HiLoTestMixin, TestCase):
        def test_one(self):
            assert Region.objects.get().pk == "regions/1-A"
            assert Region.objects.create().pk == "regions/33-A"

        def test_two(self):
            assert Region.objects.create().pk == "regions/33-A"

    class TestOfAMigrationCommitted(HiLoTestMixin, TransactionTestCase):
        serialized_rollback = True

        def test_one(self):
            assert Region.objects.get().pk == "regions/1-A"
            assert Region.objects.create().pk == "regions/33-A"

        def test_two(self):
            assert Region.objects.create().pk == "regions/33-A"
            assert Customer.objects.create().pk == "customers/1-A"
"""
LIVE = """
    import pytest
    from urllib.request import urlopen
    from shop.models import Customer

    @pytest.mark.parametrize("time", [1, 2])
    def test_live(live_server, hilo_ids, time):
        assert Customer.objects.create().pk == "customers/1-A"
        with urlopen(f"{live_server}/") as answer:
            assert answer.read() == b"customers/2-A"
        assert Customer.objects.create().pk == "customers/3-A"

    @pytest.mark.django_db(serialized_rollback=True, transaction=True)
    @pytest.mark.parametrize("time", [1, 2])
    def test_serialized(hilo_ids, time):
        assert Customer.objects.create().pk == "customers/1-A"
"""


@pytest.fixture
def project(tmp_path, transactional_db) -> Iterator[Project]:
    with project_in(tmp_path) as project:
        project.write(
            "shop/urls.py",
            """
            from django.http import HttpResponse
            from django.urls import path
            from shop.models import Customer

            def create(request):
                return HttpResponse(Customer.objects.create().pk)

            urlpatterns = [path("", create)]
            """,
        )
        project.write("pytest.ini", "[pytest]\npython_files = test_*.py\n")
        for path, text in FILES.items():
            project.write(path, text)
        project.write("shop/models.py", FILES["shop/models.py"] + REGION)
        project.write("shop/tests/factories.py", FACTORIES)
        project.write("shop/tests/test_more.py", MORE)
        project.write("shop/tests/test_live.py", LIVE)
        project.set(
            INSTALLED_APPS=["django_hilo", "shop"],
            ROOT_URLCONF="shop.urls",
            STATIC_URL="/static/",
            ALLOWED_HOSTS=["*"],
        )
        project.manage("makemigrations", "shop")
        project.write(
            "shop/migrations/0002_regions.py",
            """
            from django.db import migrations

            def make(apps, schema_editor):
                apps.get_model("shop", "Region").objects.create()

            class Migration(migrations.Migration):
                dependencies = [
                    ("shop", "0001_initial"), ("django_hilo", "0001_initial")
                ]
                operations = [migrations.RunPython(make)]
            """,
        )
        yield project


def test_all_code_of_the_page_is_run():
    assert len(FILES) == PAGE.count("```python") == 3


@pytest.mark.parametrize("options", [[], ["--parallel=2"], ["--reverse"]])
def test_by_django(project, options):
    # Those for pytest alone are functions, which unittest leaves out.
    output = project.run(
        """
        import sys
        from django.core.management import execute_from_command_line
        execute_from_command_line(["manage.py", "test", *sys.argv[1:]])
        """,
        *options,
        "shop.tests.test_orders",
        "shop.tests.test_more",
    )
    assert "Found 9 test(s)" in output


@pytest.mark.parametrize("options", [[], ["-n2"]])
def test_by_pytest(project, options):
    assert "15 passed" in project.pytest(*options)


def test_by_pytest_again_on_the_same_database(project):
    try:
        assert "15 passed" in project.pytest("--reuse-db", "--create-db")
        # A flush has emptied what the migration filled, as with any key.
        others = ["-k", "not OfAMigration"]
        assert "11 passed" in project.pytest("--reuse-db", *others)
    finally:
        project.pytest("--create-db", "-k", "serialized")  # drops it at its end
