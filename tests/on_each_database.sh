#!/bin/sh
# Run a command with HILO_TEST_DATABASE=sqlite, and again for each server whose URL is
# given: tests/on_each_database.sh COMMAND [arguments]; DATABASES may name fewer.
set -u
failed=0
summary=

for database in ${DATABASES:-sqlite postgres mariadb}; do
    case $database in
        sqlite) variable=PATH ;;
        postgres) variable=HILO_TEST_POSTGRES ;;
        mariadb) variable=HILO_TEST_MARIADB ;;
    esac
    if eval "[ -n \"\${$variable:-}\" ]"; then
        echo "== On $database"
        HILO_TEST_DATABASE=$database "$@" || { failed=1; false; } \
            && outcome=passed || outcome=FAILED
    elif [ "${HILO_TEST_REQUIRE:-}" = 1 ]; then
        failed=1
        outcome="FAILED, $variable is not set"
    else
        outcome="skipped, $variable is not set"
    fi
    summary="$summary
$database: $outcome"
done
echo "== Summary$summary"
exit $failed
