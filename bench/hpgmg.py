#!/usr/bin/env python3
"""samples/hpgmg on a CPU beside HPGMG-FV, the program whose algorithm it is: a solve of 64^3 cells, in turns.

    bench/hpgmg.py SOURCE [--ranks 1,2,4,8] [--vcycles 0,6] [--rounds 9] [--result FILE]

SOURCE is the folder finite-volume/source of HPGMG. It is built twice from a copy: as its authors time it, where a solve is an
F-cycle, and with -DUNLIMIT_FMG_ITERATIONS, where V-cycles follow until the residual is 1e-10 (6 of them); each without and with
OpenMP. The copy times half a second instead of a minute, and the largest of its three problems alone. peal runs the sample as users
type it, with all cores, and with a thread a rank; V-cycles by `vcycles=0` and `vcycles=6`. Its setup is not timed, nor is theirs.

Each number is the mean of a run's solves, without the first ones. HPGMG's has a norm and a copy of the right-hand side in it, peal's has not;
gcc contracts HPGMG's products and sums, peal's it must not. The residuals must agree: to 1e-11 of the right-hand side. Medians over rounds,
and of the ratios, round by round, to the configuration of as many ranks that is the best in the median: without OpenMP for a thread a rank, any
for peal as typed. More ranks may be faster, for both: the table shows them. Run it on a quiet machine with a core a rank."""

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120
FILES = "level.c operators.fv2.c mg.c solvers.c hpgmg-fv.c timers.c".split()
DEFINES = "-DUSE_MPI -DUSE_FCYCLES -DUSE_GSRB -DUSE_BICGSTAB -DUSE_SUBCOMM".split()
FLAGS = {0: [], 6: ["-DUNLIMIT_FMG_ITERATIONS"]}  # by V-cycles behind the F-cycle
# ranks: (exponent of a box's extent, boxes a rank): 64^3 cells
BOXES = {1: [(6, 1), (5, 8)], 2: [(5, 4)], 4: [(5, 2)], 8: [(5, 1)]}
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def output_of(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env={**os.environ, **ROOT_MAY, **more})
    if done.returncode:
        raise SystemExit(f"{shlex.join(map(str, words))}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def build(options, vcycles, threaded):
    """The program's path."""
    folder = Path(options.folder) / "source"
    if not folder.exists():
        output_of(["cp", "-r", options.source, folder])
        main = folder / "hpgmg-fv.c"
        text = re.sub(r"(double\s+minTime\s*=\s*)[0-9.]+", r"\g<1>0.5", main.read_text(encoding="utf-8"))
        main.write_text(re.sub(r"(#define\s+DYNAMIC_RANGE\s+)\d+", r"\g<1>1", text), encoding="utf-8")
    program = Path(options.folder) / f"hpgmg-{vcycles}-{threaded}"
    output_of([*shlex.split(options.compiler), "-std=gnu99", "-O3", "-march=native", *(["-fopenmp"] if threaded else []), *DEFINES,
               *FLAGS[vcycles], "-I", folder, "-o", program, *[folder / name for name in FILES], *shlex.split(options.libraries), "-lm"])
    return program


def by_hpgmg(options, vcycles, ranks, threads, boxes):
    """Seconds a solve, and the last relative residual of 64^3 cells."""
    words = [*shlex.split(options.mpirun), "--bind-to", "core", "--map-by", f"slot:PE={threads}", "-n", ranks]
    text = output_of([*words, options.programs[vcycles, threads > 1], *boxes], OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true")
    timed = text[:text.index("time=")]
    return float(re.search(r"time=([0-9.]+)", text).group(1)), float(re.findall(r"rel=([0-9.e+-]+)", timed)[-1])


def by_peal(options, vcycles, ranks, threads):
    words = [*shlex.split(options.peal), "run", ROOT / "samples" / "hpgmg", "-n", ranks, "--backend", "host", "--json", "--set", "solves=15",
             "--set", f"vcycles={vcycles}", *(["--threads", 1] if threads == 1 else [])]
    result = json.loads(output_of(words))
    return statistics.mean(result["modes"][-1]["seconds_per_step"]["parts"]), result["rows"][-1]["rel"]


def ways_of(ranks, cores):
    """(name, a core a rank?, what runs it)"""
    yield "peal, a thread a rank", True, lambda o, v: by_peal(o, v, ranks, 1)
    yield "peal as typed", False, lambda o, v: by_peal(o, v, ranks, None)
    for extent, count in BOXES[ranks]:
        yield f"HPGMG, {count} boxes of {2 ** extent}^3 a rank", True, lambda o, v, b=(extent, count): by_hpgmg(o, v, ranks, 1, b)
    for extent, count in BOXES[ranks] if cores // ranks > 1 else []:
        yield (f"HPGMG, {count} boxes of {2 ** extent}^3, {cores // ranks} threads", False,
               lambda o, v, b=(extent, count): by_hpgmg(o, v, ranks, cores // ranks, b))


def measure(options, vcycles, ranks):
    """Lines of a table."""
    cores = len(os.sched_getaffinity(0))
    ways = list(ways_of(ranks, cores))
    times = {name: [] for name, *_ in ways}
    for _ in range(options.rounds):
        residuals = []
        for name, _, run in ways:
            seconds, residual = run(options, vcycles)
            times[name].append(seconds)
            residuals.append(residual)
        if max(residuals) - min(residuals) > 1e-11:
            raise SystemExit(f"{vcycles} V-cycles, {ranks} ranks: residuals differ: {residuals}")
    for name, *_ in ways:
        yield f"{ranks} ranks  {name:38}{statistics.median(times[name]) * 1e3:9.2f} ms  [{min(times[name]) * 1e3:.2f} .. {max(times[name]) * 1e3:.2f}]"
    for mine, alone, _ in ways[:2]:
        others = [name for name, is_alone, _ in ways[2:] if is_alone or not alone]
        best = min(others, key=lambda name: statistics.median(times[name]))
        ratio = statistics.median(a / b for a, b in zip(times[mine], times[best]))
        yield f"{ranks} ranks  {mine} / {best} = {ratio:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="finite-volume/source of HPGMG")
    parser.add_argument("--peal", default=str(ROOT / "build" / "tools" / "peal"), help="the command, and words before it")
    parser.add_argument("--compiler", default="mpicc", help="with words that go before the flags")
    parser.add_argument("--libraries", default="", help="words that go behind the sources")
    parser.add_argument("--mpirun", default="mpirun", help="the command, and words behind it")
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--vcycles", default="0,6", help="0, where a solve is an F-cycle alone, or 6, or both")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--result", help="a file for what is printed")
    options = parser.parse_args()
    lines = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}, {platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
             f"{options.rounds} rounds, samples/hpgmg, 64^3 cells"]
    print(lines[0], flush=True)
    chosen = [int(word) for word in options.vcycles.split(",")]
    ranks_of = [int(word) for word in options.ranks.split(",")]
    if not set(chosen) <= set(FLAGS) or not set(ranks_of) <= set(BOXES):
        parser.error(f"V-cycles are some of {sorted(FLAGS)}, ranks some of {sorted(BOXES)}")
    with tempfile.TemporaryDirectory() as options.folder:
        options.programs = {(vcycles, threaded): build(options, vcycles, threaded) for vcycles in chosen for threaded in (False, True)}
        for vcycles in chosen:
            for ranks in ranks_of:
                for line in (f"-- an F-cycle and {vcycles} V-cycles", *measure(options, vcycles, ranks)):
                    print(line, flush=True)
                    lines.append(line)
    if options.result:
        Path(options.result).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
