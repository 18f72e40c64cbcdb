#!/usr/bin/env python3
# What `peal explain` says of modes before a run is what a run does: no graph is first refused when its plan is
# made, and none that could be made is refused before. Samples, specs of tests, random graphs; on a stand-in of
# the driver.
#
#   rehearsal_test.py STANDIN GPU_TRIALS ROOT [--seeds FIRST:COUNT]
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "share"))
import share  # noqa: E402

MODES = ("graph", "fused")
LOWERINGS = ("", "steps=8", "signal=memop,copy=engine", "until=while", "lanes=2", "order=tickets", "order=paper")
LIMIT_S = 300


def line_of(name, what, ranks, mode, lower):
    words = [f"name={name}|{mode} {lower}", what, f"ranks={ranks}", f"mode={mode}", "backend=cuda", "deadline=30", "rehearses=1"]
    return "\t".join(words + ([f"lower={lower}"] if lower else []))


def lines_by_processes(options):
    """{processes: lines}: each spec on one, two and four ranks, in one process and in one each."""
    lines = {1: [], 2: [], 3: [], 4: []}
    specs = sorted(glob.glob(f"{options.root}/samples/*/*.yaml") + glob.glob(f"{options.root}/tests/gpu/specs/*.yaml") +
                   glob.glob(f"{options.root}/tests/specs/run/*.yaml"))
    for turn, path in enumerate(specs):
        for ranks in (1, 2, 4):
            for mode in MODES:
                lower = LOWERINGS[(turn + ranks) % len(LOWERINGS)] if mode == "graph" or turn % 3 else ""
                for processes in {1, ranks}:
                    lines[processes].append(line_of(os.path.relpath(path, options.root), f"spec={path}", ranks, mode, ""))
                    if lower:
                        lines[processes].append(line_of(os.path.relpath(path, options.root), f"spec={path}", ranks, mode, lower))
    first, count = options.seeds.split(":")
    seeds = subprocess.run([options.trials, "seeds", first, count], capture_output=True, text=True, check=True).stdout
    for seed, ranks in (map(int, row.split()[:2]) for row in seeds.splitlines()):
        for mode in MODES:
            lines[ranks if seed % 2 and ranks < 5 else 1].append(line_of(f"random {seed}", f"seed={seed}", ranks, mode, ""))
    return lines


def run(options, folder, processes, lines):
    path = os.path.join(folder, f"list{processes}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    env = {**os.environ, "LD_LIBRARY_PATH": options.standin, "STANDIN_DEVICES": str(processes), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
    job = subprocess.run([options.trials, str(processes), folder, path], env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    results = [json.loads(line) for line in job.stdout.splitlines() if '"status"' in line]
    if len(results) < len(lines):
        print(f"FAILED {processes} processes: {len(results)} results of {len(lines)}: {job.stderr[-2000:]}")
    return results


def difference(result):
    """What a run says and what was said before it: None where they agree."""
    said, done = result["rehearsed"], " / ".join(result["messages"])
    of_mode = "E664" in result["errors"] or "E355" in result["errors"]
    if result["status"] == "ok":
        return f"refused before the run alone: {said}" if said else None
    if not of_mode:
        return None  # a spec that does not suit so many ranks: said by `peal check`
    if not said:
        return f"refused by the run alone: {done}"
    return None if said.split(" [")[0].split(" (rank")[0] in done else f"before the run: {said}; by the run: {done}"


def main():
    parser = argparse.ArgumentParser()
    for word in ("standin", "trials", "root"):
        parser.add_argument(word, type=os.path.abspath)
    parser.add_argument("--seeds", default="1:300")
    options = parser.parse_args()
    counts = {"made": 0, "refused": 0, "unsuitable": 0}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for processes, lines in lines_by_processes(options).items():
            chosen = share.taken(lines, 6, processes)
            results = run(options, folder, processes, chosen)
            failed += len(results) < len(chosen)
            for result in results:
                what = difference(result)
                failed += what is not None
                if what:
                    print(f"FAILED {result['name']} in {processes} processes: {what}")
                counts["made" if result["status"] == "ok" else "refused" if result["rehearsed"] else "unsuitable"] += 1
    print(", ".join(f"{count} {word}" for word, count in counts.items()) + f", {failed} failed")
    sys.exit(failed > 0 or counts["made"] == 0 or counts["refused"] == 0)


if __name__ == "__main__":
    main()
