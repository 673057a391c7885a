"""The filter that groups the counters of series in the admin's lists."""

from typing import Any

import pytest

from django_hilo.counters import seed_gapless_number
from django_hilo.counters.gapless import make_counters
from django_hilo.models import HiLoDocument

pytestmark = pytest.mark.django_db

# The page, the field that has series, and the names of three of its counters.
LISTS = {
    "gaplesscounter": ("series.Charge.number", "charges.{}.2026"),
    "hilodocument": ("series.Request.number", "requests.{}"),
}


@pytest.fixture(params=LISTS)
def counters(request) -> Any:
    """The address of a list, and what its series belong to; one is not of them."""
    page, (field, name) = request.param, LISTS[request.param]
    if page == "gaplesscounter":
        make_counters([name.format(tenant) for tenant in range(3)], "default")
        seed_gapless_number("charges-0", 1)
    else:
        rows = [
            HiLoDocument(
                id=f"{name.format(tenant)}/", collection=name.format(tenant), max=1
            )
            for tenant in range(3)
        ]
        alike = HiLoDocument(id="requests-0/", collection="requests-0", max=1)
        HiLoDocument.objects.bulk_create([*rows, alike])
    return f"/admin/django_hilo/{page}/", field


def names_in(page: Any) -> list[str]:
    return sorted(each.collection for each in page.context["cl"].result_list)


def test_series_of_one_model_are_a_choice(admin_client, counters):
    url, field = counters
    page = admin_client.get(url, {"_facets": "True"})
    assert f"{field} (3)" in page.content.decode()
    assert len(names_in(page)) == 4
    assert len(names_in(admin_client.get(url, {"series": field}))) == 3


def test_the_others_are_a_choice_too(admin_client, counters):
    url, _field = counters
    [name] = names_in(admin_client.get(url, {"series": "-"}))
    assert name.endswith("s-0")


def test_a_list_without_series_has_no_such_filter(admin_client):
    seed_gapless_number("charges-0", 1)
    page = admin_client.get("/admin/django_hilo/gaplesscounter/")
    assert "By series" not in page.content.decode()
