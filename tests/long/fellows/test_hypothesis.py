import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import ResolutionFailed
from hypothesis.extra.django import TestCase, from_model, register_field_strategy

from django_hilo.fields import HiLoField
from tests.long.fellows.market.models import Invoice, Order, Ticket


class Models(TestCase):
    def keys(self, strategy: st.SearchStrategy) -> set[object]:
        found = set()

        @settings(max_examples=5, deadline=None, database=None)
        @given(strategy)
        def collect(made):
            found.add(made.pk)

        collect()
        return found

    def test_keys(self):
        with pytest.raises(ResolutionFailed, match="HiLoField"):
            self.keys(from_model(Order))
        register_field_strategy(HiLoField, st.none())
        invoices = from_model(Invoice, order=from_model(Order))
        assert all(key.startswith("orders/") for key in self.keys(from_model(Order)))
        assert all("$orders/" in key for key in self.keys(invoices))
        assert all(isinstance(key, int) for key in self.keys(from_model(Ticket)))
