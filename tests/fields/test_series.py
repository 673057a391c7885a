"""Fields with ``per`` and ``look``: a series for each tenant, year or day."""

from datetime import UTC, date, datetime

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.core.serializers import deserialize, serialize
from django.db import IntegrityError, connection, models, transaction
from django.db.models import F, Value
from django.db.models.functions import Cast
from django.test.utils import (
    CaptureQueriesContext,
    isolate_apps,
    override_settings,
)
from django.urls import reverse
from django.utils import timezone as django_timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from django_hilo._allocation import memory
from django_hilo._operations import edit_counter
from django_hilo.checks.fields import check_field
from django_hilo.counters.gapless import last_gapless_number
from django_hilo.exceptions import CounterNotLowered, HiLoError
from django_hilo.fields import GaplessIdField, HiLoField
from django_hilo.fields._series import name_of_series, split_number
from django_hilo.generator import next_id, next_number
from django_hilo.identifiers import is_counter_name
from django_hilo.models import GaplessCounter, HiLoDocument
from tests.apps.series.models import (
    BlueSlip,
    Charge,
    CreditNote,
    PinkSlip,
    Request,
    Tenant,
    Visit,
)
from tests.support.rollbacks import Undo

pytestmark = pytest.mark.servers
on_tables = pytest.mark.django_db(transaction=True, databases=["default", "other"])
in_test_case = pytest.mark.django_db(databases=["default", "other"])


@pytest.fixture
def tenants() -> list[Tenant]:
    return Tenant.objects.bulk_create([Tenant(id="tenants/7-A"), Tenant(id="acme")])


def numbers(model=Charge, field="number") -> list[tuple[str, str]]:
    return list(
        model.objects.values_list("tenant_id", field).order_by("tenant_id", field)
    )


class TestTheNamesOfCounters:
    @pytest.mark.parametrize(
        ("collection", "values", "name"),
        [
            ("invoices", [7, 2026], "invoices.7.2026"),
            ("invoices-7", [2026], "invoices-7.2026"),
            ("Invoices", ["tenants/33-A", 2026], "invoices.tenants/33-a.2026"),
            ("invoices", ["tenants/33-a"], "invoices.tenants=2f33-a"),
            ("invoices", ["north-sea"], "invoices.north-sea"),
            ("invoices", ["Nord", "é"], "invoices.=4eord.=c3=a9"),
            ("invoices", ["a.b", ""], "invoices.a=2eb."),
        ],
    )
    def test_are_readable(self, collection, values, name):
        assert name_of_series(collection, values) == name
        assert is_counter_name(name)

    texts = st.one_of(
        st.text(max_size=60), st.from_regex(r"[A-Za-z]+/[0-9]+(-[A-Za-z]+)?")
    )
    collections = st.from_regex(r"\A[A-Za-z][A-Za-z0-9_-]{0,99}\Z")

    @settings(max_examples=40)
    @given(st.lists(st.tuples(collections, st.tuples(texts, texts)), min_size=2))
    def test_are_one_to_one(self, series):
        """Whatever case the values have, and databases that ignore it."""
        known = {(collection.lower(), values) for collection, values in series}
        names = {name_of_series(*each).lower() for each in known}
        assert len(names) == len(known)
        assert all(is_counter_name(name) for name in names)

    def test_a_long_one_ends_in_a_hash(self):
        name = name_of_series("invoices", ["x" * 200, 2026])
        assert len(name) == 100
        assert name.startswith("invoices.xxx")
        assert name != name_of_series("invoices", ["x" * 200, 2027])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INV-2026-0012", ("INV-2026-", 12)),
        ("12", ("", 12)),
        ("A0", ("A", None)),
        ("A", ("A", None)),
        (f"A{2**63 - 1}", ("A", 2**63 - 1)),
        (f"A{2**63}", ("A", None)),
        (f"A{'0' * 40}5", ("A", 5)),
        (None, ("", None)),
        (5, ("", None)),
    ],
)
def test_the_number_at_the_end(text, expected):
    assert split_number(text) == expected


