"""Text ids of bulk_create() where rows exist, which keep ids of their own."""

import pickle
from unittest.mock import patch

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models.sql import InsertQuery as Query

from tests.apps.records.models import Person
from tests.support.databases import IS_MYSQL

pytestmark = [pytest.mark.django_db, pytest.mark.servers]

TARGET = {} if IS_MYSQL else {"unique_fields": ["email"]}
UPDATED = {"update_conflicts": True, "update_fields": ["email"], **TARGET}
IGNORED = {"ignore_conflicts": True}


def people(*emails, **values):
    return [Person(email=each, **values) for each in emails]


@pytest.fixture
def old():
    return Person.objects.create(email="old")


def check(made):
    """No object has an id that no row has."""
    rows = dict(Person.objects.values_list("email", "pk"))
    assert {each.email for each in made} <= set(rows)
    for each in made:
        assert each.pk in (None, rows[each.email])


@pytest.mark.parametrize("batch_size", [None, 1])
def test_updated(old, batch_size):
    made = people("old", "new", "newer")
    Person.objects.bulk_create(made, batch_size=batch_size, **UPDATED)
    check(made)
    if connection.features.can_return_rows_from_bulk_insert:
        assert made[0].pk == old.pk
        assert None not in [each.pk for each in made]
    else:
        assert [each.pk for each in made] == [None] * 3
    assert Person.objects.create(email="next").pk not in {each.pk for each in made}


def test_ignored(old):
    made = people("old", "new")
    Person.objects.bulk_create(made, **IGNORED)
    check(made)
    assert [each.pk for each in made] == [None, None]
    assert Person.objects.count() == 2
    made[1].email = "other"
    made[1].save()
    assert Person.objects.count() == 3


@pytest.mark.parametrize("options", [UPDATED, IGNORED], ids=["updated", "ignored"])
def test_ids_that_were_set_or_assigned_stay(old, options):
    assigned = Person.objects.assign_ids(people("new"))[0]
    set_here = Person(email="newer", pk="people/900-A")
    id = assigned.pk
    Person.objects.bulk_create([assigned, set_here, *people("old")], **options)
    assert (assigned.pk, set_here.pk) == (id, "people/900-A")
    check([assigned, set_here])
    rows = set(Person.objects.values_list("pk", flat=True))
    assert Person.objects.create(email="next").pk not in rows


@pytest.mark.parametrize("options", [UPDATED, IGNORED], ids=["updated", "ignored"])
def test_only_ids_that_were_set_ask_for_none(django_assert_num_queries, old, options):
    made = people("new", pk="people/900-A")
    with django_assert_num_queries(1) as queries:
        Person.objects.bulk_create(made, **options)
    assert "RETURNING" not in queries[0]["sql"]


@pytest.mark.parametrize("options", [UPDATED, IGNORED], ids=["updated", "ignored"])
def test_a_second_try(old, options):
    made = people("old", "new")
    with (
        patch.object(Query, "get_compiler", side_effect=OperationalError("lost")),
        pytest.raises(OperationalError),
        transaction.atomic(),
    ):
        Person.objects.bulk_create(made, **options)
    assert [each.pk for each in made] == [None, None]
    Person.objects.bulk_create(made, **options)
    check(made)


def test_after_a_rollback(old):
    made = people("old", "new")
    with transaction.atomic():
        Person.objects.bulk_create(made, **UPDATED)
        transaction.set_rollback(True)
    # The row of another process, or what looks like it.
    Person.objects.bulk_create(people("new", "newer"), **UPDATED)
    rows = dict(Person.objects.values_list("pk", "email"))
    made[1].email = "newest"
    made[1].save()
    assert {pk: rows[pk] for pk in rows} == {
        pk: email
        for pk, email in Person.objects.values_list("pk", "email")
        if pk in rows
    }
    assert Person.objects.get(email="newest").pk not in rows


@pytest.mark.skipif(IS_MYSQL, reason="It updates on any conflict.")
def test_an_id_of_another_row_is_not_kept_by_an_object_that_is_refused(old):
    made = people("old", "new", "newer")
    made[2].pk = Person.objects.create(email="x").pk
    with pytest.raises(IntegrityError), transaction.atomic():
        Person.objects.bulk_create(made, batch_size=1, **UPDATED)
    assert [each.pk for each in made[:2]] == [None, None]


def test_a_queryset_keeps_no_objects():
    rows = Person.objects.all()
    rows.bulk_create(people("a", "b"))
    assert len(pickle.loads(pickle.dumps(rows))) == 2
