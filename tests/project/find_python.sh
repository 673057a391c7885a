#!/bin/sh
# Print a Python: find_python.sh gives one of 3.11 or newer, find_python.sh 3.12 just
# that version, from the PATH, from pyenv or, where nothing may be missing, from Debian's
# unstable suite. Fails with a sentence where there is none.
set -u
wanted=${1:-}

fits() {
    "$1" -c "
import sys
found, wanted = sys.version_info[:2], '$wanted'
sys.exit(found < (3, 11) if not wanted else '%d.%d' % found != wanted)
" 2>/dev/null
}

for candidate in ${PYTHON:-} "python$wanted" python3 python3.15 python3.14 python3.13 python3.12 python3.11; do
    if fits "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done
if [ -n "$wanted" ] && command -v pyenv >/dev/null 2>&1; then
    version=$(pyenv latest "$wanted" 2>/dev/null)
    if [ -n "$version" ] && fits "$(pyenv prefix "$version")/bin/python"; then
        echo "$(pyenv prefix "$version")/bin/python"
        exit 0
    fi
fi
if [ -n "$wanted" ] && [ "${HILO_TEST_REQUIRE:-}" = 1 ] && [ "$(id -u)" = 0 ] &&
    command -v debootstrap >/dev/null 2>&1; then
    other=$("$0") && (cd "$(dirname "$0")/../.." &&
        "$other" -m tests.support.debian_unstable "$wanted") && exit 0
fi
echo "No Python ${wanted:-3.11 or newer} found. Install it (Debian: apt install" \
    "python3 python3-venv), or name one: make PYTHON=/path/to/python" >&2
exit 1
