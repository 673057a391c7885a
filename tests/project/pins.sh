#!/bin/sh
# Write requirements/: the packages of each dependency group in pyproject.toml and all that
# these need, with exact versions and hashes: tests/project/pins.sh UV [options of
# uv pip compile]. Without --upgrade, a version stays as long as it fits.
set -eu
cd "$(dirname "$0")/../.."
uv=$1
shift
lowest=$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' pyproject.toml)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

compile() { # output, options ...: for each supported Python and system
    output=$1
    shift
    # With extras: pip refuses those without a pin when there is a newer version.
    "$uv" pip compile -q --universal --python-version "$lowest" --no-strip-extras \
        --generate-hashes --no-emit-index-url --no-emit-find-links --annotation-style line \
        --custom-compile-command "make pins" --output-file "$output" "$@"
}

groups=$(sed -n '/^\[dependency-groups\]/,/^\[tool/s/^\([a-z]*\) = \[.*/\1/p' pyproject.toml)
# All of them together first, so that a package has one version in all files but one.
together=$(echo "$groups" | grep -vx apart)
ls requirements/*.txt | grep -v /apart.txt | xargs grep -hv '^-r' > "$folder/all"
compile "$folder/all" $(printf -- '--group pyproject.toml:%s ' $together) "$@"

for group in $groups; do
    base=$(awk -v "start=$group = [" 'index($0, start) == 1 { inside = 1 }
        inside && match($0, /include-group = "[a-z]+/) { print substr($0, RSTART + 17, RLENGTH - 17); exit }
        inside && /\]$/ { exit }' pyproject.toml)
    file=requirements/$group.txt
    # What the included file has is not repeated, unless a marker limits it there.
    included=
    [ -z "$base" ] || included=$(sed -n 's/^\([a-z0-9.-]*\)\(\[.*\]\)*==[^;]*$/--no-emit-package \1/p' "$folder/$base.whole")
    # The versions that are in the output already stay.
    cp "$folder/all" "$folder/$group"
    compile "$folder/$group" --group "pyproject.toml:$group" $included
    sed -e '/^# The following packages were excluded/,$d' ${base:+-e "2a -r $base.txt"} \
        "$folder/$group" > "$file"
    cat "$file" ${base:+"$folder/$base.whole"} > "$folder/$group.whole"
done
