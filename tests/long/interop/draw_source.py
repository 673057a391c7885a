"""Django, drawing from a source; it speaks as mixing.py says."""

import json
import sys
import traceback

import django

django.setup()

# Models can be imported only now.
from django.db import connection, transaction  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from django_hilo.generator import next_number  # noqa: E402
from tests.long.interop.pace import draw  # noqa: E402


def number(i: int) -> int:
    """Draw; every third time in a transaction that is rolled back."""
    if i % 3:
        return next_number(source)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT txid_current()")  # a transaction that writes
        drawn = next_number(source)
        transaction.set_rollback(True)
    return drawn


for line in sys.stdin:
    task, _, words = line.partition(" ")
    try:
        if task == "open":
            path, arguments, keywords = json.loads(words)
            source = import_string(path)(*arguments, **keywords)
        else:
            draw(number, *words.split())
        print("done", flush=True)
    except Exception as error:
        traceback.print_exc()
        print("error", repr(error).replace("\n", " "), flush=True)
