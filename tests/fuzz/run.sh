#!/bin/sh
# Fuzzes by clang's libFuzzer with the address and undefined-behaviour sanitizers: all targets, as
# many at a time as there are processors.
#
#     tests/fuzz/run.sh SECONDS-EACH [FOLDER-FOR-OUTPUT] [TARGET ...]
#
# New inputs and crashes are kept in the output folder (default: a fresh one under /tmp); a crash
# becomes a file of tests/fuzz/seeds. FUZZ_BUILD: a build folder of clang's with -Dfuzz=true.
set -eu
seconds=${1:?seconds}
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath "${2:-$(mktemp -d)}")
[ $# -lt 2 ] && shift $# || shift 2
clang=${CLANG:-clang}
command -v "$clang" >/dev/null || { echo "fuzz: no clang here, skipped"; exit 77; }
cd "$root"
mkdir -p "$out"
build=$(realpath "${FUZZ_BUILD:-$out/build}")
[ -e "$build/build.ninja" ] || CC=$clang meson setup "$build" -Dfuzz=true -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=all >"$out/setup.log" 2>&1 || { tail "$out/setup.log"; exit 1; }
ninja -C "$build" fuzz-programs >"$out/build.log" 2>&1 || { tail -n 30 "$out/build.log"; exit 1; }

# One target: PROGRAM's name without fuzz_.
cat >"$out/one.sh" <<'SCRIPT'
out=$1 build=$2 seconds=$3 target=$4
mkdir -p "$out/$target"
ASAN_OPTIONS=detect_leaks=1 "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 -verbosity=0 -artifact_prefix="$out/$target-" \
    "$out/$target" "tests/fuzz/seeds/$target" >"$out/$target.log" 2>&1 && good=ok || good=FAILED
echo "fuzz $target: $good, $(sed -n 's/stat::number_of_executed_units: *//p' "$out/$target.log") inputs in $seconds s"
[ $good = ok ] || { tail -n 40 "$out/$target.log"; exit 1; }
SCRIPT
[ $# -gt 0 ] || set -- $(ls tests/fuzz/seeds)
status=0
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh "$out/one.sh" "$out" "$build" "$seconds" {} || status=1
echo "fuzz: output in $out"
exit $status
