"""The pytest fixture ``hilo_ids``, which pytest finds by the entry point ``pytest11``.

Every run of pytest in the environment imports this module, also in projects without
Django: it imports nothing else until a test uses the fixture.
"""

import pytest


@pytest.fixture
def hilo_ids(db: None) -> None:
    """Start ids at ``orders/1-A`` in this test, or after those of existing rows.

    Requires pytest-django, whose ``db`` it includes.
    """
    from django_hilo._operations.locations import aliases
    from django_hilo._operations.start_over import start_over

    start_over(aliases())
