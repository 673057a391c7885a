"""Django as a program; it speaks as draw.mjs does."""

import json
import sys

import django

django.setup()

from django_hilo.generator import next_id, return_ranges  # noqa: E402
from tests.apps.records.models import Order  # noqa: E402


def draw(count: int) -> list[str]:
    return [next_id(Order) for _ in range(count)]


TASKS = {"open": lambda **site: None, "draw": draw, "close": return_ranges}

for line in sys.stdin:
    task = json.loads(line)
    print(json.dumps(TASKS[task.pop("task")](**task)), flush=True)