class TestSaving:
    pytestmark = on_tables

    def test_each_tenant_and_year_counts_from_1(self, tenants):
        for tenant, day in [
            (tenants[0], "2026-03-01"),
            (tenants[1], date(2026, 3, 1)),
            (tenants[0], datetime(2026, 5, 1)),
            (tenants[0], "2027-01-01"),
        ]:
            Charge.objects.create(tenant=tenant, date=day)
        assert numbers() == [
            ("acme", "INV-2026-0001"),
            ("tenants/7-A", "INV-2026-0001"),
            ("tenants/7-A", "INV-2026-0002"),
            ("tenants/7-A", "INV-2027-0001"),
        ]
        assert dict(GaplessCounter.objects.values_list("pk", "last")) == {
            "charges.acme.2026": 1,
            "charges.tenants/7-a.2026": 2,
            "charges.tenants/7-a.2027": 1,
        }

    def test_a_rollback_gives_the_number_back(self, tenants):
        lost = Charge(tenant=tenants[0], date="2026-03-01")
        with pytest.raises(Undo), transaction.atomic():
            lost.save()
            raise Undo
        assert lost.number == "INV-2026-0001"
        other = Charge.objects.create(tenant=tenants[0], date="2026-03-01")
        lost.pk = None
        lost.save()
        assert (other.number, lost.number) == ("INV-2026-0001", "INV-2026-0002")

    def test_a_hilo_series(self, tenants):
        made = [Request.objects.create(tenant=tenants[n]).number for n in (0, 1, 0)]
        assert made == ["SUP-1", "SUP-1", "SUP-2"]
        rows = HiLoDocument.objects.filter(collection__startswith="requests.")
        assert sorted(rows.values_list("pk", "max")) == [
            ("requests.acme/", 1),
            ("requests.tenants/7-a/", 2),
        ]

    def test_bulk_create_of_many_series(self, tenants):
        charges = [
            Charge(tenant=tenant, date=f"{year}-01-01")
            for year in (2027, 2026, 2027)
            for tenant in tenants
        ]
        Charge.objects.bulk_create(charges)
        assert [each.number for each in charges] == [
            "INV-2027-0001",
            "INV-2027-0001",
            "INV-2026-0001",
            "INV-2026-0001",
            "INV-2027-0002",
            "INV-2027-0002",
        ]
        more = [Request(tenant=tenant) for tenant in tenants * 2]
        Request.objects.bulk_create(more)
        assert [each.number for each in more] == ["SUP-1", "SUP-1", "SUP-2", "SUP-2"]

    def test_two_statements_a_series_at_most(self, tenants):
        Charge.objects.create(tenant=tenants[0], date="1990-01-01")  # ids in memory
        charges = [
            Charge(tenant=tenants[0], date=f"{2000 + n}-01-01") for n in range(20)
        ]
        with CaptureQueriesContext(connection) as queries:
            Charge.objects.bulk_create(charges)
        of_counters = [q for q in queries if "django_hilo_gaplesscounter" in q["sql"]]
        assert 3 <= len(of_counters) <= 2 * 20
        assert {each.number[-4:] for each in charges} == {"0001"}

    def test_a_related_object_that_had_no_key_yet(self):
        tenant = Tenant()
        charge = Charge(tenant=tenant, date="2026-01-01")
        tenant.save()
        charge.save()
        assert charge.number == "INV-2026-0001"
        assert last_gapless_number(f"charges.{tenant.pk.lower()}.2026") == 1

    def test_a_related_object_whose_key_was_an_empty_text(self):
        tenant = Tenant(id="")
        charge = Charge(tenant=tenant, date="2026-01-01")
        tenant.id = "acme"
        tenant.save()
        Charge.objects.bulk_create([charge])
        assert last_gapless_number("charges.acme.2026") == 1

    def test_assign_ids_leaves_gapless_numbers_to_the_save(self, tenants):
        charge, request = Charge(tenant=tenants[0], date="2026-01-01"), Request()
        Charge.objects.assign_ids([charge])
        assert charge.pk and charge.number is None
        with pytest.raises(HiLoError, match=r"'tenant', .* is None. Set it before"):
            Request.objects.assign_ids([request])
        request.tenant = tenants[0]
        Request.objects.assign_ids([request])
        assert request.number == "SUP-1"
        request.save()
        assert numbers(Request) == [("tenants/7-A", "SUP-1")]

    def test_async(self, tenants):
        async def create():
            return await Charge.objects.acreate(tenant=tenants[0], date="2026-01-01")

        assert async_to_sync(create)().number == "INV-2026-0001"

    def test_on_another_database(self, tenants):
        Charge.objects.create(tenant=tenants[0], date="2026-01-01")
        there = Charge.objects.using("other")
        Tenant.objects.using("other").create(id="acme")
        assert there.create(tenant_id="acme", date="2026-01-01").number.endswith("0001")
        assert last_gapless_number("charges.acme.2026", "other") == 1
        Request.objects.create(tenant=tenants[1])
        assert Request.objects.using("other").create(tenant_id="acme").number == "SUP-1"

    def test_children_and_models_of_an_abstract_one(self, tenants):
        notes = [CreditNote.objects.create(tenant=tenants[0], date="2026-01-01")]
        notes.append(CreditNote.objects.create(tenant=tenants[1], date="2026-01-01"))
        assert [(each.number, each.credit) for each in notes] == [
            ("INV-2026-0001", "CR2026-1"),
            ("INV-2026-0001", "CR2026-2"),
        ]
        slips = [PinkSlip, BlueSlip, PinkSlip]
        made = [model.objects.create(place="Oslo") for model in slips]
        assert [each.slip for each in made] == [
            "pinkslips.=4fslo/1",
            "blueslips.=4fslo/1",
            "pinkslips.=4fslo/2",
        ]

    def test_a_day_is_that_of_the_current_time_zone(self):
        new_year = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
        with django_timezone.override("Europe/Berlin"):
            there = Visit.objects.create(at=new_year)
        here = Visit.objects.create(at=new_year)
        assert there.pk == "visits.2027.1.1/1"
        assert here.pk == "visits.2026.12.31/1"

    @pytest.mark.filterwarnings("ignore:.*naive datetime")
    def test_a_moment_without_a_time_zone_is_in_the_default_one(self):
        with django_timezone.override("Europe/Berlin"):
            visits = [
                Visit.objects.create(at=at)
                for at in (datetime(2026, 12, 31, 23, 30), "2026-12-31 23:30")
            ]
            for visit in visits:
                visit.refresh_from_db()
                day = django_timezone.localtime(visit.at)
                assert visit.pk.startswith(f"visits.{day.year}.{day.month}.{day.day}/")

    def test_fixtures_keep_their_numbers(self, tenants):
        known = {"tenant": tenants[0], "date": "2026-01-01"}
        Charge.objects.create(number="INV-2026-0041", **known)
        text = serialize("json", Charge.objects.all())
        Charge.objects.all().delete()
        GaplessCounter.objects.all().delete()
        for each in deserialize("json", text):
            each.save()
        assert Charge.objects.create(**known).number == "INV-2026-0042"

    def test_a_changed_date_leaves_the_number(self, tenants):
        charge = Charge.objects.create(tenant=tenants[0], date="2026-01-01")
        charge.date = date(2027, 1, 1)
        charge.save()
        assert Charge.objects.get().number == "INV-2026-0001"


