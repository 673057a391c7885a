#!/bin/sh
# Run a command with HILO_TEST_DATABASE=sqlite, and again for each server whose URL is
# given: tests/on_each_database.sh COMMAND [arguments]; DATABASES may name fewer, or
# postgres+mariadb, the two at once.
set -u
failed=0
summary=

for database in ${DATABASES:-sqlite postgres mariadb}; do
    missing=
    case $database in
        *postgres*) [ -n "${HILO_TEST_POSTGRES:-}" ] || missing=HILO_TEST_POSTGRES ;;
    esac
    case $database in
        *mariadb*) [ -n "${HILO_TEST_MARIADB:-}" ] || missing=HILO_TEST_MARIADB ;;
    esac
    if [ -z "$missing" ]; then
        echo "== On $database"
        HILO_TEST_DATABASE=$database "$@" || { failed=1; false; } \
            && outcome=passed || outcome=FAILED
    elif [ "${HILO_TEST_REQUIRE:-}" = 1 ]; then
        failed=1
        outcome="FAILED, $missing is not set"
    else
        outcome="skipped, $missing is not set"
    fi
    summary="$summary
$database: $outcome"
done
echo "== Summary$summary"
exit $failed
