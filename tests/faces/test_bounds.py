"""Nobody gets more than the bounds allow: of numbers, counters or memory."""

from hashlib import sha256

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from django_hilo._allocation import memory
from django_hilo.identifiers import DocumentId
from django_hilo.models import GaplessCounter, HiLoDocument
from django_hilo.ravendb import names


class TestNumbersThatPythonDoesNotPrint:
    def test_are_refused_with_the_bound(self):
        with pytest.raises(ValueError, match=r"16610 bits must be from 1 to 9223372"):
            str(DocumentId("orders", "", 10**5000))


@pytest.fixture
def api(settings):
    settings.HILO = {
        **settings.HILO,
        "RAVENDB_DATABASES": {"shop": "default"},
        "RAVENDB_TOKENS": [sha256(token).hexdigest() for token in (b"tok", b"other")],
    }
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    return client


NEXT = "/raven/tok/databases/shop/hilo/next"
BACK = "/raven/tok/databases/shop/hilo/return"


def make(api, of: type, name: str, token: str = "tok"):
    """Ask for numbers of a name over RavenDB's protocol."""
    start = f"/raven/{token}/databases/shop/"
    if of is HiLoDocument:
        return api.get(f"{start}hilo/next?tag={name}")
    return api.post(f"{start}identity/next?name={name}")


@pytest.mark.django_db
class TestCounts:
    def test_the_largest_that_a_client_may_claim(self, api, settings):
        settings.HILO = {**settings.HILO, "MAX_CAPACITY": 1000}
        asked = {"tag": "orders", "lastBatchSize": 2**63 - 1}
        assert api.get(NEXT, {**asked, "lastMax": 2**63 - 1}).status_code == 400
        answer = api.get(NEXT, {**asked, "lastMax": 10**9}).json()
        assert answer["High"] - answer["Low"] == 999
        assert answer["Low"] == 1_000_000_001, "MAX_FLOOR_JUMP"


@pytest.mark.django_db
class TestCollections:
    def test_unknown_ones_leave_nothing(self, api):
        held = len(memory.current().memories())
        for number in range(200):
            for path, body in [
                ("collections/c{}/next-id/", {}),
                ("collections/c{}/ranges/", {"size": 1}),
                (
                    "collections/c{}/ranges/return/",
                    {"high": 9, "last": 8, "ticket": "a"},
                ),
                ("gapless/c{}/next/", {}),
            ]:
                url = "/hilo/" + path.format(number)
                assert api.post(url, body, format="json").status_code == 404
            back = f"{BACK}?tag=c{number}&end=9&last=8"
            assert api.put(back).status_code == 204
        assert not HiLoDocument.objects.exists()
        assert not GaplessCounter.objects.exists()
        assert len(memory.current().memories()) == held

    def test_this_process_remembers_none_that_it_lends_from(self, api):
        """Each tag of RavenDB's clients makes a row, as in RavenDB."""
        held = len(memory.current().memories())
        for number in range(50):
            assert api.get(NEXT, {"tag": f"c{number}"}).status_code == 201
            url = f"/hilo/collections/c{number}/ranges/"
            assert api.post(url, {"size": 1}, format="json").status_code == 201
        assert HiLoDocument.objects.count() == 50
        assert len(memory.current().memories()) == held

    @pytest.mark.parametrize("of", [HiLoDocument, GaplessCounter])
    def test_new_names_end_somewhere(self, api, monkeypatch, of):
        monkeypatch.setattr(names, "MOST_COUNTERS", 3)
        for number in range(3):
            assert make(api, of, f"c{number}").status_code in (200, 201)
        answer = make(api, of, "c3")
        assert answer.status_code == 400
        assert "'c3' has no counter" in answer.json()["Message"]
        assert "add the counter in the admin" in answer.json()["Message"]
        for known in ("C0", "orders", "orderlines"):
            assert make(api, of, known).status_code in (200, 201)

    @pytest.mark.parametrize("of", [HiLoDocument, GaplessCounter])
    def test_one_token_leaves_room_to_the_others(self, api, monkeypatch, of):
        monkeypatch.setattr(names, "MOST_OF_ONE", 2)
        for number in range(2):
            assert make(api, of, f"c{number}").status_code in (200, 201)
        assert api.put(f"{BACK}?tag=c1&end=32&last=9").status_code == 204
        assert make(api, of, "c2").status_code == 400
        assert of.objects.count() == 2
        assert make(api, of, "c2", "other").status_code in (200, 201)
        assert make(api, of, "c2").status_code in (200, 201), "it is known now"
