#!/usr/bin/env python3
"""How good the choice of `--mode auto` is: by prediction, and after `peal tune`.

For every sample and number of ranks: what auto takes by prediction alone, what `peal tune` finds, and what each mode and
the tuned choice take, measured apart from tuning: short runs of all of them in turns (A B C A B C ...), medians over
rounds, ratios round by round. Prints a table, each miss of a target, and the shares that meet them.

    bench/auto.py --rounds 15 --output bench/results/DATE-host-tune.txt
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODES = ["sync", "stream", "fused"]
SAMPLES = ["bfs", "cg", "denoise", "halo", "hdiff", "heat3d", "jacobi2d", "jacobi_until", "mesh", "particles", "vcycle"]
AUTO, TUNED, SHARE = 1.10, 1.03, 0.9  # targets: ratios to the best, and how many auto must meet
SMALL_S = 5e-6  # steps below that are listed, but differences of nanoseconds are no choice that matters


def peal(arguments, environment, timeout=120):
    done = subprocess.run([environment["PEAL"], *arguments, "--json"], capture_output=True, text=True, env=environment,
                          timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"peal {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def step_seconds(result):
    return result["modes"][0]["seconds_per_step"]["median"]


class Case:
    def __init__(self, spec, ranks, environment, seconds):
        self.name, self.ranks, self.environment = Path(spec).name, ranks, environment
        self.common = [spec, "-n", str(ranks)]
        first = self.run(["--no-tuning"], 20)
        self.why = first["auto"]
        self.predicted = first["modes"][0]["mode"]
        self.steps = max(5, min(2000000, int(seconds / step_seconds(first))))
        self.ways = {mode: ["--mode", mode] for mode in MODES}
        self.times = {}

    def run(self, more, steps):
        return peal(["run", *self.common, "--steps", str(steps), *more], self.environment)

    def tune(self, rounds):
        peal(["tune", *self.common, "--rounds", str(rounds)], self.environment, 560)
        self.tuned = self.run([], 2)["auto"].split(",")[0]
        self.ways["tuned"] = []

    def round(self, number):
        names = list(self.ways)
        for k in range(len(names)):
            name = names[(k + number) % len(names)]
            seconds = step_seconds(self.run(self.ways[name], self.steps))
            self.times.setdefault(name, []).append(seconds)

    def medians(self):
        return {name: statistics.median(times) for name, times in self.times.items()}

    def ratio(self, name):
        """To the best mode, round by round; the best mode is that with the smallest median."""
        medians = self.medians()
        best = min(MODES, key=lambda mode: medians[mode])
        return statistics.median(a / b for a, b in zip(self.times[name], self.times[best]))

    def spread(self):
        """Of the best mode's rounds: between the quartiles, as a fraction."""
        medians = self.medians()
        best = min(MODES, key=lambda mode: medians[mode])
        quartiles = statistics.quantiles(self.times[best], n=4)
        return (quartiles[2] - quartiles[0]) / medians[best]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor()


def table(cases):
    yield f"{'sample':<14}{'ranks':>5}  {'sync':>10} {'stream':>10} {'fused':>10} {'tuned':>10}  {'noise':>6}  " \
          f"{'auto':<7}{'ratio':>6}  {'tune':<28}{'ratio':>6}"
    for case in cases:
        us = {name: seconds * 1e6 for name, seconds in case.medians().items()}
        yield f"{case.name:<14}{case.ranks:>5}  {us['sync']:>10.3f} {us['stream']:>10.3f} {us['fused']:>10.3f} " \
              f"{us['tuned']:>10.3f}  {100 * case.spread():>4.0f} %  {case.predicted:<7}{case.ratio(case.predicted):>6.3f}  " \
              f"{case.tuned:<28}{case.ratio('tuned'):>6.3f}"


def share(cases, ratio, target):
    met = [case for case in cases if ratio(case) <= target]
    return "none" if not cases else f"{len(met)} of {len(cases)} ({100 * len(met) / len(cases):.0f} %)"


def summary(cases):
    large = [case for case in cases if min(case.medians().values()) >= SMALL_S]
    for name, some in [("all", cases), (f"steps of {SMALL_S * 1e6:.0f} us or more", large)]:
        yield f"auto within {AUTO:.2f} of the best mode ({name}): {share(some, lambda c: c.ratio(c.predicted), AUTO)}; " \
              f"wanted: {SHARE:.0%}"
        yield f"tune within {TUNED:.2f} of the best mode ({name}): {share(some, lambda c: c.ratio('tuned'), TUNED)}"
    for case in cases:
        if case.ratio(case.predicted) > AUTO:
            yield f"auto missed: {case.name} on {case.ranks}: {case.why}"
        if case.ratio("tuned") > TUNED:
            yield f"tune missed: {case.name} on {case.ranks}: {case.tuned} is {case.ratio('tuned'):.3f} of the best mode"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peal", default=str(ROOT / "build" / "tools" / "peal"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a run's steps, about")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--sample", action="append", help="only these")
    parser.add_argument("--output", help="a file that gets the same text")
    options = parser.parse_args()
    lines = [f"bench/auto.py, {datetime.date.today()}: {processor()}, {os.cpu_count()} cores, Linux {platform.release()}; "
             f"load {os.getloadavg()[0]:.1f} at the start", f"$ {' '.join(sys.argv)}",
             "us a step, medians; noise: quartiles of the best mode; ratio: to the best mode, round by round", ""]
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, PEAL=options.peal, PEAL_CACHE=cache)
        environment.pop("PEAL_MACHINE", None)
        cases, left_out = [], []
        for name in options.sample or SAMPLES:
            for ranks in map(int, options.ranks.split(",")):
                try:
                    case = Case(str(ROOT / "samples" / name), ranks, environment, options.seconds)
                except RuntimeError as error:
                    left_out.append(f"left out: {name} on {ranks}: {str(error).splitlines()[0].split('error: ')[-1]}")
                    continue
                case.tune(options.rounds if options.rounds >= 9 else 9)
                for number in range(options.rounds):
                    case.round(number)
                cases.append(case)
                print(list(table([case]))[1], file=sys.stderr, flush=True)
    lines += [*table(cases), "", f"load {os.getloadavg()[0]:.1f} at the end", *left_out, *summary(cases)]
    print("\n".join(lines))
    if options.output:
        Path(options.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
