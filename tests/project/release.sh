#!/bin/sh
# Make a release of the current commit, except for its upload: make release VERSION=1.2.3,
# or tests/project/release.sh PYTHON VERSION. Builds wheel and sdist twice, compares them,
# writes dist/ with their hashes, and tags the commit.
set -eu
cd "$(dirname "$0")/../.."
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
version=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ready=yes

refuse() {
    echo "Not released: $1" >&2
    ready=
}

echo "$version" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+' ||
    { refuse "name a version, such as: make release VERSION=1.2.3"; exit 1; }
[ -z "$(git status --porcelain)" ] || refuse "commit your changes, or remove them"
! git rev-parse -q --verify "refs/tags/$version" > /dev/null || refuse "the tag $version exists"
grep -Fqx "__version__ = \"$version\"" django_hilo/__init__.py ||
    refuse "__version__ in django_hilo/__init__.py is not $version"
[ "$(grep -m 1 '^## ' CHANGELOG.md | sed 's/(20[0-9-]*)$/(date)/')" = "## $version (date)" ] ||
    refuse "CHANGELOG.md does not begin with $version and its date, such as: ## $version (2026-01-31)"
grep -Eq '^home = "https://[^"]+"$' pyproject.toml ||
    refuse "home in pyproject.toml is empty: set it to the public address of the repository"
[ "$ready" ] || exit 1

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
build() { # folder: of the commit alone
    mkdir "$1"
    git archive HEAD | tar -x -C "$1"
    (cd "$1" && "$python" -m build --no-isolation) > "$1.log" 2>&1 ||
        { cat "$1.log" >&2; exit 1; }
}
build "$folder/first"
# As somebody else would build it.
(umask 077 && TZ=Asia/Tokyo && export TZ && build "$folder/second")
diff -r "$folder/first/dist" "$folder/second/dist" || refuse "two builds of this commit differ"
[ "$ready" ] || exit 1

rm -rf dist
cp -r "$folder/first/dist" dist
(cd dist && sha256sum django_hilo-* > SHA256SUMS && cat SHA256SUMS)
git tag -a -m "$version" "$version"
echo "The commit is tagged, and dist/ has what to upload. One command is left:"
echo "git push origin $version && $1 -m twine upload dist/*.whl dist/*.tar.gz"
