"""What docs/how-to/sharding.md shows of buckets, run as it stands there."""

import doctest
import re

import pytest

from tests.apps.records.models import Invoice, Order
from tests.support.commands import PROJECT, told_by

TEXT = (PROJECT / "docs/how-to/sharding.md").read_text()


def test_buckets_and_shard_numbers():
    code = "".join(re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(code, {}, "sharding.md", None, 0)
    assert doctest.DocTestRunner().run(parsed) == (0, 5)


@pytest.mark.django_db(databases=["default", "other"])
def test_how_full_buckets_are():
    for number in range(1, 201):
        order = Order.objects.create(id=f"orders/{number}-A")
        count = number % 10 + (100 if number == 4 else 0)
        Invoice.objects.bulk_create([Invoice(order=order) for _ in range(count)])
    (console,) = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    shown = console.split("\n", 1)[1]
    shown = shown.replace("shop.Invoice", "records.Invoice")
    assert shown in told_by("hilo_show", "--buckets", no_color=True)
