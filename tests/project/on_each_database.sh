#!/bin/sh
# Run a command with HILO_TEST_DATABASE=sqlite, and again for each server whose URL is
# given: tests/project/on_each_database.sh COMMAND [arguments]; DATABASES may name fewer, or
# postgres+mariadb, the two at once. mysql is asked for where HILO_TEST_MYSQL is set.
set -u
failed=0
summary=

for database in ${DATABASES:-sqlite postgres mariadb ${HILO_TEST_MYSQL:+mysql}}; do
    missing=
    for kind in $(echo "$database" | tr + ' '); do
        variable=HILO_TEST_$(echo "$kind" | tr a-z A-Z)
        [ "$kind" = sqlite ] || [ -n "$(printenv "$variable")" ] || missing=$variable
    done
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
