#!/bin/sh
# The static library for applications: all parts in one object whose only global names are those that peal.map lists,
# so that none of peal's own meets one of the application's.
#   archive.sh OUTPUT MAP OBJCOPY COMPILER... -- PART.a...
set -eu
output=$1 map=$2 objcopy=$3
shift 3
compiler=
while [ "$1" != -- ]; do
    compiler="$compiler $1"
    shift
done
shift
whole="$output.whole.o"
trap 'rm -f "$whole" "$output.names"' EXIT
tr ';' '\n' <"$map" | sed -n 's/^.*global://; /local:/q; s/^ *//; s/ *$//; /^peal_[a-z_*]*$/p' >"$output.names"
# shellcheck disable=SC2086
$compiler -nostdlib -no-pie -Wl,-r -Wl,--whole-archive "$@" -Wl,--no-whole-archive -o "$whole"
"$objcopy" --wildcard --keep-global-symbols="$output.names" "$whole"
rm -f "$output"
ar rcs "$output" "$whole"
