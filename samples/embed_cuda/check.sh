#!/bin/sh
# Runs the CUDA samples on all GPUs of this machine and says what passed: exchanges of every kind
# of memory, whole plans in every mode, on 1, 2 and 4 GPUs, and with two processes on one GPU.
#
#   check.sh [FOLDER [GPUS]]     where the programs are; how many GPUs to use (default: all)
folder=${1:-$(dirname "$0")}
gpus=${2:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')}
LD_LIBRARY_PATH=$folder/../../runtime${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
passed=0
failed=0

# NAME COMMAND...: passes if it ends with 0 in time and every process says that it is right.
check() {
    name=$1
    shift
    out=$(timeout -k 5 120 "$@" 2>&1)
    code=$?
    if [ $code -eq 0 ] && ! echo "$out" | grep -q wrong; then
        passed=$((passed + 1))
        echo "PASS $name"
    else
        failed=$((failed + 1))
        echo "FAIL $name (exit code $code)"
        echo "$out" | sed 's/^/    /'
    fi
}

for n in 1 2 4; do
    [ "$n" -le "$gpus" ] || continue
    for memory in mine peal managed pool; do
        check "waves, $n GPUs, memory $memory" \
            "$folder/waves" --processes $n --memory $memory --columns 93 --rows 57 --steps 400
    done
    check "waves, $n GPUs, large" "$folder/waves" --processes $n --columns 4096 --rows 2048 --steps 200
    for mode in auto graph stream sync; do
        check "heat, $n GPUs, mode $mode" "$folder/heat" --processes $n --mode $mode
    done
done
for bytes in 8 100000; do
    for shape in stream mpi; do
        check "pingpong, $bytes bytes, $shape" \
            "$folder/pingpong" --processes 2 --bytes $bytes --shape $shape --rounds 200
    done
done
# Two processes share each GPU: waits are the stream's own then.
check "waves, $((2 * gpus)) processes on $gpus GPUs" \
    "$folder/waves" --processes $((2 * gpus)) --columns 93 --rows 57 --steps 100
check "heat, $((2 * gpus)) processes on $gpus GPUs" "$folder/heat" --processes $((2 * gpus)) --mode stream
echo "$passed passed, $failed failed, $gpus GPUs"
[ $failed -eq 0 ] && [ "$gpus" -gt 0 ]
