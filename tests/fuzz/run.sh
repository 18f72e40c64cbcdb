#!/bin/sh
# Fuzzes by clang's libFuzzer with the address and undefined-behaviour sanitizers.
#
#     tests/fuzz/run.sh SECONDS [FOLDER-FOR-OUTPUT]
#
# New inputs and crashes are kept in the output folder (default: a fresh one under /tmp); a crash
# becomes a file of tests/fuzz/seeds.
set -eu
seconds=${1:?seconds}
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${2:-$(mktemp -d)}
clang=${CLANG:-clang}
command -v "$clang" >/dev/null || { echo "fuzz: no clang here, skipped"; exit 77; }
cd "$root"
sources="$(ls base/*.c | grep -v cuda) $(ls dsl/*.c | grep -v no_reader)"
fuzz() { # fuzz TARGET
    mkdir -p "$out/$1"
    # shellcheck disable=SC2086
    "$clang" -g -O1 -std=gnu11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -Iinclude -I. tests/fuzz/fuzz_$1.c $sources -lyaml -ljansson -lm -lpthread -ldl \
        -o "$out/fuzz_$1" || return 1
    echo "fuzz_$1: $seconds s, output in $out"
    "$out/fuzz_$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -max_len=8192 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$out/" \
        "$out/$1" tests/fuzz/seeds/$1
}
# Side by side: each is one thread.
fuzz yaml &
status=0
fuzz expression || status=1
wait $! || status=1
exit $status