class TestExplicitTexts:
    pytestmark = on_tables

    def create(self, tenant, day="2026-01-01", **given):
        return Charge.objects.create(tenant=tenant, date=day, **given).number

    def test_raise_the_series_that_they_name(self, tenants):
        self.create(tenants[0], "2027-01-01", number="INV-2026-0007")
        assert self.create(tenants[0]) == "INV-2026-0008"
        assert self.create(tenants[0], "2027-01-01") == "INV-2027-0001"
        assert self.create(tenants[1]) == "INV-2026-0001"

    def test_raise_that_of_their_row_where_the_look_names_none(self, tenants):
        Request.objects.create(tenant=tenants[0], number="SUP-7")
        made = [Request.objects.create(tenant=each).number for each in tenants]
        assert made == ["SUP-8", "SUP-1"]

    def test_in_lower_case(self, tenants):
        """It is the same id on MariaDB, and hides no other there."""
        self.create(tenants[0], number="inv-2026-0005")
        self.create(tenants[0], number="INV-2026-0006")
        assert self.create(tenants[0]) == "INV-2026-0007"
        GaplessCounter.objects.all().delete()
        call_command("hilo_raise_max", verbosity=0)
        assert self.create(tenants[0]) == "INV-2026-0008"

    def test_the_text_says_what_is_not_known_of_the_row(self, tenants):
        day = date(2026, 1, 1)
        self.create(
            tenants[0], Cast(Value(day), models.DateField()), number="INV-2026-0007"
        )
        assert self.create(tenants[0]) == "INV-2026-0008"

    @isolate_apps("tests.apps.series")
    def test_one_that_can_be_read_in_two_ways_is_read_as_its_row_is(self):
        class Seat(models.Model):
            place = models.CharField(max_length=9)
            desk = models.CharField(max_length=9)
            number = HiLoField(per=["place", "desk"], look="{place}-{desk}-{number}")

            class Meta:
                app_label = "series"

        rule = Seat._meta.get_field("number").ids.rule
        for place, desk in [("a-b", "c"), ("a", "b-c")]:
            seat = Seat(place=place, desk=desk)
            assert rule.read("a-b-c-7", seat) == (rule.of(seat), 7)

    def test_beside_others_in_one_bulk_create(self, tenants):
        Charge.objects.bulk_create(
            [
                Charge(tenant=tenants[0], date="2026-01-01", number="INV-2026-0009"),
                Charge(tenant=tenants[0], date="2026-01-01"),
                Charge(tenant=tenants[1], date="2026-01-01"),
            ]
        )
        assert numbers() == [
            ("acme", "INV-2026-0001"),
            ("tenants/7-A", "INV-2026-0009"),
            ("tenants/7-A", "INV-2026-0010"),
        ]

    @pytest.mark.parametrize("text", ["pinkslips.oslo-5", "pinkslips.oslo.5", "9"])
    def test_of_a_series_without_a_look_need_the_separator(self, text):
        PinkSlip.objects.create(place="oslo", slip=text)
        assert PinkSlip.objects.create(place="oslo").slip == "pinkslips.oslo/1"

    @pytest.mark.parametrize("text", ["old 5", "INV-26-x5", "INV-2026-", "5"])
    def test_others_raise_nothing(self, tenants, text):
        with pytest.warns(RuntimeWarning) if text != "x" else pytest.raises(Undo):
            Charge._meta.get_field("number")._has_warned = False
            self.create(tenants[0], number=text)
        assert self.create(tenants[0]) == "INV-2026-0001"

    def test_absurd_ones_are_refused(self, tenants):
        with pytest.raises(HiLoError, match="MAX_FLOOR_JUMP"):
            self.create(tenants[0], number="INV-2026-99999999999")

    def test_validation(self, tenants):
        charge = Charge(tenant=tenants[0], date="2026-01-01", number="INV-2026-0003")
        charge.full_clean()
        charge.number = "other"
        with pytest.raises(ValidationError, match="is not an id of"):
            charge.full_clean()

    def test_a_series_without_a_look_is_named_by_the_text(self):
        PinkSlip.objects.create(place="Oslo", slip="pinkslips.bergen/5")
        assert PinkSlip.objects.create(place="bergen").slip == "pinkslips.bergen/6"
        assert PinkSlip.objects.create(place="Oslo").slip == "pinkslips.=4fslo/1"


