#!/bin/sh
# Run the tests, or those of TESTS, on pairs of Django and Python:
# tests/matrix.sh 5.2:3.11 6.1:3.13
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
summary=

for pair in "$@"; do
    django=${pair%:*} version=${pair#*:}
    venv=.venv-django$django-python$version
    echo "== Django $django on Python $version"
    python=$(tests/find_python.sh "$version") || { failed=1; summary="$summary
Django $django, Python $version: FAILED, no such Python"; continue; }
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || exit 1
    grep -v '^Django==' requirements/example.txt > "$venv/requirements.txt"
    grep -v '^-r' requirements/test.txt >> "$venv/requirements.txt"
    # Where nothing may be missing, there is a compiler too.
    [ "${HILO_TEST_REQUIRE:-}" = 1 ] && cat requirements/compiled.txt >> "$venv/requirements.txt"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check \
        "Django==$django.*" -r "$venv/requirements.txt" || exit 1
    found=$("$venv/bin/python" -c 'import django, sys; print("Django", django.__version__ + ", Python", sys.version.split()[0])')
    if tests/on_each_database.sh "$venv/bin/python" -m pytest -q -n auto --dist loadfile ${TESTS:-}; then
        summary="$summary
$found: passed"
    else
        failed=1
        summary="$summary
$found: FAILED"
    fi
done
echo "== Matrix$summary"
exit $failed
