#!/usr/bin/env python3
"""Times samples on GPUs as a user types them: `peal run SAMPLE -n N --mode M`, whole runs.

Beside each case stands its baseline: the same spec without what few steps have (statements under
`when: ... step % ...`), for 64 000 steps, so that nothing but the recorded steps is left. Cases and
baselines take turns, a run each a round. A second command (--against) is run in the same turns.

A time is the run's own: seconds from the first to the last operation by the number of steps, and the
fastest and slowest part of the run. After the rounds each case's result is compared with mode serial
of the device, by digest (--check)."""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 64000
# name: spec, settings, name of the number of steps
CASES = {
    "jacobi2d 256^2": ("jacobi2d", {"nx": 256, "ny": 256}, "steps"),
    "jacobi2d 1024^2": ("jacobi2d", {"nx": 1024, "ny": 1024}, "steps"),
    "jacobi2d 4096^2": ("jacobi2d", {}, "steps"),
    "heat3d": ("heat3d", {}, "steps"),
    "hdiff": ("hdiff", {}, "steps"),
    "halo": ("halo", {}, "steps"),
}
RARE = re.compile(r"^\s+- \{.*when: step % .*\}\s*$")
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1"}


def baseline_of(sample, folder):
    """A copy of a sample's folder whose spec has no rare lines."""
    source = ROOT / "samples" / sample
    for path in source.iterdir():
        text = path.read_bytes()
        if path.name == f"{sample}.yaml":
            lines = [line for line in text.decode().splitlines() if not RARE.match(line)]
            text = ("\n".join(lines) + "\n").encode()
        (folder / path.name).write_bytes(text)
    return folder / f"{sample}.yaml"


def run(peal, spec, ranks, mode, settings):
    """The JSON of one run, or the reason why there is none."""
    words = [peal, "run", str(spec), "-n", str(ranks), "--mode", mode, "--json"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, **ENVIRONMENT})
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[0]
    return json.loads(done.stdout)["modes"][0], None


def programs(options, folder):
    """{(case, kind, mode): what to run}; kinds are `typed`, `against` and `long`."""
    found = {}
    for name in options.cases:
        sample, settings, steps = CASES[name]
        typed = ROOT / "samples" / sample / f"{sample}.yaml"
        bare = folder / name.replace(" ", "-")
        bare.mkdir()
        stripped = baseline_of(sample, bare)
        for mode in options.modes:
            found[name, "typed", mode] = (options.peal, typed, settings)
            if options.against:
                found[name, "against", mode] = (options.against, typed, settings)
            if options.baseline:
                found[name, "long", mode] = (options.peal, stripped, {**settings, steps: LONG})
    return found


def us(result):
    return 1e6 * result["seconds"] / result["steps"]


def measure(found, options, say):
    times, notes, until = {}, {}, time.monotonic() + options.limit
    for number in range(options.rounds + 1):  # the first round compiles, and is not counted
        for key, (peal, spec, settings) in found.items():
            if key in notes and notes[key][0] == "refused":
                continue
            if time.monotonic() > until:
                say(f"the limit ends the rounds in round {number}")
                return times, notes
            result, why = run(peal, spec, options.ranks, key[2], settings)
            if result is None:
                notes[key] = ("refused", why)
                continue
            notes[key] = ("ran", result)
            if number > 0:
                times.setdefault(key, []).append(us(result))
        say(f"round {number} of {options.rounds}")
    return times, notes


def row_of(name, mode, times, notes):
    """Cells of a case and a mode."""
    cells = []
    base = times.get((name, "long", mode))
    for kind in ("typed", "against", "long"):
        series = times.get((name, kind, mode))
        note = notes.get((name, kind, mode))
        if not series:
            cells.append((note[1] if note else "-")[:60])
            continue
        text = f"{statistics.median(series):.2f} ({min(series):.2f}-{max(series):.2f})"
        if kind == "typed":
            text += f", {100 * note[1].get('steps_replayed', 0) / note[1]['steps']:.0f} % replayed"
        if kind != "long" and base:
            text += f", {statistics.median(series) / statistics.median(base):.2f}"
        cells.append(text)
    return f"| {name} | {mode} | " + " | ".join(cells) + " |"


def verdict_of(name, mode, notes, options):
    note = notes.get((name, "typed", mode))
    if not note or note[0] != "ran":
        return None
    sample, settings, _ = CASES[name]
    host, why = run(options.peal, ROOT / "samples" / sample / f"{sample}.yaml", options.ranks,
                    "serial", settings) if name not in options.serial else options.serial[name]
    options.serial[name] = (host, why)
    if host is None:
        return f"{name}, {mode}: serial did not run: {why}"
    same = host["digest"] == note[1]["digest"]
    return f"{name}, {mode}: {'equal to serial' if same else 'DIFFERS FROM SERIAL'}"


def machine():
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpus = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        gpus = ""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), "")
    return "; ".join(gpus.splitlines() or ["no GPU"]) + f"; {os.cpu_count()} x {cpu}"


def main(words=None):
    parser = argparse.ArgumentParser(prog="gpu_run.py samples", description=__doc__.splitlines()[0])
    parser.add_argument("--peal", default="build/tools/peal", help="the command (default: build/tools/peal)")
    parser.add_argument("--against", help="another build's command, in the same turns")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds")
    parser.add_argument("--modes", nargs="+", default=["graph", "fused"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--no-baseline", dest="baseline", action="store_false")
    parser.add_argument("--check", action="store_true", help="compare with mode serial of the device")
    words = sys.argv[1:] if words is None else words
    options = parser.parse_args(words)
    options.serial = {}

    def say(text):
        print(text, file=sys.stderr, flush=True)

    print(f"{datetime.date.today()}, {machine()}\ncommand: {' '.join(['bench/gpu_run.py samples'] + words)}\n")
    with tempfile.TemporaryDirectory() as folder:
        times, notes = measure(programs(options, Path(folder)), options, say)
    print(f"us a step, median (min-max) of {options.rounds} rounds, {options.ranks} GPUs; ratio to the long run\n")
    print("| sample | mode | as typed | against | long, without rare lines |\n|---|---|---|---|---|")
    for name in options.cases:
        for mode in options.modes:
            print(row_of(name, mode, times, notes))
    bad = False
    if options.check:
        print()
    for name in options.cases if options.check else []:
        for mode in options.modes:
            text = verdict_of(name, mode, notes, options)
            if text:
                print(text)
                bad |= "DIFFERS" in text
    return bad


if __name__ == "__main__":
    sys.exit(main())
