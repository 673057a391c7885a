#!/bin/sh
# Run the tests and the fellow packages, or the TESTS, or those marked ONLY, on pairs of
# Django and Python: tests/project/matrix.sh 5.2:3.11 6.1:3.13. With INSTALL_ONLY set just make
# the virtual environments.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
summary=

packages() { # venv, files of requirements ...: Django $django, and these without theirs
    into=$1
    shift
    # Where nothing may be missing, there is a compiler too.
    [ "${HILO_TEST_REQUIRE:-}" != 1 ] || set -- "$@" requirements/compiled.txt
    cat "$@" | awk '/^[a-z]/ { django = /^django==/ } !django && !/^-r/' > "$into/requirements.txt"
    # These have hashes, and all that they need is among them; any version of Django has none.
    "$into/bin/python" -m pip install -q --disable-pip-version-check "Django==$django.*" &&
        "$into/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
            -r "$into/requirements.txt" &&
        "$into/bin/python" -m pip check || exit 1
}

for pair in "$@"; do
    django=${pair%:*} version=${pair#*:}
    venv=.venv-django$django-python$version
    echo "== Django $django on Python $version"
    python=$(tests/project/find_python.sh "$version") || { failed=1; summary="$summary
Django $django, Python $version: FAILED, no such Python"; continue; }
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || exit 1
    packages "$venv" requirements/example.txt requirements/test.txt
    [ -z "${INSTALL_ONLY:-}" ] || continue
    found=$("$venv/bin/python" -c 'import django, sys; print("Django", django.__version__ + ", Python", sys.version.split()[0])')
    passed=1
    tests/project/on_each_database.sh "$venv/bin/python" -m pytest -q ${AT_ONCE:--n auto --dist loadfile} \
        ${ONLY:+-m $ONLY} ${TESTS:-} ||
        passed=0
    # Not all of the fellow packages work on 3.15 yet.
    if [ -z "${TESTS:-}${ONLY:-}" ] && [ "$version" != 3.15 ]; then
        # In an environment of their own: the tests above do without them.
        fellows=$venv-fellows
        [ -x "$fellows/bin/python" ] || "$python" -m venv "$fellows" || exit 1
        packages "$fellows" requirements/example.txt requirements/test.txt requirements/fellows.txt
        tests/project/on_each_database.sh "$fellows/bin/python" -m pytest -q \
            --ds=tests.long.fellows.settings tests/long/fellows || passed=0
    fi
    if [ $passed = 1 ]; then
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
