#!/usr/bin/env python3
"""What a GPU's messages to another host take, by who posts them: the CPU (MPI's shape), a thread that looks at words, or
the GPU's stream itself; and what goes on while the CPU is away.

    ninja -C build all samples-gpu && bench/gpu_network.py [pingpong] [freeze] [--programs build] [--rounds 9] [--result FILE]

pingpong: samples/embed_cuda/pingpong, a message there and back between two processes, with a kernel at each end; half of a round, beside
the time that a process's CPU works in it, with idle cores and with a busy process on each. The adapter is one of software
(tests/softhca), a process of this machine: rows compare who posts, and say nothing of an adapter's speed. mlx5 alone. The
program says itself whether all messages have come.

freeze: a table of the freeze test: steps of a halo exchange, given to an executor of lists (CPU) or to the GPUs' streams behind
a gate; then every thread of both ranks is stopped, the gate is opened, and what goes on is counted. Without a GPU
its rows say so.

For two quiet GPUs. With one, both processes share it, and each message takes a change of contexts (150 us and more): what is compared then
is the CPU's time."""

import argparse
import datetime
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120
SIZES = {"8 B": 8, "1 KiB": 1024, "64 KiB": 65536}
STEPS = 2000
FORMS = {"CPU posts (MPI's shape)": ["--shape", "mpi"], "thread posts": ["--lower", "network=word"], "stream rings": ["--lower", "network=doorbell"]}
FROZEN = [("list on a CPU", "freeze", ["doorbell", 1000]), ("list on a CPU", "freeze", ["word", 200]),
          ("streams of GPUs", "gpu_freeze", ["doorbell", 100]), ("streams of GPUs", "gpu_freeze", ["word", 100]),
          ("own loop on a stream", "gpu_freeze", ["doorbell", 90]), ("own loop on a stream", "gpu_freeze", ["word", 90])]
PLACES = {"pingpong": "samples/embed_cuda", "softhca": "tests/softhca", "libsofthca.so": "tests/softhca", "freeze": "tests/network", "gpu_freeze": "tests/gpu"}


def program(options, name):
    for path in (options.programs / name, options.programs / PLACES[name] / name):
        if path.is_file():
            return path.resolve()
    sys.exit(f"{options.programs}: no {name}")


def run(options, words, check=True):
    env = {**os.environ, "PEAL_TEST_HOSTS": "2"}
    words = [program(options, "softhca"), program(options, "libsofthca.so"), *words]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, env=env, check=False)
    if done.returncode and check:
        raise RuntimeError(f"{words[2:]}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done


# ---- pingpong ----


class Busy:
    """A process on each core, or on none."""

    def __init__(self, count):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def pingpong(options, size, form):
    """us one way, us of a process's CPU: of the slower one, as it prints them."""
    words = [program(options, "pingpong"), "--processes", "2", "--transport", "mlx5", "--bytes", SIZES[size], "--rounds", options.steps, *FORMS[form]]
    done = run(options, words)
    found = re.findall(r"^process \d: ([0-9.]+) us one way, ([0-9.]+) us of its CPU: the ball is as it must be$", done.stdout, re.M)
    if len(found) != 2:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return tuple(max(float(pair[k]) for pair in found) for k in (0, 1))


def measure(options):
    """results[load][size][form]: pairs, one a round."""
    results = {}
    for load, count in (("idle", 0), ("busy", os.cpu_count())):
        results[load] = {size: {form: [] for form in FORMS} for size in options.sizes}
        with Busy(count):
            for number in range(options.rounds):
                for size in options.sizes:
                    for form in FORMS:
                        results[load][size][form].append(pingpong(options, size, form))
                print(f"{load}: round {number + 1} of {options.rounds}", file=sys.stderr)
    return results


def pingpong_table(results):
    yield "us one way | us of a process's CPU meanwhile, medians:"
    yield f"{'':22}" + "".join(f"{load + ', ' + size:>22}" for load, sizes in results.items() for size in sizes)
    for form in FORMS:
        cells = ([statistics.median(pair[k] for pair in sizes[size][form]) for k in (0, 1)] for sizes in results.values() for size in sizes)
        yield f"{form:22}" + "".join(f"{f'{a:.1f} | {b:.1f}':>22}" for a, b in cells)
    for load, sizes in results.items():
        for size, forms in sizes.items():
            pairs = list(zip(forms["stream rings"], forms["thread posts"], forms["CPU posts (MPI's shape)"]))
            yield (f"{load}, {size}: stream rings / thread posts = {statistics.median(a[0] / b[0] for a, b, _ in pairs):.2f}, "
                   f"/ CPU posts = {statistics.median(a[0] / c[0] for a, _, c in pairs):.2f}; of CPU time "
                   f"{statistics.median(a[1] / b[1] for a, b, _ in pairs):.2f}, {statistics.median(a[1] / c[1] for a, _, c in pairs):.2f}")


# ---- freeze ----


def frozen_row(text):
    """What a run of the freeze test has printed, as cells; None: it could not be."""
    found = re.search(r"^(\w+), (\d+) steps, (.*): (all done|not done) in ([0-9.]+) ms", text, re.M)
    if not found:
        return None
    form, steps, what, done, ms = found.groups()
    ranks = re.findall(r"threads (\d+), in state T (\d+) before and (\d+) after; CPU (\d+) ns, context switches (\d+)", text)
    still = "; ".join(f"{a} of {n} threads in T, {ns} ns, {switches} switches" for n, a, _, ns, switches in ranks)
    right = "yes" if text.strip().endswith(": as it must be") else "NO"
    return [form, steps, what, f"{done} in {ms} ms", still or "-", right]


def freeze_table(options):
    yield "| executor | form | steps | ranks | behind the open gate | each rank meanwhile: stopped, CPU, context switches | as it must be, bits right |"
    yield "|---|---|---|---|---|---|---|"
    for executor, name, words in FROZEN:
        for what in ("stopped", "running"):
            more = [what] if what == "running" else []
            if name == "gpu_freeze":
                of = ["pingpong"] if "loop" in executor else [options.samples / "jacobi2d" / "jacobi2d.yaml"]
                params = [] if "loop" in executor else ["nx=512", "ny=514", "report=100000"]
                done = run(options, [program(options, name), *of, words[1], words[0], what, *params], check=False)
            else:
                done = run(options, [program(options, name), *words, *more], check=False)
            cells = frozen_row(done.stdout)
            if cells is None:
                said = (done.stdout + done.stderr).strip().splitlines() or ["nothing was said"]
                yield f"| {executor} | {words[0]} | {words[1]} | {what} | {said[-1]} | | |"
            else:
                yield f"| {executor} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="pingpong, freeze (default: both)")
    parser.add_argument("--programs", type=Path, default=ROOT / "build", help="a build folder, or one with the programs side by side")
    parser.add_argument("--samples", type=Path, default=ROOT / "samples")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", default=",".join(SIZES), help="some of: " + ", ".join(SIZES))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--result", help="a file for what is printed")
    options = parser.parse_args()
    options.sizes = [size for size in SIZES if size in options.sizes.split(",")]
    lines = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}, {platform.machine()}, {os.cpu_count()} cores"]
    if not options.what or "freeze" in options.what:
        lines += freeze_table(options)
    if not options.what or "pingpong" in options.what:
        lines += [f"{options.rounds} rounds of {options.steps} there and back", *pingpong_table(measure(options))]
    print("\n".join(lines))
    if options.result:
        Path(options.result).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
