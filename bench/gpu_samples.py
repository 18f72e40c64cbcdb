#!/usr/bin/env python3
"""Times samples on GPUs as a user types them: `peal run SAMPLE -n N --mode M`, whole runs.

Beside each case stand its baseline, the same spec without what few steps have (statements under
`when: ... step % ...`), for 64 000 steps, so that nothing but the recorded steps is left; and the
best hand-written peer where there is one. A second command (--against) is run in the same turns.
Cases, baselines and peers take turns, one of each a round; of how many rounds a median is stands
beside it (baselines may have fewer: --baseline-rounds).

A time is the run's own: seconds from the first to the last operation by the number of steps; p50 and
p99 are of the parts of all runs (a fifth of a run each), with an idle host and with a busy process on
each core (--busy). --cold adds what the command takes with nothing compiled, and again. The results
of all runs are compared with mode serial of the device, by digest (--check)."""

import argparse
import concurrent.futures
import datetime
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 64000
ENOUGH = 2000  # steps that compile what long runs run
# name: spec, settings, name of the number of steps, case of the peers
CASES = {
    "jacobi2d 256^2": ("jacobi2d", {"nx": 256, "ny": 256}, "steps", "256"),
    "jacobi2d 1024^2": ("jacobi2d", {"nx": 1024, "ny": 1024}, "steps", "1024"),
    "jacobi2d 4096^2": ("jacobi2d", {}, "steps", "4096"),
    "heat3d": ("heat3d", {}, "steps", None),
    "hdiff": ("hdiff", {}, "steps", None),
    "halo": ("halo", {}, "steps", None),
    "halo/short": ("halo/short", {}, "steps", None),
}
PEERS = {"jacobi2d": ["gpu_jacobi_nvshmem", "gpu_jacobi_nccl"]}
COLD = ["jacobi2d", "hdiff", "vcycle"]
KINDS = ("typed", "against", "long", "peer")
RARE = re.compile(r"^\s+- \{.*when: step % .*\}\s*$")
VERSION = re.compile(r"^(?:NVSHMEM|NCCL) [0-9.]+$", re.M)  # the peers say it on stderr
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1"}
LIMIT_S = 300


def spec_of(sample):
    """A sample is named after its folder, or FOLDER/SPEC."""
    path = ROOT / "samples" / sample
    return path.with_suffix(".yaml") if "/" in sample else path / f"{sample}.yaml"


def baseline_of(sample, folder):
    """A copy of a sample's folder whose spec has no rare lines."""
    spec = spec_of(sample)
    for path in spec.parent.iterdir():
        if not path.is_file():
            continue
        text = path.read_bytes()
        if path == spec:
            whole = text.decode().splitlines()
            lines = [line for line in whole if not RARE.match(line)]
            if lines == whole:
                sys.exit(f"{path}: no lines that few steps have")
            text = ("\n".join(lines) + "\n").encode()
        (folder / path.name).write_bytes(text)
    return folder / spec.name


def run(peal, spec, ranks, mode, settings, also=(), **more):
    """The JSON of one run, or the reason why there is none. also: further words; more: of the environment."""
    words = [peal, "run", str(spec), "-n", str(ranks), "--mode", mode, "--json", *also]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                              env={**os.environ, **ENVIRONMENT, **more})
    except subprocess.TimeoutExpired:
        return None, f"no answer in {LIMIT_S} s"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[0]
    return json.loads(done.stdout)["modes"][0], None


