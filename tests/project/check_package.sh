#!/bin/sh
# Check the contents of dist/, and that both packages work in an empty environment:
# tests/project/check_package.sh PYTHON
set -eu
cd "$(dirname "$0")/../.."
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

files_of() { # wheel: what is in it, without its metadata
    "$python" -m zipfile -l "$1" | awk 'NR > 1 { print $1 }' | grep -v '\.dist-info/' | sort
}

# The wheel is the package, all of it and nothing else: migrations, commands, templates,
# static files, the catalogue of texts, py.typed.
find django_hilo -type f ! -path '*/__pycache__/*' | sort > "$folder/source"
files_of dist/*.whl > "$folder/wheel"
diff "$folder/source" "$folder/wheel" ||
    fail "The wheel (>) does not hold the files of django_hilo/ (<)"
for needed in py.typed locale/django.pot migrations/0001_initial.py; do
    grep -q "^django_hilo/$needed$" "$folder/wheel" || fail "The wheel lacks $needed"
done
"$python" -m zipfile -l dist/*.whl | grep -q 'licenses/LICENSE' ||
    fail "The wheel lacks the license"

# Whoever builds from the sdist gets the same wheel, and has the tests.
tar -xzf dist/*.tar.gz -C "$folder"
for needed in tests/fields/test_fields.py docs/how-to CHANGELOG.md LICENSE Makefile requirements; do
    [ -e "$folder"/django_hilo-*/"$needed" ] || fail "The sdist lacks $needed"
done
"$python" -m build -q --wheel --outdir "$folder/again" "$folder"/django_hilo-*/
files_of "$folder"/again/*.whl > "$folder/rebuilt"
diff "$folder/wheel" "$folder/rebuilt" || fail "The sdist (>) gives another wheel"

checks=$PWD/tests/project/check_installed.py
wheel=$(ls "$PWD"/dist/*.whl)
"$python" -m venv "$folder/venv"
cd "$folder"

works() { # package, options of check_installed.py: in a new project
    venv/bin/python -m pip install -q --disable-pip-version-check "$1"
    venv/bin/python -m pip check
    rm -rf project && mkdir project
    venv/bin/django-admin startproject shop project
    echo 'INSTALLED_APPS += ["django_hilo"]' >> project/shop/settings.py
    venv/bin/python project/manage.py check --fail-level WARNING
    venv/bin/python project/manage.py migrate -v 0
    shift
    # Read, not named: the folder of a script is on the path, and holds tests/apps/numbers.
    (cd project && DJANGO_SETTINGS_MODULE=shop.settings ../venv/bin/python - "$@" < "$checks")
}
works "$wheel"
works "$wheel[drf,opentelemetry,prometheus,sharding]" --extras
