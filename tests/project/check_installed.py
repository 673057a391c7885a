"""Import all of the installed package and use it: ``python check_installed.py``.

Without ``--extras`` Django is all there is: what needs more must say so, and nothing
else may need it.
"""

import importlib.metadata
import pkgutil
import sys

import django
from django.conf import settings
from django.core.management import call_command

# What needs an extra.
OPTIONAL = "django_hilo.rest_framework"


def modules() -> list[str]:
    import django_hilo

    found = pkgutil.walk_packages(django_hilo.__path__, "django_hilo.")
    return [each.name for each in found if ".migrations." not in each.name]


def import_all(extras: bool) -> int:
    count = 0
    for name in modules():
        # drf-spectacular is no extra of ours: who has it gets its schema.
        if name == "django_hilo.rest_framework.schema":
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            if extras or not name.startswith(OPTIONAL):
                raise
            assert error.name == "rest_framework", error
        else:
            count += 1
    return count


def main() -> None:
    settings.configure(
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "django_hilo",
        ],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        },
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
    )
    django.setup()
    call_command("check", fail_level="WARNING")
    call_command("migrate", verbosity=0)

    import django_hilo
    from django_hilo.generator import next_id

    assert next_id("orders") == "orders/1-A"
    assert django_hilo.__version__ == importlib.metadata.version("django-hilo")
    extras = "--extras" in sys.argv
    count = import_all(extras)
    print(
        f"The wheel works with Django {django.__version__}, "
        f"{'with' if extras else 'without'} its extras: {count} modules imported."
    )


main()