class Turns:
    """What was measured: by (case, kind, mode) times a step, the last result, failures, digests."""

    def __init__(self, options, folder, say):
        self.options, self.say = options, say
        self.times, self.parts, self.notes = {}, {}, {}
        self.failures, self.digests, self.best, self.versions = {}, {}, set(), set()
        self.until = time.monotonic() + options.limit
        self.runs = {}
        for name in options.cases:
            sample, settings, steps, _ = CASES[name]
            typed = spec_of(sample)
            bare = folder / name.replace(" ", "-").replace("/", "-")
            bare.mkdir()
            stripped = baseline_of(sample, bare)
            for mode in options.modes:
                self.runs[name, "typed", mode] = (options.peal, typed, settings)
                if options.against:
                    self.runs[name, "against", mode] = (options.against, typed, settings)
                if options.baseline and mode != "auto":
                    self.runs[name, "long", mode] = (options.peal, stripped, {**settings, steps: LONG})

    def once(self, key, counts=True):
        peal, spec, settings = self.runs[key]
        if key[1] == "long" and not counts:  # jobs that share GPUs take turns in slices of time
            settings = {**settings, CASES[key[0]][2]: ENOUGH}
        result, why = run(peal, spec, self.options.ranks, key[2], settings)
        if result is None:
            self.failures.setdefault(key, []).append(why)
            return
        self.notes[key] = result
        self.digests.setdefault(key, set()).add(result["digest"])
        if counts:
            self.times.setdefault(key, []).append(1e6 * result["seconds"] / result["steps"])
            self.parts.setdefault(key, []).extend(1e6 * s for s in result["seconds_per_step"].get("parts", []))

    def compile(self):
        """Every run once, some at a time: what compiles them keeps the cores busy. Nothing counts."""
        with concurrent.futures.ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) // 4)) as pool:
            list(pool.map(lambda key: self.once(key, False), self.runs))
        failed, self.failures = self.failures, {}
        for key in failed:  # alone, without the others
            self.once(key, False)
        self.say("compiled")

    def peer(self, name):
        """All variants of all peers of a case; the best one of each round is kept."""
        sample, _, _, case = CASES[name]
        best = None
        for program in PEERS.get(sample, []) if case else []:
            binary = Path(self.options.peers) / program
            if not binary.exists():
                continue
            try:
                done = subprocess.run([str(binary), str(self.options.ranks), case], capture_output=True, text=True,
                                      check=False, timeout=60, env={**os.environ, **ENVIRONMENT})
            except subprocess.TimeoutExpired:
                self.say(f"{program} {case}: no answer in 60 s")
                continue
            self.versions |= set(VERSION.findall(done.stderr))
            for line in done.stdout.splitlines():
                row = json.loads(line) if line.startswith("{") else {}
                if "ns" in row and "/norm" not in row["case"] and row.get("verified", True):
                    found = (row["ns"] / 1e3, f"{row['peer']} {row['variant']}")
                    best = found if best is None or found < best else best
        if best:
            self.times.setdefault((name, "peer", ""), []).append(best[0])
            self.best.add(best[1])

    def late(self, number):
        if time.monotonic() <= self.until:
            return False
        self.say(f"the limit ends the rounds in round {number + 1}")
        return True

    def rounds(self):
        self.compile()
        for number in range(self.options.rounds):
            for key in self.runs:
                if key[1] == "long" and number >= self.options.baseline_rounds:
                    continue
                if key not in self.notes:
                    continue
                if self.late(number):
                    return
                self.once(key)
            for name in self.options.cases if self.options.peers else []:
                if self.late(number):
                    return
                self.peer(name)
            self.say(f"round {number + 1} of {self.options.rounds}")

    def busy(self):
        """The typed runs again, with a process on each core that does nothing else."""
        spin = [sys.executable, "-c", "while True: pass"]
        others = [subprocess.Popen(spin) for _ in os.sched_getaffinity(0)]
        idle, self.parts = self.parts, {}
        kept = {key: list(series) for key, series in self.times.items()}
        typed = [(number, key) for number in range(self.options.busy) for key in self.runs if key[1] == "typed"]
        try:
            for number, key in typed:
                if self.late(number):
                    break
                if key in self.notes:
                    self.once(key)
        finally:
            for process in others:
                process.kill()
                process.wait()
        self.times = kept
        busy, self.parts = self.parts, idle
        return busy


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def percentiles(values):
    return f"{statistics.median(values):.2f}, {percentile(values, 0.99):.2f} ({len(values)})" if values else "-"


def row_of(name, mode, turns, busy):
    """Cells of a case and a mode."""
    cells = []
    long = turns.times.get((name, "long", mode))
    peer = turns.times.get((name, "peer", ""))
    for kind in KINDS:
        key = (name, kind, "" if kind == "peer" else mode)
        series, note, failed = turns.times.get(key), turns.notes.get(key), turns.failures.get(key, [])
        if not series:
            cells.append((failed or ["-"])[0][:60])
            continue
        text = f"{statistics.median(series):.2f} ({min(series):.2f}-{max(series):.2f}; {len(series)})"
        if kind == "typed":
            taken = f"{note['mode']}, " if mode == "auto" else ""
            text += f", {taken}{100 * note.get('steps_replayed', 0) / note['steps']:.0f} % replayed"
            text += f", {len(failed)} runs failed" if failed else ""
            text += f", {statistics.median(series) / statistics.median(long):.2f} of long" if long else ""
            text += f", {statistics.median(series) / statistics.median(peer):.2f} of peer" if peer else ""
        cells.append(text)
    key = (name, "typed", mode)
    cells += [percentiles(turns.parts.get(key)), percentiles(busy.get(key))]
    return f"| {name} | {mode} | " + " | ".join(cells) + " |"


