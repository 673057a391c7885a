"""A signal's handler may raise at any call of a save, as Celery's limits do."""

import sys
from itertools import count

import pytest
from django.db import models

from django_hilo.fields import _ids
from tests.apps.records.models import Order


def interrupted(work, at):
    """Do some work, and raise at this call of the file that runs a save.

    That is where Python calls the handlers of signals.
    """
    left = at

    def note(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename == _ids.__file__:
            left -= event in ("call", "c_return")
            if left < 0:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)


@pytest.mark.django_db
def test_no_save_is_running_after_it():
    Order().save()  # what is looked for once is known
    for at in count():
        order = Order()
        try:
            interrupted(order.save, at)
        except KeyboardInterrupt:
            pass
        else:
            break
        # A plain manager gives an id only where no save looks after the object.
        order.pk = None
        models.QuerySet(Order).bulk_create([order])
        assert order.pk
    assert at > 5
