"""The page of the REST endpoints shows what they answer."""

import json
import re

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.support.commands import PROJECT

PAGE = (PROJECT / "docs/reference/rest.md").read_text()
MESSAGES = re.findall(r"^```http\n(.+?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WHEN = re.compile(r"20\d\d-[\dT:.-]+(Z|[+-]\d\d:\d\d)")


@pytest.mark.django_db
def test_requests_are_answered_as_the_page_says():
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("boss"))
    ticket = ""
    pairs = list(zip(MESSAGES[::2], MESSAGES[1::2], strict=True))
    assert len(pairs) > 6
    for (request, sent), (status, shown) in pairs:
        method, address, _ = request.split()
        answer = client.generic(
            method,
            address,
            _body(sent).replace("TICKET", ticket),
            content_type="application/json",
        )
        got = answer.json()
        ticket = got.get("ticket", ticket)
        assert f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}" == status
        hidden = json.dumps(got).replace(ticket or "-none-", "TICKET")
        said = json.loads(WHEN.sub("WHEN", _body(shown)))
        assert json.loads(WHEN.sub("WHEN", hidden)) == said, request


def _body(message: str) -> str:
    """Return what follows the headers."""
    return message.partition("\n\n")[2]