class TestMissingValues:
    pytestmark = on_tables

    @pytest.mark.parametrize(
        ("given", "path"),
        [
            ({"date": "2026-01-01"}, "'tenant', .* is None"),
            ({"tenant": None, "date": "2026-01-01"}, "'tenant', .* is None"),
            ({"tenant_id": "acme"}, r"'date.year', .* is None"),
            (
                {"tenant_id": "acme", "date": "soon"},
                r"'date.year', .* 'soon': .*date",
            ),
            ({"tenant_id": "acme", "date": F("x")}, r"'date.year', .* is F\(x\)"),
        ],
    )
    def test_are_named(self, tenants, given, path):
        with pytest.raises(HiLoError, match=path):
            Charge.objects.create(**given)
        assert not Charge.objects.exists()

    def test_a_target_that_says_no_series(self, tenants):
        for target in (Visit, Visit._meta.pk):
            with pytest.raises(LookupError, match="pass an instance"):
                next_number(target)
        visit = Visit(at=datetime(2026, 1, 2, 12, tzinfo=UTC))
        assert next_id(visit) == "visits.2026.1.2/1"
        assert next_id(visit) == "visits.2026.1.2/2"


class TestRaisingTheSeries:
    pytestmark = on_tables

    def test_a_series_that_its_rows_outgrew(self, tenants):
        """A request that another tenant got, and counters of an old backup."""
        request = Request.objects.create(tenant=tenants[0], number="SUP-2")
        charge = Charge.objects.create(tenant=tenants[0], date="2026-01-01")
        Charge.objects.filter(pk=charge.pk).update(date="2027-05-05")
        Request.objects.filter(pk=request.pk).update(tenant=tenants[1])
        Request.objects.create(tenant=tenants[1])
        GaplessCounter.objects.all().delete()
        with pytest.raises(IntegrityError):
            Request.objects.create(tenant=tenants[1])
        with pytest.raises(IntegrityError) as refused:
            Charge.objects.create(tenant=tenants[0], date="2026-01-01")
        assert (
            "run manage.py hilo_raise_max --database=default"
            in (refused.value.__notes__[0])
        )

        call_command("hilo_raise_max", verbosity=0)

        assert Request.objects.create(tenant=tenants[1]).number == "SUP-3"
        made = [
            Charge.objects.create(tenant=tenants[0], date=f"{year}-01-01").number
            for year in (2026, 2027)
        ]
        assert made == ["INV-2026-0002", "INV-2027-0001"]

    def test_a_series_that_is_refused_does_not_stop_those_after_it(
        self, tenants, capsys
    ):
        for kind, start in ((Charge, "INV-2026-"), (Request, "SUP-")):
            rows = [
                kind(tenant=tenant, date="2026-01-01")
                if kind is Charge
                else kind(tenant=tenant)
                for tenant in sorted(tenants, key=lambda each: each.pk)
            ]
            kind.objects.bulk_create(rows)
            first, *others = (kind.objects.filter(pk=each.pk) for each in rows)
            first.update(number=f"{start}9000000000003")
            for each in others:
                each.update(number=f"{start}0060")
        with pytest.raises(CommandError, match="2 of the counters"):
            call_command("hilo_raise_max")
        told = capsys.readouterr()
        assert "charges." in told.err
        assert "requests." in told.err
        assert told.out.count("was raised") == 2 * (len(tenants) - 1)

    def test_500_numbers_of_before(self, tenants, capsys):
        Charge.objects.bulk_create(
            [Charge(tenant=tenants[0], date="2026-01-01") for _ in range(500)]
        )
        GaplessCounter.objects.all().delete()
        call_command("hilo_raise_max", "--dry-run")
        assert capsys.readouterr().out.startswith(
            "series.Charge.number: the last gapless number of "
            "'charges.tenants/7-a.2026' on 'default' would be raised from 0 to 500."
        )
        call_command("hilo_raise_max", "charges", verbosity=0)
        assert Charge.objects.create(tenant=tenants[0], date="2026-01-01").number == (
            "INV-2026-0501"
        )


