"""Django as a program; it speaks as draw.mjs does."""

from __future__ import annotations

import json
import sys

import django

django.setup()

from django_hilo.generator import next_id  # noqa: E402
from tests.records.models import Order  # noqa: E402

print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    ids = [next_id(Order) for _ in range(json.loads(line)["count"])]
    print(json.dumps(ids), flush=True)
