#!/bin/sh
# Check the contents of dist/, and that the wheel works in an empty environment:
# tests/check_package.sh PYTHON
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$1" -m zipfile -l dist/*.whl > "$folder/contents"
for needed in django_hilo/py.typed django_hilo/migrations/0001_initial.py \
    django_hilo/management/commands/hilo_raise_max.py \
    django_hilo/templates/admin/django_hilo/hilodocument/confirm.html \
    django_hilo/static/django_hilo/server_prefix_preview.js licenses/LICENSE; do
    grep -q "$needed" "$folder/contents" || { echo "The wheel lacks $needed" >&2; exit 1; }
done
if grep -E '(^| )(tests|example_project|docs)/' "$folder/contents"; then
    echo "The wheel holds more than the package" >&2
    exit 1
fi

"$1" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check dist/*.whl
"$folder/venv/bin/python" -m pip check
cd "$folder"
venv/bin/python - <<'END'
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django_hilo"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)

from django_hilo.generator import next_id

assert next_id("orders") == "orders/1-A"
print("The wheel works in an empty environment: Django", django.__version__)
END
