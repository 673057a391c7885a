"""The prefixes that the servers of a node give ids."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.exceptions import ValidationError
from django.db import connections

from django_hilo._operations import server_prefixes
from django_hilo.models import ServerPrefix

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class TestPrefixes:
    def test_first_ones_at_once(self):
        barrier = Barrier(6)

        def put(_):
            barrier.wait()
            try:
                server_prefixes.set_prefix("A", "North/", using="default", user=None)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(6) as executor:
            for _ in range(5):
                list(executor.map(put, range(6)))
                assert ServerPrefix.objects.get().prefix == "North/"
                ServerPrefix.objects.all().delete()

    def test_two_nodes_with_one_prefix_where_ids_hide_the_tag(self, settings):
        settings.HILO = {"SHOW_NODE_TAG": False}
        server_prefixes.set_prefix("A", "North/", using="default", user=None)
        server_prefixes.set_prefix("A", "North/", using="default", user=None)
        with pytest.raises(ValidationError, match="Use another"):
            server_prefixes.set_prefix("B", "North/", using="other", user=None)
