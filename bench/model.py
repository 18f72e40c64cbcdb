#!/usr/bin/env python3
"""Predicted against measured steps on this machine: every sample and mode.

For each sample `peal bench SAMPLE` times its kernels and, in turns, steps of every mode, one worker a
rank, of which the fastest sample counts; `peal explain` predicts every mode from these kernels and the
machine file. Points below 5 us a step are listed, not counted. On GPUs all cases' kernels are compiled
first, many at a time."""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_S = 5e-6
# Specs with params that are not their defaults; {n}: the number of ranks.
CASES = ["cg", "cg n=128", "denoise", "halo", "halo/short.yaml", "hdiff", "hdiff nx=32 ny=32",
         "hdiff/pair.yaml", "heat3d", "jacobi2d", "jacobi2d nx=256 ny=256", "jacobi_until",
         "mesh parts=parts-{n}", "vcycle"]
# Loops long enough for some samples of whole graphs.
GPU_CASES = ["cg", "cg n=4096", "denoise steps=20000", "halo steps=20000", "halo/short.yaml steps=50000", "hdiff steps=10000",
             "hdiff nx=512 ny=512 steps=4000", "hdiff/pair.yaml steps=10000", "heat3d steps=50000",
             "jacobi2d nx=256 ny=256 steps=200000", "jacobi2d nx=1024 ny=1024 steps=100000", "jacobi2d steps=20000",
             "jacobi2d nx=16384 ny=16384 steps=4000", "jacobi_until", "mesh parts=parts-{n} steps=20000", "particles steps=20000",
             "bfs", "vcycle"]


def peal(options, *words):
    limit = 60 if options.backend == "host" else 300
    result = subprocess.run([options.peal, *words], capture_output=True, text=True, timeout=limit, cwd=options.folder)
    if result.returncode:
        raise RuntimeError(f"peal {' '.join(words)}: {result.stderr}")
    return result.stdout


def words_of(case, ranks):
    name, *params = case.replace("{n}", ranks).split()
    return [str(ROOT / "samples" / name)] + [w for p in params for w in ("--set", p)]


def latency(path):
    found = re.search(r"host: {latency_s: ([0-9.e+-]+)", Path(path).read_text(encoding="utf-8"))
    return float(found.group(1)) if found else 0


def warm(options, cases):
    """Compiles kernels for what is measured later, of many cases at a time, by a few steps: those of stream are sync's and graph's, too."""
    def once(case_ranks_mode):
        case, ranks, mode = case_ranks_mode
        try:
            peal(options, "run", *words_of(case, ranks), "-n", ranks, "--backend", "cuda", "--mode", mode, "--steps", "2")
        except (RuntimeError, subprocess.TimeoutExpired):
            pass  # it is said when it is measured
    with ThreadPoolExecutor(options.warm) as pool:
        list(pool.map(once, [(case, ranks, mode) for case in cases for ranks in options.ranks.split(",") for mode in ("fused", "stream")]))


def look(options, words, ranks):
    """Predicted: (simulated, model, with the file's kernels) by mode, and the mode that is fastest; measured by mode; ns a cache line takes."""
    machine, backend = options.machine[0], ("--backend", options.backend)
    name = "-".join(Path(word).stem for word in words if word != "--set").replace("=", "")
    with open(Path(options.folder) / f"{name}-{ranks}.yaml", "w", encoding="utf-8") as file:
        if options.backend == "host":
            line_s = json.loads(peal(options, "bench", "--machine", machine, *backend, "--json"))["line_seconds"]
            machine = min(options.machine, key=lambda path: abs(latency(path) - line_s))
        seen = json.loads(peal(options, "bench", *words, "-n", ranks, "--machine", machine, *backend,
                               "--save-machine", file.name, "--json"))
        measured = {mode: cases["spec"] for mode, cases in seen["seconds_per_step"].items() if "spec" in cases}
        told = json.loads(peal(options, "explain", *words, "-n", ranks, "--machine", file.name, "--json"))
    plain = json.loads(peal(options, "explain", *words, "-n", ranks, "--machine", machine, "--json"))
    plain = {p["mode"]: p["seconds_per_step"] for p in plain["predictions"]}
    predicted = {p["mode"]: (p["seconds_per_step"], p["model"]["seconds"], plain[p["mode"]])
                 for p in told["predictions"]}
    measured = {mode: seconds for mode, seconds in measured.items() if mode in predicted}
    return predicted, told["fastest"], measured, 1e9 * seen.get("line_seconds", 0)