class TestAdministrators:
    """Of a series' counter, which has the rows of its field in its way, too."""

    pytestmark = on_tables

    def test_rows_are_in_the_way_of_a_lower_max(self, tenants):
        Request.objects.create(tenant=tenants[1], number="SUP-90")
        made = [Request.objects.create(tenant=each) for each in [*tenants, tenants[0]]]
        document = HiLoDocument.objects.get(pk="requests.tenants/7-a/")
        state = edit_counter.state_of(document)
        assert edit_counter.tables_of(document, 1) == [
            ("series.Request", "default", 2, "SUP-2", 1, "")
        ]
        assert edit_counter.id_at(document, 3) == "3"
        with pytest.raises(CounterNotLowered, match=r"has a row with the id 'SUP-2'"):
            edit_counter.lower_max(document, 0, state=state, user=None)
        with pytest.raises(CounterNotLowered, match=r"has a row with the id 'SUP-2'"):
            edit_counter.delete_counter(document, state=state, user=None)
        made[2].delete()
        edit_counter.lower_max(document, 1, state=state, user=None)
        assert Request.objects.create(tenant=tenants[0]).number == "SUP-2"

    def test_endpoints_know_names_with_slashes(self, tenants, admin_client):
        Request.objects.create(tenant=tenants[0])
        address = reverse("django_hilo:document", args=["requests.tenants/7-a", "-"])
        assert admin_client.get(address).json()["max"] == 1


class TestLookups:
    pytestmark = on_tables

    def test_numbers_are_the_digits_at_the_end(self, tenants):
        texts = ["INV-2026-0010", "x 9", "7", "none", "INV-0", f"A{2**63}"]
        Charge.objects.bulk_create(
            [
                Charge(tenant=tenants[0], date="2026-01-01", number=each)
                for each in texts
            ]
        )
        rows = Charge.objects.order_by("number__number", "number")
        known = dict(rows.values_list("number", "number__number"))
        assert known == dict(zip(texts, [10, 9, 7, None, None, None], strict=True))
        assert rows.filter(number__number__gt=8).count() == 2
        assert rows.filter(number__number__isnull=False).first().number == "7"


