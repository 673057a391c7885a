"""The guide to loading many rows, followed as it stands on its page."""

import pytest

from tests.support.databases import CHOSEN
from tests.support.pages import Follower, page
from tests.support.projects import project_in

if CHOSEN == "postgres":
    pytest.importorskip("psycopg", reason="psycopg 2 has no copy()")


@pytest.mark.django_db(transaction=True)
def test_load_many_rows(tmp_path):
    with project_in(tmp_path) as plain:
        follower = Follower(tmp_path, plain.database)
        follower.follow(page("how-to/load-many-rows.md"))
        # The counter knows what was loaded.
        code = "from shop.models import *; print(Order.objects.create().pk)"
        assert follower.run(code) == "orders/1001-A"
