#!/usr/bin/env python3
"""Shows on a machine with NVIDIA GPUs that peal computes the same in every mode, and ends in time with
a reason when something is wrong.

    run.py [--quick | --full] [--gpus N] [--limit SECONDS] [--programs FOLDER] [--result FILE]

FOLDER holds the programs peal, gpu_trials and, for the group litmus, gpu_litmus (ninja tests-gpu, by
nvcc), for the group freeze gpu_freeze, softhca and libsofthca.so, side by side or as Meson puts them; the samples are
those beside this folder, or those in FOLDER. One line a check; the last line counts them. Without a
GPU nothing is checked (exit code 77). --backend host tries this program itself out."""

import argparse
import datetime
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import checks
import control
import faults
import freeze
import jobs
import litmus
import reports

HERE = Path(__file__).resolve().parent
SKIPPED = 77


class Report:
    """One line a check."""

    def __init__(self, path):
        self.rows = []
        self.file = open(path, "w", encoding="utf-8") if path else None

    def say(self, line):
        print(line, flush=True)
        if self.file:
            print(line, file=self.file, flush=True)

    def add(self, state, name, detail=""):
        self.rows.append((state, name, detail))
        self.say(f"{state:8}{name}{': ' + detail if detail else ''}")

    def check(self, good, name, detail=""):
        self.add("ok" if good else "FAILED", name, detail)

    def count(self, state):
        return sum(1 for row in self.rows if row[0] == state)

    def finish(self):
        failed = self.count("FAILED")
        self.say(f"{self.count('ok')} passed, {failed} failed, {self.count('skipped')} skipped")
        return 1 if failed else 0


class Machine:
    """Programs, samples, a scratch folder, and how many GPUs there are."""

    def __init__(self, options, scratch, clock):
        self.clock, self.scratch = clock, scratch
        self.backend, self.full = options.backend, options.full
        self.programs = options.programs
        self.peal = find(options.programs, "peal", "tools/peal")
        program = find(options.programs, "gpu_trials", "tests/gpu/gpu_trials")
        self.samples = scratch / "samples"
        places = (options.samples, options.programs / "samples", HERE / "../../samples")
        shutil.copytree(next(p for p in places if p and (p / "jacobi2d/jacobi2d.yaml").is_file()), self.samples)
        self.specs = HERE / "specs"
        libraries = [str(p) for p in (options.programs / "lib", options.programs / "pmix") if p.is_dir()]
        libraries += [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        # NVLink multicast can put the host's GPUs out of service: off, whatever is set outside.
        self.env = {**os.environ, "XDG_CACHE_HOME": os.environ.get("PEAL_TEST_CACHE") or str(scratch / "cache"), "LD_LIBRARY_PATH": ":".join(libraries),
                    "NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1"}
        self.program = program
        self.trials = jobs.Trials(program, str(scratch), self.env)
        self.gpus = 0

    def look_for(self, *names):
        """A program that need not be there, or None."""
        return next(((self.programs / name).resolve() for name in names if (self.programs / name).is_file()), None)

    def look(self):
        """The number of GPUs, and why there is none."""
        done = jobs.execute([self.peal, "doctor", "--json"], self.env, 60)
        try:
            findings = json.loads(done.out)["findings"]
        except (ValueError, KeyError):
            return 0, done.why()
        count = sum(1 for f in findings if f["name"].startswith("gpu ") and f["name"][4:].isdigit())
        return count, next((f["text"] for f in findings if f["name"] == "gpu"), "")


def find(folder, *names):
    for name in names:
        if (folder / name).is_file():
            return (folder / name).resolve()
    sys.exit(f"{folder}: no {names[0]}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a part of everything (the default)")
    size.add_argument("--full", action="store_true")
    parser.add_argument("--gpus", type=int, help="use so many (default: all)")
    parser.add_argument("--limit", type=float, help="seconds (default: 100, with --full 600)")
    parser.add_argument("--programs", type=Path, default=HERE / "../../build")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--result", type=Path, help="the lines go there, too")
    parser.add_argument("--only", help="checks whose group has this name: " + ", ".join(GROUPS))
    parser.add_argument("--seed", type=int, default=1, help="the first random graph")
    parser.add_argument("--graphs", type=int, default=0, help="of the group graphs: so many random ones (default: none)")
    parser.add_argument("--backend", default="cuda", help=argparse.SUPPRESS)
    return parser.parse_args()


GROUPS = {
    "norms": checks.norms,
    "samples": checks.samples,
    "control": control.control,
    "agreement": checks.agreement,
    "graphs": checks.graphs,
    "processes": checks.processes,
    "transports": checks.transports,
    "starts": checks.starts,
    "files": checks.files,
    "failures": checks.after_failures,
    "ranks": checks.many_ranks,
    "chains": checks.chains,
    "reports": reports.times,
    "arguments": reports.arguments,
    "mutants": faults.mutants,
    "signals": faults.missing_signals,
    "expressions": faults.failing_expressions,
    "counts": faults.miscounted,
    "spin": faults.endless_kernel,
    "killed": faults.killed_rank,
    "freeze": freeze.freeze,
    "litmus": litmus.litmus,
    "sanitizer": checks.sanitizer,
}


def main():
    options = parse()
    options.programs = options.programs.resolve()
    clock = jobs.Clock(options.limit or (600 if options.full else 100))
    with tempfile.TemporaryDirectory(prefix="peal-gpu-") as scratch:
        machine = Machine(options, Path(scratch), clock)
        count, why = machine.look()
        if options.backend == "cuda" and count == 0:
            print(f"skipped: {why or 'no GPU'}")
            return SKIPPED
        machine.gpus = min(options.gpus or count, count) if options.backend == "cuda" else options.gpus or 1
        report = Report(options.result)
        report.say(f"{datetime.datetime.now().isoformat(timespec='seconds')} {platform.node()} {why}; "
                   f"{machine.gpus} used, backend {machine.backend}, random graphs from {options.seed}: "
                   f"{' '.join(sys.argv[1:])}")
        for name, group in GROUPS.items():
            if options.only and name not in options.only.split(","):
                continue
            if clock.left() < 2:
                report.add("skipped", name, "no time left")
                continue
            begin = clock.used()
            group(machine, report, options)
            report.say(f"        {name} took {clock.used() - begin:.1f} s")
        return report.finish()


if __name__ == "__main__":
    sys.exit(main())