class TestInATestCase:
    pytestmark = in_test_case

    @pytest.mark.parametrize("_", range(2))
    def test_numbers_start_anew(self, tenants, _):
        made = [Request.objects.create(tenant=each).number for each in tenants * 2]
        assert made == ["SUP-1", "SUP-1", "SUP-2", "SUP-2"]
        charge = Charge.objects.create(tenant=tenants[0], date="2026-01-01")
        assert charge.number == "INV-2026-0001"


class OthersOnOther:
    def db_for_write(self, model, **hints):
        return "other" if model._meta.app_label == "others" else None


class TestChecks:
    @isolate_apps("tests.apps.series")
    def field(self, field, **meta):
        class Paper(models.Model):
            tenant = models.ForeignKey(Tenant, models.PROTECT)
            at = models.DateTimeField()
            made = models.DateTimeField(auto_now_add=True)
            price = models.DecimalField(max_digits=9, decimal_places=2)
            twice = models.GeneratedField(
                expression=F("price") * 2, output_field=price.clone(), db_persist=True
            )
            number = field
            other = meta.get("other")

            class Meta:
                app_label = "series"
                constraints = meta.get("constraints", [])

        return Paper._meta.get_field("number")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"per": "tenant"}, "must be a list"),
            ({"look": "X-{number}"}, "must be a list"),
            ({"per": {"tenant", "at.year"}}, "must be a list"),
            ({"per": ["nothing"]}, "no field named 'nothing'"),
            ({"per": ["tenant__slug"]}, "no field named"),
            ({"per": ["at.hour"]}, "none of year, month, day"),
            ({"per": ["tenant.year"]}, "none of year, month, day"),
            ({"per": ["made.year"]}, "default=timezone.now"),
            ({"per": ["tenant"], "look": "X-{at.year}-{number}"}, "names 'at.year'"),
            ({"per": ["tenant"], "look": "X-{number}-"}, "must end in '{number}'"),
            ({"per": ["tenant"], "look": "X-{number:4}"}, "must end in '{number}'"),
            ({"per": ["tenant"], "look": "X-{number:020}"}, "1 to 19 digits"),
            ({"per": ["tenant"], "look": "X2{number}"}, "a sign that is no digit"),
            ({"per": ["at.year"], "look": "{at.year}{number}"}, "a sign that is no"),
            ({"per": ["tenant"], "look": "{"}, "is not a format"),
            ({"per": ["at"]}, "is a DateTimeField: one value"),
            ({"per": ["price"]}, "is a DecimalField: one value"),
            ({"per": ["twice"]}, "no value before the row is written"),
            ({"per": ["at.year"], "look": "{at.year:%y}-{number}"}, "is not possible"),
            ({"per": ["tenant"], "look": "{tenant:.3}-{number}"}, "is not possible"),
            ({"per": ["tenant"], "look": "{tenant:03}-{number}"}, "is not possible"),
            (
                {
                    "per": ["at.month", "at.day"],
                    "look": "{at.month}{at.day}-{number}",
                },
                "needs a sign before 'at.day'",
            ),
        ],
    )
    def test_wrong_options(self, options, message):
        for kind in (GaplessIdField, HiLoField):
            (error,) = check_field(self.field(kind(unique=True, **options)))
            assert error.id == "django_hilo.E109"
            assert message in error.msg

    def test_two_fields_of_a_model_that_count_together(self):
        for kind, errors in ((GaplessIdField, ["E109"]), (HiLoField, [])):
            other = kind(per=["at.year"], unique=True)
            field = GaplessIdField(per=["tenant"], unique=True)
            found = check_field(self.field(field, other=other))
            assert [each.id[-4:] for each in found] == errors

    def test_models_of_one_name_in_two_apps(self):
        class Charge(models.Model):
            tenant = models.ForeignKey(Tenant, models.PROTECT)
            number = GaplessIdField(per=["tenant"], unique=True)
            shared = GaplessIdField(per=["tenant"], collection="Requests", unique=True)

            class Meta:
                app_label = "others"

        (error,) = check_field(Charge._meta.get_field("number"))
        assert "series.Charge.number has the same collection" in error.msg
        with override_settings(DATABASE_ROUTERS=[OthersOnOther()]):
            assert check_field(Charge._meta.get_field("number")) == []
        assert check_field(Charge._meta.get_field("shared")) == []

    def test_numbers_that_are_too_long(self):
        look = f"{'A' * 40}-{{at.year}}-{{number}}"
        field = GaplessIdField(per=["at.year"], look=look, unique=True)
        (error,) = check_field(self.field(field))
        assert error.id == "django_hilo.E104"
        assert "has 65 characters" in error.msg

    def test_paths_side_by_side_that_can_be_told_apart(self):
        look = "{at.year}{at.month}/{at.month:02}{at.day:02}-{number}"
        field = HiLoField(per=["at.year", "at.month", "at.day"], look=look, unique=True)
        assert check_field(self.field(field)) == []

    def test_options_that_have_no_meaning(self):
        field = HiLoField(per=["tenant"], width=5, unique=True)
        assert "width= has no meaning" in check_field(self.field(field))[0].msg

    def test_numbers_that_nothing_keeps_unique(self):
        look = "X-{number}"
        (error,) = check_field(self.field(HiLoField(per=["tenant"], look=look)))
        assert error.id == "django_hilo.E113"
        assert "fields=['tenant', 'number']" in error.hint
        (error,) = check_field(self.field(GaplessIdField(per=["tenant"])))
        assert "Set unique=True" in error.hint
        together = models.UniqueConstraint(fields=["tenant", "number"], name="one")
        for kind in (HiLoField, GaplessIdField):
            field = self.field(kind(per=["tenant"], look=look), constraints=[together])
            assert check_field(field) == []

    def test_a_year_that_neither_the_look_nor_the_constraint_has(self):
        """In January, the first number would be that of last year's first row."""
        by_tenant = models.UniqueConstraint(fields=["tenant", "number"], name="one")
        field = GaplessIdField(per=["tenant", "at.year"], look="R-{number:04}")
        (error,) = check_field(self.field(field, constraints=[by_tenant]))
        assert error.id == "django_hilo.E113"
        assert (
            "unique together with tenant, but the look leaves out at.year" in error.msg
        )

    def test_constraints_that_refuse_no_number(self):
        """A date has one year, and a price is of one tenant, as far as is known."""
        dated = models.UniqueConstraint(fields=["at", "number"], name="one")
        field = GaplessIdField(per=["at.year"], look="R-{number:04}")
        assert check_field(self.field(field, constraints=[dated])) == []
        priced = models.UniqueConstraint(fields=["price", "number"], name="two")
        owned = models.UniqueConstraint(fields=["tenant", "number"], name="one")
        field = GaplessIdField(per=["tenant"], look="R-{number:04}")
        assert check_field(self.field(field, constraints=[owned, priced])) == []

    def test_a_key_whose_look_leaves_out_a_path(self):
        field = HiLoField(per=["tenant"], look="X-{number}", primary_key=True)
        (error,) = check_field(self.field(field))
        assert error.id == "django_hilo.E113"
        assert "the look leaves out tenant" in error.msg


def test_migrations_name_the_options():
    field = Charge._meta.get_field("number").clone()
    _, path, _, options = field.deconstruct()
    assert path == "django_hilo.fields.GaplessIdField"
    assert options == {
        "per": ("tenant", "date.year"),
        "look": "INV-{date.year}-{number:04}",
        "max_length": 64,
    }


@pytest.mark.django_db(transaction=True)
def test_a_process_keeps_the_series_that_it_used_last(monkeypatch):
    """And returns the numbers that it holds of others."""
    monkeypatch.setattr("django_hilo._allocation.find._MOST", 10)
    memory.after_fork_in_child()
    places = [f"2026-01-{day:02}T12:00Z" for day in range(1, 22)]
    for at in places:
        Visit.objects.create(at=at)
    kept = {key[1] for key in memory.current()._memories if "visits" in key[1]}
    assert kept == {f"visits.2026.1.{day}" for day in range(2, 22)}
    rows = dict(HiLoDocument.objects.values_list("collection", "max"))
    assert (rows["visits.2026.1.1"], rows["visits.2026.1.21"]) == (1, 32)
    again = Visit.objects.create(at=places[0])
    assert again.pk == "visits.2026.1.1/2"
