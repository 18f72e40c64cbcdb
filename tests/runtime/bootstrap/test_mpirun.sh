#!/bin/sh
# Jobs under the system's mpirun: peal is a client of its PMIx server. $1: the job program.
set -u
if ! command -v mpirun >/dev/null 2>&1; then
    echo "skipped: there is no mpirun on this machine"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
job=$1
failed=0

# expect CODE PROCESSES ARGUMENT...: the launcher's exit code.
expect() {
    code=$1
    processes=$2
    shift 2
    TEST_PROCESSES=$processes timeout -k 5 60 \
        mpirun --oversubscribe -n "$processes" "$job" "$@" 2>output.$$
    got=$?
    if [ "$got" -ne "$code" ]; then
        echo "mpirun -n $processes job $*: exit code $got, expected $code"
        cat output.$$
        failed=1
    fi
    rm -f output.$$
}

expect 0 1 ok
expect 0 4 ok
expect 0 5 ok
expect 3 4 exit 2 3
expect 4 4 abort 1 4
exit $failed
