"""Import all of the installed package and use it, in a project of its own.

Without ``--extras`` Django is all there is: what needs more must say so, and nothing
else may need it.
"""

import importlib
import importlib.metadata
import pkgutil
import sys

import django

django.setup()

import django_hilo  # noqa: E402 - its models need the line above
from django_hilo.generator import next_id  # noqa: E402

# What needs an extra, or pytest, and the package that it lacks.
OPTIONAL = {
    "django_hilo.rest_framework": "rest_framework",
    "django_hilo.metrics.opentelemetry": "opentelemetry",
    "django_hilo.metrics.prometheus": "prometheus_client",
    "django_hilo.pytest_plugin": "pytest",
}


def import_all(extras: bool) -> int:
    count = 0
    for _, name, _ in pkgutil.walk_packages(django_hilo.__path__, "django_hilo."):
        # drf-spectacular is no extra of ours: who has it gets its schema.
        if ".migrations." in name or name == "django_hilo.rest_framework.schema":
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            lacking = {OPTIONAL[each] for each in OPTIONAL if name.startswith(each)}
            if error.name not in (lacking & {"pytest"} if extras else lacking):
                raise
        else:
            count += 1
    return count


assert next_id("orders") == "orders/1-A"
assert django_hilo.__version__ == importlib.metadata.version("django-hilo")
extras = "--extras" in sys.argv
count = import_all(extras)
print(
    f"The wheel works with Django {django.__version__}, "
    f"{'with' if extras else 'without'} its extras: {count} modules imported."
)
