"""django_hilo.testing: ids in the tests of a project."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from unittest import SkipTest, skip
from unittest import TestCase as PlainTestCase
from unittest import TestResult as Result
from urllib.request import urlopen

import pytest
from django.db import OperationalError, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import (
    LiveServerTestCase,
    SimpleTestCase,
    TestCase,
    TransactionTestCase,
    override_settings,
)
from django.urls import path

from django_hilo import testing
from django_hilo._allocation import memory
from django_hilo._allocation.cached_range import CachedRange
from django_hilo._database.identity import database_key
from django_hilo.counters import Range, Reservation
from django_hilo.generator import iter_ids, next_id, next_ids, next_number
from django_hilo.sources import hibernate
from django_hilo.testing import HiLoTestMixin
from tests.apps.numbers.models import Box, Item, Tag
from tests.apps.records.models import Letter, Order, Product
from tests.conftest import child_environment
from tests.support.commands import output_of
from tests.support.databases import CHOSEN, IS_MYSQL
from tests.support.sql import execute

pytestmark = pytest.mark.servers

not_on_mariadb = pytest.mark.skipif(
    IS_MYSQL, reason="AUTO_INCREMENT does not roll back"
)


def leave_ranges() -> None:
    """Leave in memory what an earlier test may leave: a committed range."""
    for alias in connections:
        key = database_key(alias), "orders", "A"
        held = CachedRange(Reservation("orders", "A", Range(700, 800), "", "t"))
        memory.current().memory(key).add([held], 32)


@pytest.fixture(autouse=True)
def left_over() -> Iterator[None]:
    leave_ranges()
    yield
    for alias in connections:
        memory.current().forget(alias)


class Checked(HiLoTestMixin):
    """What must hold in each test, in whatever order they run: so there are two."""

    def check(self) -> None:
        raise NotImplementedError

    def test_one(self) -> None:
        self.check()

    def test_two(self) -> None:
        self.check()


class TestInATestCase(Checked, TestCase):
    def check(self):
        assert [Order.objects.create().pk for _ in range(40)] == [
            f"orders/{n}-A" for n in range(1, 41)
        ]
        assert next_id(Order) == "orders/41-A"
        assert next(iter_ids(Order)) == "orders/42-A"
        assert next_ids("tickets", 2) == ["tickets/1-A", "tickets/2-A"]


class TestWithASetUpOfItsOwn(Checked, TestCase):
    def setUp(self):  # calls no other, as in most projects
        self.order = Order.objects.create()

    def check(self):
        assert self.order.pk == "orders/1-A"
        assert Order.objects.create().pk == "orders/2-A"


class TestInATransactionTestCase(Checked, TransactionTestCase):
    def check(self):
        assert Order.objects.create().pk == "orders/1-A"
        with transaction.atomic():
            assert Order.objects.create().pk == "orders/2-A"


class TestWithSetUpTestData(Checked, TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.order = Order.objects.create()
        cls.kept = next_ids(Order, 2)
        cls.tickets = [next_number("tickets") for _ in range(3)]
        cls.products = Product.objects.bulk_create([Product() for _ in range(70)])
        cls.letter = Letter.objects.create()

    def check(self):
        assert self.order.pk == "orders/1-A"
        assert self.kept == ["orders/2-A", "orders/3-A"]
        assert self.tickets == [1, 2, 3]
        assert Order.objects.create().pk == "orders/4-A"
        assert next_number("tickets") == 4
        assert Product.objects.create().pk == "products/71-A"
        assert self.letter.pk == "letters/1"
        assert Letter.objects.create().pk == "letters/2"


class TestWithoutADatabase(HiLoTestMixin, SimpleTestCase):
    def test_nothing_is_asked(self):
        assert not memory.current().memories("default")


@not_on_mariadb
class TestOfIntegerKeys(Checked, TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.items = [Item.objects.create() for _ in range(2)]
        cls.kept = next_number(Item)
        Box.objects.create(pk=9, label="nine")

    def check(self):
        assert [item.pk for item in self.items] == [1, 2]
        assert Item.objects.create().pk == 4
        assert Box.objects.create(label="ten").pk == 10
        tag = Tag.objects.create()
        tag.items.add(*self.items)
        assert tag.pk == 1
        assert [each.pk for each in Tag.items.through.objects.all()] == [1, 2]


class TestOfIntegerKeysAfterOthers(TestOfIntegerKeys):
    @classmethod
    def setUpClass(cls):
        if CHOSEN == "postgres":
            execute("SELECT nextval('numbers_item_id_seq')")
        super().setUpClass()


SOURCE = hibernate.HiLo(9, "testing_counter")


class TestOfASource(Checked, TestCase):
    """A row of another system rolls back as all rows do, and is else left alone."""

    @classmethod
    def setUpClass(cls):
        if connections["default"].vendor == "mysql":
            raise SkipTest("CREATE TABLE commits")
        super().setUpClass()

    @classmethod
    def setUpTestData(cls):
        execute("CREATE TABLE testing_counter (next_hi INTEGER)")
        execute("INSERT INTO testing_counter VALUES (5)")
        cls.number = next_number(SOURCE)

    def check(self):
        assert self.number == 50
        assert [next_number(SOURCE) for _ in range(11)] == list(range(90, 101))


def create(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Order.objects.create().pk)


urlpatterns = [path("create/", create)]


@override_settings(ROOT_URLCONF=__name__, STATIC_URL="/static/")
class TestBesideALiveServer(Checked, LiveServerTestCase):
    def check(self):
        keys = [Order.objects.create().pk]
        with urlopen(f"{self.live_server_url}/create/") as answer:
            keys.append(answer.read().decode())
        keys.append(Order.objects.create().pk)
        assert keys == [f"orders/{n}-A" for n in (1, 2, 3)]


class TestWhereTheDatabaseFails:
    @pytest.fixture(autouse=True)
    def started(self, monkeypatch) -> None:
        def fail(databases: Iterable[str]) -> None:
            raise OperationalError("no route to host")

        monkeypatch.setattr(testing, "start_over", fail)

    def result_of(self, method: Callable[[PlainTestCase], None]) -> Result:
        # Made here, where pytest does not find it.
        case = type("Case", (HiLoTestMixin, PlainTestCase), {"test": method})
        result = Result()
        case("test").run(result)
        return result

    def test_the_test_has_the_error_and_others_run(self):
        ((_, error),) = self.result_of(lambda case: None).errors
        assert "no route to host" in error

    def test_a_skipped_test_asks_nothing(self):
        result = self.result_of(skip("no database")(lambda case: None))
        assert not result.errors
        assert len(result.skipped) == 1


class TestTheOrderOfBases:
    def test_after_the_test_case_is_an_error(self):
        with pytest.raises(TypeError, match=r"class Wrong\(HiLoTestMixin, \.\.\.\)"):
            type("Wrong", (TestCase, HiLoTestMixin), {})


@pytest.mark.parametrize("time", [1, 2])
class TestTheFixture:
    @pytest.mark.usefixtures("hilo_ids")
    @pytest.mark.django_db(transaction=True)
    def test_committed(self, time):
        assert Order.objects.create().pk == "orders/1-A"

    @pytest.mark.django_db(databases=["default", "other"])
    def test_on_two_databases(self, hilo_ids, time):
        assert Order.objects.using("other").create().pk == "orders/1-B"
        assert Order.objects.create().pk == "orders/1-A"

    @pytest.mark.django_db(reset_sequences=True)
    def test_with_reset_sequences(self, hilo_ids, time):
        assert Order.objects.create().pk == "orders/1-A"
        assert Item.objects.create().pk == 1


@pytest.fixture
def earlier(db) -> Order:
    memory.current().forget("default")
    return Order.objects.create()


@pytest.mark.parametrize("time", [1, 2])
def test_what_other_fixtures_made_before_is_not_given_again(earlier, hilo_ids, time):
    assert earlier.pk == "orders/1-A"
    assert Order.objects.create().pk == "orders/2-A"


def test_queries(django_assert_num_queries, db):
    """A test without integer keys, and without data of its class, pays nothing."""
    with django_assert_num_queries(0 if IS_MYSQL else 1):
        testing.start_over(["default"])


def test_pytest_is_imported_for_the_fixture_alone():
    code = (
        "import django, json, sys; django.setup()\n"
        "from django_hilo import testing\n"
        "testing.HiLoTestMixin\n"
        "before = 'pytest' in sys.modules\n"
        "assert testing.hilo_ids is testing.hilo_ids\n"
        "print(json.dumps([before, 'pytest' in sys.modules]))\n"
        "assert not hasattr(testing, 'hilo_id')\n"
    )
    settings = {"DJANGO_SETTINGS_MODULE": "example_project.settings"}
    printed = output_of(
        *(sys.executable, "-W", "error", "-c", code),
        env={**child_environment(), **settings},
    )
    assert json.loads(printed) == [False, True]
