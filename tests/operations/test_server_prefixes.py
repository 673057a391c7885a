"""The prefixes that the servers of a node give ids."""

from threading import Barrier

import pytest
from django.core.exceptions import ValidationError

from django_hilo._operations import server_prefixes
from django_hilo.models import ServerPrefix
from tests.support.threads import in_threads

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class TestPrefixes:
    def test_first_ones_at_once(self):
        barrier = Barrier(6)

        def put(_):
            barrier.wait()
            server_prefixes.set_prefix("A", "North/", using="default", user=None)

        for _ in range(5):
            in_threads(6, put)
            assert ServerPrefix.objects.get().prefix == "North/"
            ServerPrefix.objects.all().delete()

    def test_two_nodes_with_one_prefix_where_ids_hide_the_tag(self, settings):
        settings.HILO = {"SHOW_NODE_TAG": False}
        server_prefixes.set_prefix("A", "North/", using="default", user=None)
        server_prefixes.set_prefix("A", "North/", using="default", user=None)
        with pytest.raises(ValidationError, match="Use another"):
            server_prefixes.set_prefix("B", "North/", using="other", user=None)
