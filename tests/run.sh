#!/bin/sh
# Run the tests on SQLite, and on each server whose URL is given:
#     tests/run.sh PYTHON [pytest arguments]
set -u
python=$1
shift
failed=0

for database in sqlite postgres mariadb; do
    case $database in
        sqlite) variable=PATH ;;
        postgres) variable=HILO_TEST_POSTGRES ;;
        mariadb) variable=HILO_TEST_MARIADB ;;
    esac
    if eval "[ -n \"\${$variable:-}\" ]"; then
        echo "== Tests on $database"
        HILO_TEST_DATABASE=$database "$python" -m pytest "$@" || failed=1
    elif [ "${HILO_TEST_REQUIRE:-}" = 1 ]; then
        echo "== FAILED: no tests on $database: $variable is not set"
        failed=1
    else
        echo "== Skipped the tests on $database: $variable is not set"
    fi
done
exit $failed
