#!/usr/bin/env python3
"""Two builds of peal in turns on one machine: does a change cost time?

Each round runs every case with the old program, the new one, and the old one again. A row says what a
step takes with each, how new compares with old, and, as a yardstick, how old compares with itself.
Medians of at least nine rounds. Results are compared, too: each case's digest must be the same in all
runs of both programs.

  gpu_turns.py --old FILE --new FILE --samples FOLDER [--processes N] [--rounds N] [--limit SECONDS]
  FILE: tests/gpu/gpu_trials of a build. The first run of each compiles kernels and does not count."""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CASE_S = 60  # at most, with compiling

# Sample, settings, ranks, modes with their lowering words.
GRAPH, FUSED, STREAM, SYNC = ("graph", ""), ("fused", ""), ("stream", ""), ("sync", "")
JACOBI = "jacobi2d/jacobi2d"
CASES = [(JACOBI, ["nx=256", "ny=256", "steps=6000", "report=6000"], 1, (GRAPH, FUSED, STREAM)),
         (JACOBI, ["nx=1024", "ny=1024", "steps=6000", "report=6000"], 1, (GRAPH, FUSED, STREAM)),
         (JACOBI, ["nx=4096", "ny=4096", "steps=600", "report=600"], 1, (GRAPH, FUSED, STREAM)),
         (JACOBI, ["nx=1024", "ny=1024", "steps=3000", "report=1"], 1, (GRAPH, FUSED)),
         (JACOBI, ["nx=1024", "ny=1024", "steps=1000", "report=1000"], 4, (GRAPH, FUSED, STREAM, SYNC)),
         (JACOBI, ["nx=512", "ny=512", "steps=3000", "report=3000"], 1,
          (("fused", "order=grid"), ("fused", "order=tickets"), ("fused", "order=paper"))),
         ("jacobi_until/jacobi_until", [], 1, (GRAPH, FUSED, ("graph", "until=while"))),
         ("heat3d/heat3d", ["steps=3000", "report=1000"], 1, (GRAPH, FUSED)),
         ("halo/halo", ["steps=1000", "report=500"], 4, (GRAPH, FUSED)),
         ("cg/cg", ["n=256", "limit=300"], 1, (GRAPH, FUSED, STREAM)),
         ("vcycle/vcycle", ["cycles=5", "tol=0"], 1, (GRAPH, FUSED)),
         ("hdiff/hdiff", ["steps=500", "report=100"], 1, (GRAPH, FUSED, STREAM)),
         ("hdiff/hdiff", ["nx=256", "ny=256", "steps=100", "report=50"], 4, (GRAPH,)),
         ("particles/particles", ["steps=1000"], 2, (GRAPH, FUSED)),
         ("bfs/bfs", [], 1, (STREAM, GRAPH))]
# Programs from before the rename say it so.
OLD_WORDS = {"order=paper": "order=period"}


def trials(samples):
    """{name: line of a list}."""
    lines = {}
    for sample, words, ranks, modes in CASES:
        for mode, lower in modes:
            sizes = " ".join(word for word in words if not word.startswith("steps"))
            ways = f"{mode}{' ' + lower if lower else ''}"
            name = f"{sample.split('/')[0]} {sizes}, {ranks} rank{'s' * (ranks > 1)}, {ways}"
            lines[name] = "\t".join([f"name={name}", f"spec={samples}/{sample}.yaml", f"ranks={ranks}", f"mode={mode}",
                                     "backend=cuda", "deadline=30", *(f"set={word}" for word in words),
                                     *([f"lower={lower}"] if lower else [])])
    return lines


def run(program, processes, lines, cache, words=()):
    """{name: result} of one process that runs all cases."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list")
        text = "\n".join(lines.values()) + "\n"
        for now, before in words:
            text = text.replace(f"lower={now}", f"lower={before}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        job = subprocess.run([program, str(processes), folder, path], env={**os.environ, "XDG_CACHE_HOME": cache},
                             capture_output=True, text=True, check=False, timeout=CASE_S * len(lines))
    results = {}
    for line in job.stdout.splitlines():
        if '"status"' in line:
            result = json.loads(line.replace("-nan", "NaN").replace(": nan", ": NaN"))
            results[result["name"]] = result
    if len(results) < len(lines):
        print(job.stderr[-1000:], file=sys.stderr)
    return results


def compile_all(programs, processes, lines, caches, words_of):
    """Every case once, many at a time: what compiles them keeps the machine's cores busy."""
    begin = time.monotonic()

    def compile_one(program, name):
        results = run(program, processes, {name: lines[name]}, caches[program], words_of[program])
        status = results.get(name, {}).get("status", "no result")
        print(f"{time.monotonic() - begin:5.0f} s: {name}: {status}", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        for name in lines:
            for program in programs:
                pool.submit(compile_one, program, name)


def step_us(result):
    return 1e6 * result["seconds"] / max(result["steps"], 1)


def report(lines, taken, digests):
    bad = 0
    print(f"{'case':72s} {'old us':>9s} {'new us':>9s} {'new/old':>8s} {'old/old':>8s}  (medians; a step)")
    ratios, spreads = [], []
    for name in lines:
        rows = taken.get(name, [])
        if len(digests.get(name, ())) > 1:
            bad += 1
            print(f"{name:72s} DIFFERS: {', '.join(sorted(digests[name]))}")
        if not rows:
            print(f"{name:72s} no result")
            continue
        new_old = statistics.median(new / ((old + again) / 2) for old, new, again in rows)
        old_old = statistics.median(max(old, again) / min(old, again) for old, new, again in rows)
        ratios.append(new_old)
        spreads.append(old_old)
        print(f"{name:72s} {statistics.median(r[0] for r in rows):9.3f} {statistics.median(r[1] for r in rows):9.3f} "
              f"{new_old:8.3f} {old_old:8.3f}")
    if ratios:
        print(f"new/old: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}; "
              f"old/old: median {statistics.median(spreads):.3f}, at most {max(spreads):.3f}; results that differ: {bad}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--samples", required=True)
    parser.add_argument("--old-words", action="store_true", help="the old program says order=period")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, default=500, help="seconds; whole rounds count")
    options = parser.parse_args()
    lines, taken, digests = trials(os.path.abspath(options.samples)), {}, {}
    begin, rounds = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as cache:
        words_of = {options.old: OLD_WORDS.items() if options.old_words else (), options.new: ()}
        caches = {program: os.path.join(cache, str(i)) for i, program in enumerate((options.old, options.new))}
        compile_all((options.old, options.new), options.processes, lines, caches, words_of)
        warm, longest = time.monotonic() - begin, 0
        while rounds < options.rounds and time.monotonic() - begin + longest < options.limit:
            order, start = [options.old, options.new, options.old], time.monotonic()
            results = [run(program, options.processes, lines, caches[program], words_of[program]) for program in order]
            for name in lines:
                found = [result.get(name) for result in results]
                if all(f and f["status"] == "ok" for f in found):
                    taken.setdefault(name, []).append(tuple(step_us(f) for f in found))
                    digests.setdefault(name, set()).update(f["digest"] for f in found)
                elif any(found):
                    print(f"{name}: {[f and f['status'] for f in found]} "
                          f"{[m for f in found if f for m in f['messages']][:2]}", file=sys.stderr)
            rounds += 1
            print(f"round {rounds}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
            longest = max(longest, time.monotonic() - start)
    print(f"{rounds} rounds, {warm:.0f} s of compiling before, {time.monotonic() - begin:.0f} s in all")
    return 1 if report(lines, taken, digests) else 0


if __name__ == "__main__":
    sys.exit(main())
