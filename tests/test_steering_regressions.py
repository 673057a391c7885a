"""Faults that reviews found around counters that people and programs steer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from django_hilo import prefixes, steering
from django_hilo.admin.examples import examples
from django_hilo.exceptions import CounterNotLowered, HiLoError
from django_hilo.lending import known_target
from django_hilo.models import HiLoDocument, ServerPrefix
from django_hilo.reservation import reserve
from django_hilo.signals import counter_changed, range_reserved
from django_hilo.tables import highest_numbers, homes
from example_project.shop.counters import counters
from tests.databases import CHOSEN
from tests.records.models import Order

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def document(key: str = "orders/A") -> HiLoDocument:
    return HiLoDocument.objects.get(pk=key)


@pytest.fixture
def client():
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    return client


@pytest.fixture(params=[counter_changed, range_reserved])
def bad_receiver(request):
    """A receiver that writes an audit row which the database refuses."""
    Group.objects.create(name="taken")

    def audit(**kwargs):
        Group.objects.create(name="taken")

    request.param.connect(audit)
    yield
    request.param.disconnect(audit)


class TestReceivers:
    @pytest.mark.parametrize(
        ("address", "body"),
        [
            ("/hilo/gapless/orders/next/", {}),
            ("/hilo/collections/orders/ranges/", {"size": 5}),
            ("/hilo/collections/orders/next-id/", {}),
        ],
    )
    def test_what_is_answered_is_never_rolled_back(
        self, client, monkeypatch, bad_receiver, address, body
    ):
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        answers = [client.post(address, body, format="json") for _ in range(4)]
        given = [str(a.json()) for a in answers if a.status_code == 201]
        assert len(set(given)) == len(given)
        assert {a.status_code for a in answers} <= {201, 503}

    def test_a_doomed_transaction_is_told(self, bad_receiver):
        with pytest.raises(HiLoError, match="receiver"), transaction.atomic():
            lent = steering.lend_range(known_target("orders"), 5, user=None)
            pytest.fail(f"{lent} will be rolled back")

    def test_outside_a_transaction_it_stops_nobody(self, bad_receiver):
        assert steering.take_gapless("orders", using="default", user=None) == 1
        assert reserve("orders", 5).range.high == 5


class TestTables:
    def test_untagged_ids_of_another_node_count(self, settings):
        settings.HILO = {"NODE_TAG": "B", "SHOW_NODE_TAG": False}
        ServerPrefix.objects.create(node_tag="B", prefix="b-")
        assert Order.objects.create().pk == "orders/b-1"
        settings.HILO = {"NODE_TAG": "A", "SHOW_NODE_TAG": False}
        row = document("orders/B")
        with pytest.raises(CounterNotLowered, match="orders/b-1"):
            steering.lower_max(row, 0, state=steering.state_of(row), user=None)

    def test_tables_that_a_router_sends_rows_to_count(self, settings):
        settings.DATABASE_ROUTERS = [OrdersOnOther()]
        reserve("orders", 10)
        with connections["other"].cursor() as cursor:
            cursor.execute(
                "INSERT INTO records_order (id, name) VALUES ('orders/5-A', '')"
            )
        settings.HILO = {"DATABASE": "default"}
        (found,) = [
            t for t in highest_numbers("orders", "A", "default") if t.using == "other"
        ]
        assert found.id == "orders/5-A"

    def test_a_home_that_the_setting_names_is_one(self, settings):
        settings.DATABASE_ROUTERS = [OrdersOnOther()]
        assert homes() == ["default"]
        settings.HILO = {"DATABASE": "other"}
        assert homes() == ["other"]

    def test_looking_locks_no_writer_out(self):
        Order.objects.create()
        with CaptureQueriesContext(connection) as queries:
            highest_numbers("orders", "A", "default")
        (statement,) = [q["sql"].split()[0] for q in queries]
        assert statement in ("SELECT", "DECLARE")

    def test_a_missing_table_ends_no_transaction(self, monkeypatch):
        monkeypatch.setattr(Order._meta, "db_table", "no_such_table")
        with transaction.atomic():
            (found,) = highest_numbers("orders", "A", "default")
            assert found.error
            assert Group.objects.count() == 0


class OrdersOnOther:
    def db_for_write(self, model, **hints):
        return "other" if model is Order else None

    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


class TestPrefixes:
    def test_first_ones_at_once(self):
        barrier = Barrier(6)

        def put(_):
            barrier.wait()
            try:
                prefixes.set_prefix("A", "North/", using="default", user=None)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(6) as executor:
            for _ in range(5):
                list(executor.map(put, range(6)))
                assert ServerPrefix.objects.get().prefix == "North/"
                ServerPrefix.objects.all().delete()

    def test_two_nodes_with_one_prefix_where_ids_hide_the_tag(self, settings):
        settings.HILO = {"SHOW_NODE_TAG": False}
        prefixes.set_prefix("A", "North/", using="default", user=None)
        prefixes.set_prefix("A", "North/", using="default", user=None)
        with pytest.raises(ValidationError, match="same ids"):
            prefixes.set_prefix("B", "North/", using="other", user=None)

    def test_a_database_that_is_away_spoils_no_preview(self, monkeypatch):
        reserve("orders", 5)
        actual = HiLoDocument.objects.using

        def using(alias):
            if alias == "other":
                raise DatabaseError("away")
            return actual(alias)

        monkeypatch.setattr(HiLoDocument.objects, "using", using)
        assert '"A": ["orders/", "6"]' in examples(["default"])

    def test_a_preview_has_the_width_of_the_field(self):
        reserve("sortables", 5)
        assert f'"A": ["sortables/", "{6:019}"]' in examples(["default"])


class TestHistory:
    def test_the_old_max_is_the_one_under_the_lock(self, admin_client, python):
        reserve("orders", 200)
        admin = "/admin/django_hilo/hilodocument/orders_2FA/"
        python("from django_hilo.reservation import reserve; reserve('orders', 10)")
        admin_client.post(f"{admin}change/", {"max": 500, "initial-max": 200})
        history = admin_client.get(f"{admin}history/").content.decode()
        assert "Raised Max from 210 to 500." in history

    @pytest.mark.parametrize("state", ["", "0" * 64])
    def test_no_confirmation_without_its_page(self, admin_client, state):
        reserve("tickets", 200)
        admin_client.post(
            "/admin/django_hilo/hilodocument/tickets_2FA/change/",
            {"max": 50, "initial-max": 200, "state": state, "confirmed": "on"},
        )
        assert document("tickets/A").max == 200


class TestRest:
    @pytest.mark.urls("tests.test_steering_regressions")
    def test_a_site_may_have_names_in_its_prefix(self, client):
        answer = client.post("/acme/hilo/collections/orders/next-id/")
        assert answer.json()["ids"] == ["orders/1-A"]
        assert client.get("/acme/hilo/documents/orders/A/").status_code == 200
        assert client.get("/acme/raven/topology?name=x").status_code == 401

    def test_one_counter_has_one_spelling(self, client):
        first = client.post("/hilo/gapless/orders/next/").json()
        assert first == {"number": 1, "id": "orders/1"}
        reserve("tickets", 1)
        answer = client.post("/hilo/collections/TICKETS/next-id/").json()
        assert answer["ids"] == ["tickets/2-A"]

    def test_a_gapless_id_never_looks_like_another(self, client, settings):
        settings.HILO = {"SHOW_NODE_TAG": False}
        assert client.post("/hilo/gapless/orders/next/").status_code == 409

    def test_texts_of_the_server_are_for_its_log(self, client, monkeypatch):
        def fail(*args, **kwargs):
            raise HiLoError("host db.internal")

        monkeypatch.setattr(steering.lending, "lend", fail)
        answer = client.post("/hilo/collections/orders/ranges/", {"size": 1})
        assert answer.status_code == 503
        assert "internal" not in answer.content.decode()

    @pytest.mark.skipif(CHOSEN == "sqlite", reason="SQLite says it in another way")
    @pytest.mark.parametrize("address", ["/hilo/documents/", "/hilo/prefixes/"])
    def test_missing_tables_are_no_500(self, client, monkeypatch, address):
        for model in (HiLoDocument, ServerPrefix):
            monkeypatch.setattr(model._meta, "db_table", "no_such_table")
        answer = client.get(address)
        assert (answer.status_code, answer["Cache-Control"]) == (503, "no-store")


def test_the_front_page_counts_from_the_floor():
    reserve("orders", 5)
    HiLoDocument.objects.update(floor=50)
    assert [counter.next_id for counter in counters()] == ["orders/51-A"]
    HiLoDocument.objects.update(max=2**63 - 1)
    assert [counter.next_id for counter in counters()] == [""]


def _urlpatterns():
    from django.contrib import admin
    from django.urls import include, path

    return [
        path("admin/", admin.site.urls),
        path("<slug:tenant>/hilo/", include("django_hilo.rest_framework.urls")),
        path("<slug:tenant>/raven/", include("django_hilo.ravendb.urls")),
    ]


urlpatterns = _urlpatterns()