def verdict_of(name, mode, turns, options, serial):
    """A line, and whether it is good."""
    key = (name, "typed", mode)
    if key in turns.failures or key not in turns.notes:
        return f"{name}, {mode}: NOT CHECKED: {turns.failures.get(key, ['it was not run'])[0]}", False
    sample, settings, _, _ = CASES[name]
    if name not in serial:
        serial[name] = run(options.peal, spec_of(sample), options.ranks, "serial", settings)
    reference, why = serial[name]
    if reference is None:
        return f"{name}, {mode}: NOT CHECKED: serial did not run: {why}", False
    same = turns.digests[key] == {reference["digest"]}
    return f"{name}, {mode}: {'equal to serial' if same else 'DIFFERS FROM SERIAL'}", same


def print_cold(options):
    """Wall seconds of the command, with an empty cache of kernels and with a full one."""
    print("\n| sample | mode | first, s | again, s |\n|---|---|---|---|")
    for sample in COLD:
        spec = spec_of(sample)
        for mode in options.modes:
            with tempfile.TemporaryDirectory() as cache:
                walls = []
                for _ in range(2):
                    begin = time.monotonic()
                    result, why = run(options.peal, spec, options.ranks, mode, {}, XDG_CACHE_HOME=cache)
                    walls.append(f"{time.monotonic() - begin:.1f}" if result else why[:60])
            print(f"| {sample} | {mode} | {walls[0]} | {walls[1]} |", flush=True)


def machine():
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpus = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        gpus = ""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), "")
    return "; ".join(gpus.splitlines() or ["no GPU"]) + f"; {len(os.sched_getaffinity(0))} of {os.cpu_count()} x {cpu}"


def print_peers(turns):
    if turns.best:
        print(f"peers: {', '.join(sorted(turns.versions)) or 'versions unknown'}; of all their variants the best of each round "
              f"({'; '.join(sorted(turns.best))})\n")


def main(words=None):
    parser = argparse.ArgumentParser(prog="gpu_run.py samples", description=__doc__.splitlines()[0])
    parser.add_argument("--peal", default="build/tools/peal", help="the command (default: build/tools/peal)")
    parser.add_argument("--against", help="another build's command, in the same turns")
    parser.add_argument("--peers", help="folder of the peers' programs (build/bench/gpu)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--baseline-rounds", type=int, default=9)
    parser.add_argument("--busy", type=int, default=0, help="rounds with all cores busy")
    parser.add_argument("--cold", action="store_true", help="also what a first start takes")
    parser.add_argument("--limit", type=float, default=1e9, help=f"seconds of rounds; --busy has {LIMIT_S} more")
    parser.add_argument("--modes", nargs="+", default=["auto", "graph", "fused"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--no-baseline", dest="baseline", action="store_false")
    parser.add_argument("--check", action="store_true", help="compare with mode serial of the device")
    words = sys.argv[1:] if words is None else words
    options = parser.parse_args(words)

    def say(text):
        print(text, file=sys.stderr, flush=True)

    print(f"{datetime.date.today()}, {machine()}\ncommand: bench/gpu_run.py samples {shlex.join(words)}\n")
    with tempfile.TemporaryDirectory() as folder:
        turns = Turns(options, Path(folder), say)
        turns.rounds()
        turns.until += LIMIT_S
        busy = turns.busy() if options.busy else {}
        print_peers(turns)
        print(f"us a step, median (min-max; of so many rounds), {options.ranks} GPUs\n")
        print("| sample | mode | as typed | against | long, without rare lines | best peer | p50, p99 of (parts) | "
              "the same, cores busy |\n|---|---|---|---|---|---|---|---|")
        for name in options.cases:
            for mode in options.modes:
                print(row_of(name, mode, turns, busy))
        if options.cold:
            print_cold(options)
        bad, serial = False, {}
        if options.check:
            print()
        for name in options.cases if options.check else []:
            for mode in options.modes:
                text, good = verdict_of(name, mode, turns, options, serial)
                print(text)
                bad |= not good
    return bad


if __name__ == "__main__":
    sys.exit(main())
