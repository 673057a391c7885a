from __future__ import annotations

import pytest
from django.db import transaction

from django_hilo.exceptions import CounterExhausted, InvalidDocumentId
from django_hilo.gapless import next_gapless_number
from django_hilo.identifiers import MAX_NUMBER
from django_hilo.models import GaplessCounter

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def test_numbers_follow_each_other_whatever_the_case():
    assert [next_gapless_number(name) for name in ("invoices", "Invoices")] == [1, 2]
    assert next_gapless_number("orders") == 1


def test_a_rollback_gives_the_number_back():
    next_gapless_number("invoices")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert next_gapless_number("invoices") == 2
        raise ZeroDivisionError
    assert next_gapless_number("invoices") == 2


def test_each_database_counts_for_itself():
    assert next_gapless_number("invoices") == 1
    assert next_gapless_number("invoices", "other") == 1


def test_the_last_number_is_2_63_minus_1():
    GaplessCounter.objects.create(collection="invoices", last=MAX_NUMBER - 1)
    assert next_gapless_number("invoices") == MAX_NUMBER
    with pytest.raises(CounterExhausted, match="'invoices'"):
        next_gapless_number("invoices")


def test_a_bad_collection_makes_no_row():
    with pytest.raises(InvalidDocumentId):
        next_gapless_number("7up")
    assert not GaplessCounter.objects.exists()
