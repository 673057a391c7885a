"""Django, drawing from a source or from django-sequences; it speaks as mixing.py says.

``migrate <app>`` and ``migrate <app> zero`` make and drop an app's tables.
"""

import json
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import django

django.setup()

# Models can be imported only now.
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from django_hilo.generator import next_number  # noqa: E402
from tests.long.interop.pace import draw  # noqa: E402


def made(value: Any) -> Any:
    """Make what was deconstructed; a list is a path, arguments and keywords."""
    if not isinstance(value, list):
        return value
    path, arguments, keywords = value
    named = {name: made(part) for name, part in keywords.items()}
    return import_string(path)(*map(made, arguments), **named)


def number(i: int) -> int:
    """Draw; every third time in a transaction that writes and is rolled back."""
    if isinstance(source, Iterator):
        return int(next(source))
    if i % 3:
        return next_number(source)
    with transaction.atomic():
        ContentType.objects.create(app_label=f"{os.getpid()}", model=f"{i}")
        drawn = next_number(source)
        transaction.set_rollback(True)
    return drawn


for line in sys.stdin:
    task, _, words = line.partition(" ")
    try:
        if task == "open":
            source = made(json.loads(words))
        elif task == "migrate":
            call_command(task, *words.split(), verbosity=0)
        else:
            draw(number, *words.split())
        print("done", flush=True)
    except Exception as error:
        traceback.print_exc()
        print("error", repr(error).replace("\n", " "), flush=True)
