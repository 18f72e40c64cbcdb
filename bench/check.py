#!/usr/bin/env python3
"""What a check, and the schedule of one rank, cost: seconds of the processor and peak memory.

    bench/check.py [WORD ...]     (cases whose names have one of the words; --peal PATH --rounds N)

Statements: exchanges one after the other, and V-cycles of a multigrid with all levels' sweeps written
out. Messages: in pairs, rooted, all to all, along rows and columns. A line is the median of the rounds."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = "#include <peal/kernel.h>\nPEAL_KERNEL(t) {}\n"
PAIRS = """
  - {recv: d, from: rank - 1, when: rank % 2 == 1}
  - {send: a, to: rank + 1, when: rank % 2 == 0}
  - {recv: d, from: rank + 1, when: rank % 2 == 0}
  - {send: a, to: rank - 1, when: rank % 2 == 1}
"""
ROOTED = """
  - {send: b, to: all, offsets: 4, when: rank == 0, tag: 1}
  - {recv: a, from: 0, tag: 1}
  - {send: a, to: 0}
  - {recv: b, from: all, offsets: 4, when: rank == 0}
"""
ALL = """
  - {send: b, to: all, offsets: 4}
  - {recv: c, from: all, offsets: 4}
"""
ROWS = """
  - {send: b, to: {along: x}, offsets: 4}
  - {recv: c, from: {along: x}, offsets: 4}
  - {send: b, to: {along: y}, offsets: 4, tag: 1}
  - {recv: c, from: {along: y}, offsets: 4, tag: 1}
"""


def exchanges(count):
    """Each of two fields from the other, count times."""
    lines = ["peal: 1", "topology: {dims: [auto, auto]}", "kernels: k.c",
             "fields: {u: {size: [1024, 1024], halo: 1}, v: {like: u}}", "repeat: 10", "step:"]
    for i in range(count):
        a, b = "uv" if i % 2 == 0 else "vu"
        lines += [f"  - {{exchange: {a}}}",
                  f"  - {{task: t{i}, kernel: t, box: {b}, read: {{{a}: {{grow: 1}}}}, write: {b}}}"]
    return "\n".join(lines) + "\n"


def cycles(count, levels, sweeps):
    """V-cycles: sweeps down, sweeps up, an exchange before each."""
    lines = ["peal: 1", "topology: {dims: [auto, auto, auto]}", "kernels: k.c", "fields:",
             "  u0: {size: [128, 128, 128], halo: 1, align: 16}"]
    lines += [f"  u{k}: {{like: u0, coarsen: {2 ** k}}}" for k in range(1, levels)]
    lines += [f"  f{k}: {{like: u{k}}}" for k in range(levels)]
    lines += ["repeat: 10", "step:"]
    for cycle in range(count):
        for k in [*range(levels), *reversed(range(levels - 1))]:
            for sweep in range(sweeps):
                name = f"s{cycle}_{k}_{len(lines)}"
                lines += [f"  - {{exchange: {{u{k}: {{star: 1}}}}}}",
                          f"  - {{task: {name}, kernel: t, box: u{k}, read: f{k}, "
                          f"update: {{u{k}: {{star: 1}}}}, independent: true}}"]
    return "\n".join(lines) + "\n"


def messages(statements, dims="[auto]"):
    return (f"peal: 1\ntopology: {{dims: {dims}}}\nrepeat: 10\n"
            "buffers: {a: {count: 4}, b: {count: 4 * ranks}, c: {count: 4 * ranks}, d: {count: 4}}\nstep:\n" + statements.strip("\n") + "\n")


# name, spec, ranks, arguments
CHECK, PLAN, STREAM = ["check", "-q"], ["plan", "--rank", "0", "--mode", "sync"], ["plan", "--rank", "0", "--mode", "stream"]
CASES = [
    ("250 exchanges, check", exchanges(250), 4, CHECK),
    ("500 exchanges, check", exchanges(500), 4, CHECK),
    ("500 exchanges, plan of a rank, sync", exchanges(500), 4, PLAN),
    ("500 exchanges, plan of a rank, stream", exchanges(500), 4, STREAM),
    ("720 statements, 8 ranks, check", cycles(10, 5, 4), 8, CHECK),
    ("720 statements, 64 ranks, check", cycles(10, 5, 4), 64, CHECK),
    ("720 statements, 8 ranks, plan of a rank, stream", cycles(10, 5, 4), 8, STREAM),
    ("720 statements, 64 ranks, plan of a rank, stream", cycles(10, 5, 4), 64, STREAM),
    ("pairs, 1e6 ranks, check", messages(PAIRS), 1000000, CHECK),
    ("rooted, 1e6 ranks, check", messages(ROOTED), 1000000, CHECK),
    ("all to all, 1000 ranks, check", messages(ALL), 1000, CHECK),
    ("all to all, 300 ranks, plan of a rank, sync", messages(ALL), 300, PLAN),
    ("rows and columns, 40000 ranks, check", messages(ROWS, "[auto, auto]"), 40000, CHECK),
    ("samples/bfs, 40000 ranks, check", ROOT / "samples/bfs", 40000, CHECK),
]


def run(peal, folder, spec, ranks, arguments):
    """Seconds of the processor, MiB at most."""
    path = spec
    if isinstance(spec, str):
        path = folder / "spec.yaml"
        path.write_text(spec)
    child = subprocess.Popen([peal, arguments[0], path, "-n", str(ranks), *arguments[1:]],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"peal {arguments[0]} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("words", nargs="*")
    arguments.add_argument("--peal", default=ROOT / "build/tools/peal")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    print(f"{'':52} {'s':>8} {'MiB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "k.c").write_text(KERNELS)
        for name, spec, ranks, verb in CASES:
            if options.words and not any(word in name for word in options.words):
                continue
            rounds = [run(options.peal, folder, spec, ranks, verb) for _ in range(options.rounds)]
            seconds, megabytes = (statistics.median(column) for column in zip(*rounds))
            print(f"{name:52} {seconds:8.2f} {megabytes:8.0f}", flush=True)


if __name__ == "__main__":
    main()
