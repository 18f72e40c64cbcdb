#!/usr/bin/env python3
"""The halo of an MPI program by peal against the same program with MPI alone (samples/exchange_mpi): whole runs in turn.

exchange_mpi.py WITH_MPI WITH_PEAL [--rounds 9] [--processes N] [--mpirun "mpirun --oversubscribe"]

Each program prints a digest, which must be equal, and what a step took. A row is the median of the rounds of both, and the
median of the ratios, of runs that followed each other.
"""
import argparse
import re
import shlex
import statistics
import subprocess
import sys

# processes, columns, rows, steps: small messages, where latency counts, up to a grid that fills caches
CASES = [(2, 16, 16, 40000), (2, 61, 47, 40000), (2, 256, 256, 4000), (2, 1024, 1024, 300), (4, 16, 16, 20000), (4, 61, 47, 20000),
         (4, 256, 256, 4000), (4, 1024, 1024, 300)]


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    found = re.search(r"digest (\w+)\n([\d.]+) us a step", done.stdout)
    if done.returncode or not found:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return found.group(1), float(found.group(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mpi")
    parser.add_argument("peal")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--processes", type=int, help="only the cases of so many")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    options = parser.parse_args()
    print("processes     points   MPI us a step   peal us a step   peal / MPI")
    for processes, nx, ny, steps in CASES:
        if options.processes not in (None, processes):
            continue
        times = {"mpi": [], "peal": []}
        for number in range(options.rounds):
            digests = set()
            for name in ("mpi", "peal") if number % 2 else ("peal", "mpi"):
                words = [*shlex.split(options.mpirun), "-n", str(processes), getattr(options, name), str(nx), str(ny), str(steps)]
                digest, time = run(words)
                digests.add(digest)
                times[name].append(time)
            if len(digests) > 1:
                sys.exit(f"{processes} processes, {nx} x {ny}: the programs differ")
        ratio = statistics.median(b / a for a, b in zip(times["mpi"], times["peal"]))
        print(f"{processes:9d} {f'{nx} x {ny}':>11} {statistics.median(times['mpi']):14.2f} {statistics.median(times['peal']):16.2f} {ratio:12.2f}",
              flush=True)


if __name__ == "__main__":
    main()