def report(points, winners, lines):
    counted = sorted(abs(p["error"]) for p in points if p["measured"] >= LEAST_S)
    if not counted:
        sys.exit("no point of at least 5 us was measured")
    print(f"\n{len(counted)} points of at least 5 us: median error {100 * statistics.median(counted):.0f} %, "
          f"worst {100 * counted[-1]:.0f} %; targets 15 % and 40 %")
    plain = sorted(abs(p["plain"]) for p in points if p["measured"] >= LEAST_S)
    print(f"with the machine file's `default` for all kernels: median error {100 * statistics.median(plain):.0f} %, "
          f"worst {100 * plain[-1]:.0f} %")
    print(f"mode predicted fastest: within 10 % of the fastest measured in {sum(w <= 1.1 for w in winners)} of "
          f"{len(winners)} cases, worst {max(winners):.2f}")
    if max(lines) > 0:
        print(f"line: a cache line from one core to the other, when the case was measured: {min(lines):.0f} to {max(lines):.0f} ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--machine", action="append", help="a machine file; of several that one is taken whose latency is "
                        "nearest to what a cache line takes when a case is measured (default: machines/host2*.yaml)")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--backend", choices=["host", "cuda"], default="host",
                        help="cuda: a process a GPU (give a machine file)")
    parser.add_argument("--warm", type=int, default=max(2, (os.cpu_count() or 2) // 2),
                        help="cuda: compile so many cases' kernels at a time first; 0: not")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds: cases that do not begin in time are left out, and named")
    parser.add_argument("--keep", help="a folder: the machine files with the kernels' times stay there, one a case")
    parser.add_argument("--case", action="append", help="one case, e.g. \"cg n=128\"; may be repeated")
    options = parser.parse_args()
    files = options.machine or sorted((ROOT / "machines").glob("host2*.yaml"))
    options.machine = [str(Path(path).resolve()) for path in files]  # peal runs in a folder of its own
    begin = time.monotonic()
    cases = options.case or (CASES if options.backend == "host" else GPU_CASES)
    options.peal = str(Path(options.build).resolve() / "tools/peal")
    print(f"peal: predicted and measured steps, {datetime.date.today()}\ncommand: bench/model.py {' '.join(sys.argv[1:])}")
    print(f"machine: {', '.join(Path(path).name for path in options.machine)}; {os.cpu_count()} cores, {platform.system()} "
          f"{platform.release().split('-')[0]}; load {', '.join(f'{x:.1f}' for x in os.getloadavg())}\n")
    print(f"{'us a step':36} {'ranks':>5} {'mode':>7} {'measured':>10} {'simulated':>10} {'error':>6} {'model':>10} {'error':>6}  line, ns")
    points, winners, lines = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        options.folder = options.keep or folder
        if options.backend == "cuda" and options.warm > 0:
            warm(options, cases)
            print(f"kernels compiled: {time.monotonic() - begin:.0f} s", flush=True)
        for case in cases:
            for ranks in options.ranks.split(","):
                if time.monotonic() - begin > options.limit:
                    print(f"{case:36} {ranks:>5} left out: no time left")
                    continue
                try:
                    predicted, winner, fastest, line_ns = look(options, words_of(case, ranks), ranks)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{case:36} {ranks:>5} FAILED: {str(error).splitlines()[0]}", flush=True)
                    continue
                lines.append(line_ns)
                if winner in fastest:  # a device may have no room for it
                    winners.append(fastest[winner] / min(s for mode, s in fastest.items() if mode != "serial"))
                for mode in fastest:
                    first = mode == next(iter(fastest))
                    simulated, model, plain = predicted[mode]
                    point = {"measured": fastest[mode], "error": simulated / fastest[mode] - 1,
                             "plain": plain / fastest[mode] - 1}
                    points.append(point)
                    print(f"{case if first else '':36} {ranks:>5} {mode:>7} {fastest[mode] * 1e6:10.3f} "
                          f"{simulated * 1e6:10.3f} {100 * point['error']:+5.0f}% {model * 1e6:10.3f} "
                          f"{100 * (model / fastest[mode] - 1):+5.0f}%{f'  {line_ns:8.0f}' if first and line_ns > 0 else ''}", flush=True)
    report(points, winners, lines)


if __name__ == "__main__":
    main()
