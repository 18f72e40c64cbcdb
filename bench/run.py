#!/usr/bin/env python3
"""Runs one benchmark: peal, its peers and the machine's floor, side by side.

A round runs every program once, in turns (A B C A B C ...), each as short processes that warm up
and report the median of some batches. At least nine rounds make a result: medians over rounds, and
ratios of peal to the best peer configuration, round by round. Programs that were not built, or
fail, are named and left out. Results go to bench/results as text."""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 180
TIE = 1.05  # ratios up to here count as a tie

# Halo: points a side and fields. Jacobi, exchange: points a side. Tiles: width and tiles in all.
CASES = {
    "halo": ["12 1", "32 3", "100 3"],
    "jacobi": ["64", "256", "1024", "8192"],
    "exchange": ["12", "32", "100"],
    "tiles": ["1 20000", "2 20000", "8 20000", "64 20000",
              "1 1000000", "2 1000000", "8 1000000", "64 1000000"],
    "compile": ["regular 1000", "regular 1000000", "regular 1000000000",
                "irregular 10000", "irregular 100000", "irregular 1000000", "irregular 10000000",
                "ranks 8", "ranks 512", "ranks 4096", "ranks 100000", "ranks 1000000",
                "statements 900", "statements 3000", "statements 9000"],
}
UNIT = {"halo": "ns an exchange", "jacobi": "ns a step", "exchange": "ns a step",
        "tiles": "ns a tile", "compile": "ns"}
# Largest ratio to the best peer that we want; 1: a tie.
TARGETS = {
    "halo": {"12x1": 0.5, "32x3": 0.5, "100x3": 0.65},
    "jacobi": {"64": 0.55, "256": 0.92, "1024": 1, "8192": 1},
}
TARGET_TILES_NS = 5  # on one thread
TARGET_TILES = 0.3  # on two

# How the MPI peers are started: what a user who tunes would try. The best one counts.
OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2"]
YIELD = ["--mca", "mpi_yield_when_idle", "1"]
OB1 = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]
MPI = {
    ("openmpi", "cma"): (OPENMPI + OB1, {}),
    ("openmpi", "copy"): (
        OPENMPI + OB1 + ["--mca", "btl_vader_single_copy_mechanism", "none"], {}),
    ("openmpi", "yield"): (OPENMPI + OB1 + YIELD, {}),
    ("openmpi", "eager"): (
        OPENMPI + OB1 + ["--mca", "btl_vader_eager_limit", "65536",
                         "--mca", "btl_vader_max_send_size", "131072"], {}),
    ("openmpi", "ucx"): (
        OPENMPI + ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                   "--mca", "pml_ucx_devices", "any"], {"UCX_TLS": "posix,cma,self"}),
    ("mpich", "default"): (["mpirun.mpich", "-n", "2"], {}),
    ("mpich", "posix"): (["mpirun.mpich", "-n", "2"], {"UCX_TLS": "posix,self"}),
    ("mpich", "eager"): (
        ["mpirun.mpich", "-n", "2"], {"UCX_TLS": "posix,self", "UCX_RNDV_THRESH": "1m"}),
}
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_PROC_BIND": "true", "OMP_PLACES": "cores", "OMP_WAIT_POLICY": "active",
}


class Program:
    """A command of a round and what to call it in tables."""

    def __init__(self, name, command, env=None):
        self.name = name
        self.command = [str(word) for word in command]
        self.env = env or {}


def started(words, processes):
    """A launcher's words with another number behind -n."""
    at = words.index("-n") + 1
    return [*words[:at], str(processes), *words[at + 1:]]


def programs(bench, build, cases, processes):
    """All programs of a benchmark that were built, and a line for each that was not."""
    words = " ".join(cases).split()
    wanted = []
    if bench == "tiles":
        for threads in ("1", "2"):
            wanted.append(Program("", [build / "tiles_omp", *words], {"OMP_NUM_THREADS": threads}))
            wanted.append(Program("", [build / "tiles_tbb", threads, *words]))
            wanted.append(Program("", [build / "peal_tiles", threads, *words]))
    elif bench == "compile":
        wanted.append(Program("", [build / "peal_compile", *words]))
    else:
        wanted.append(Program("", [*started(OPENMPI, processes), build / f"peal_{bench}", *words]))
        for (flavour, tuning), (start, env) in MPI.items():
            wanted.append(Program(tuning, [*started(start, processes), build / f"{bench}_{flavour}", *words], env))
    found, missing = [], []
    for program in wanted:
        binary = next(word for word in program.command if word.startswith(str(build)))
        if not Path(binary).exists():
            missing.append(f"{Path(binary).name} was not built")
        elif not shutil.which(program.command[0]):
            missing.append(f"{program.command[0]} is not installed")
        else:
            found.append(program)
    return found, sorted(set(missing))


def execute(program):
    """Its JSON lines, or None and why not. Ends the whole process group when it takes too long."""
    env = {**os.environ, **ENVIRONMENT, **program.env}
    process = subprocess.Popen(program.command, env=env, text=True, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        out, error = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, f"took more than {TIMEOUT_S} s"
    if process.returncode != 0:
        last = error.strip().splitlines()[-1:] or [""]
        return None, f"exit {process.returncode}: {last[0][:200]}"
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], ""


def merge(lines):
    """One line a case and variant: processes that report for themselves count as the slowest."""
    merged = {}
    for line in lines:
        key = (line["case"], line["variant"])
        other = merged.setdefault(key, line)
        if other is not line:
            other["ns"] = max(other["ns"], line["ns"])
            other["verified"] = other["verified"] and line["verified"]
            digest = (int(other["digest"], 16) + int(line["digest"], 16)) % 2**64
            other["digest"] = f"{digest:016x}"
    return list(merged.values())


class Series:
    """One row: a variant of a program in a case, with its time in each round."""

    def __init__(self, label, kind):
        self.label = label
        self.kind = kind
        self.ns = {}  # by round
        self.bytes = None
        self.verified = True
        self.digests = set()

    def add(self, number, line):
        self.ns[number] = line["ns"]
        self.bytes = line.get("bytes")
        self.verified = self.verified and line["verified"]
        if int(line["digest"], 16):
            self.digests.add(line["digest"])


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def measure(found, rounds, build, say):
    """Rows by case, the floor of each round, and what failed."""
    rows, floors, failed = {}, [], {}
    floor = Program("floor", [build / "floor"])
    for number in range(rounds):
        lines, _ = execute(floor)
        floors.append(lines[0] if lines else {"placement": "unknown"})
        for program in found:
            if id(program) in failed:
                continue
            lines, why = execute(program)
            if not lines:
                words = " ".join(Path(word).name for word in program.command)
                failed[id(program)] = f"round {number}: {words}: {why or 'printed nothing'}"
                say(f"  failed: {failed[id(program)]}")
                continue
            for line in merge(lines):
                tuning = f" ({program.name})" if program.name else ""
                label = f"{line['peer']}{tuning} {line['variant']}"
                case = rows.setdefault(line["case"], {})
                case.setdefault(label, Series(label, line["kind"])).add(number, line)
        say(f"  round {number + 1} of {rounds}: {floors[-1]['placement']}")
    return rows, floors, list(failed.values())


def ratios(row, other, rounds):
    return [row.ns[r] / other.ns[r] for r in rounds if r in row.ns and r in other.ns]


def best_of(series, rounds):
    """The row with the smallest median; it must have been right whenever it ran."""
    valid = [s for s in series if s.verified and any(r in s.ns for r in rounds)]
    return min(valid, key=lambda s: median([s.ns[r] for r in rounds if r in s.ns]), default=None)


def shown(series, rounds, limit):
    """The rows of a table: all of peal's, the best floor, and the best few peers of each library
    and kind."""
    kept = []
    for kind in ("peal", "floor", "peer", "loop", "hand"):
        rows = [s for s in series if s.kind == kind and any(r in s.ns for r in rounds)]
        rows.sort(key=lambda s: median([s.ns[r] for r in rounds if r in s.ns]))
        if kind == "peal":
            kept += rows
        elif kind == "floor":
            kept += rows[:1]
        else:
            count = {}
            for row in rows:
                library = row.label.split()[0]
                count[library] = count.get(library, 0) + 1
                if count[library] <= (limit if kind == "peer" else 1):
                    kept.append(row)
    return kept


def judge(bench, case, peal, best, rounds):
    """What to say about the target: met, missed, or lost."""
    if peal is None:
        return "peal: no verified result"
    own = median([peal.ns[r] for r in rounds if r in peal.ns])
    if bench == "tiles" and case.endswith("/1t"):
        word = "met" if own <= TARGET_TILES_NS * 1.1 else "MISSED"
        return f"target: about {TARGET_TILES_NS} ns a tile on one thread: {own:.2f}: {word}"
    if best is None:
        return "no peer to compare with"
    ratio = median(ratios(peal, best, rounds))
    target = TARGET_TILES if bench == "tiles" else TARGETS.get(bench, {}).get(case, 1)
    limit = TIE if target == 1 else target
    word = "met" if ratio <= limit else "LOSS" if ratio > TIE else "MISSED, but faster or tied"
    wanted = "a tie" if target == 1 else f"at most {target}"
    return f"target: {wanted} of {best.label}: {ratio:.2f}: {word}"


def table(bench, case, series, rounds, limit):
    """A case as lines of text."""
    best = best_of([s for s in series if s.kind == "peer"], rounds)
    peal = best_of([s for s in series if s.kind == "peal"], rounds)
    lines = [f"{bench} {case} ({UNIT[bench]}; {len(rounds)} rounds)",
             f"  {'':46}{'median':>14}{'min':>14}{'max':>14}   ratio to best peer [min, max]"]
    for row in shown(series, rounds, limit):
        values = [row.ns[r] for r in rounds if r in row.ns]
        text = f"  {row.kind + ': ' + row.label:46}{median(values):14.1f}"
        text += f"{min(values):14.1f}{max(values):14.1f}"
        compared = ratios(row, best, rounds) if best else []
        if compared:
            text += f"   {median(compared):5.2f} [{min(compared):.2f}, {max(compared):.2f}]"
        if row.bytes is not None:
            text += f"   {row.bytes:.0f} bytes"
        lines.append(text + ("" if row.verified else "   WRONG RESULT"))
    if bench != "compile":
        lines.append("  " + judge(bench, case, peal, best, rounds))
        if peal and bench == "tiles":
            loop = best_of([s for s in series if s.kind in ("loop", "hand")], rounds)
            if loop:
                ratio = median(ratios(peal, loop, rounds))
                lines.append(f"  against what is no task graph ({loop.label}): {ratio:.2f}")
    digests = set().union(*(s.digests for s in series))
    wrong = [s.label for s in series if not s.verified]
    lines.append("  verified: " + (
        "WRONG: " + ", ".join(wrong) if wrong else
        "RESULTS DIFFER between programs" if len(digests) > 1 else
        "all of them" + (f", digest {min(digests)}" if digests else "")))
    return lines


def compile_checks(rows, rounds):
    """The promises of the compile benchmark, from its cases: regular/N, irregular/N, ..."""
    value = {case: best_of(series.values(), rounds) for case, series in rows.items()}
    lines = []
    for name, wanted in (("regular", 1.2), ("ranks", 1.2), ("irregular", None),
                         ("statements", None)):
        sizes = sorted(int(c.split("/")[1]) for c in value if c.startswith(name + "/"))
        points = [(n, value[f"{name}/{n}"]) for n in sizes if value[f"{name}/{n}"]]
        if not points:
            continue
        times = {n: median(list(s.ns.values())) for n, s in points}
        if wanted:
            spread = max(times.values()) / min(times.values())
            used = [s.bytes for _, s in points if s.bytes]
            memory = max(used) / min(used) if used else 0
            word = "met" if spread <= wanted and memory <= wanted else "MISSED"
            if name == "ranks":
                word = "for comparison only: each rank has some state of its own"
            what = "tiles" if name == "regular" else name
            lines.append(f"{name}: time within {spread:.2f}x, memory within {memory:.2f}x over "
                         f"{sizes[0]} to {sizes[-1]} {what} ({wanted} wanted): {word}")
        for n, s in points if name == "statements" else []:
            lines.append(f"statements: {n}: {times[n] / n / 1e3:.1f} us and {(s.bytes or 0) / n:.0f} "
                         f"bytes a statement, {times[n] / 1e9:.2f} s (5 s wanted for 9000)")
        for n, s in points if name == "irregular" else []:
            each, room = times[n] / n, (s.bytes or 0) / n
            word = "met" if each <= 100 and room <= 100 else "MISSED"
            lines.append(f"irregular: {n} edges: {each:.1f} ns and {room:.1f} bytes an edge "
                         f"(100 and 100 wanted): {word}")
    return lines


def first_line(*command):
    """The first line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return (done.stdout or done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""


def machine():
    """What was measured on; no names of hosts or users."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    release = ".".join(platform.release().split(".")[:2])
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    commit = first_line("git", "-C", str(HERE), "describe", "--always", "--dirty")
    versions = [first_line("cc", "--version"), first_line("mpirun.openmpi", "--version"),
                " ".join(first_line("mpichversion").split()),
                "oneTBB " + first_line("pkg-config", "--modversion", "tbb")]
    return [f"machine: {model}, {cores} cores, {memory:.0f} GiB, Linux {release}; load {load}",
            f"versions: peal {commit}; " + "; ".join(v for v in versions if v)]


def floor_lines(floors):
    keys = {"line_ns": "cache line one way, ns", "timer_ns": "clock read, ns",
            "copy_gbs_1": "copy, one thread, GB/s", "copy_gbs_2": "copy, two threads, GB/s",
            "slowdown_2": "slow-down of computing on both cores"}
    lines = ["floor of this machine, measured in every round: median [min, max]"]
    for key, words in keys.items():
        values = [floor[key] for floor in floors if key in floor]
        if values:
            lines.append(f"  {words:40}{median(values):8.1f} [{min(values):.1f}, {max(values):.1f}]")
    return lines


def report(bench, rows, floors, limit):
    """All tables; rounds in which the cores lay elsewhere get tables of their own."""
    places = {}
    for number, floor in enumerate(floors):
        near = "two dies" if floor["placement"] == "two dies" else "one die or one core"
        places.setdefault(near, []).append(number)
    lines = floor_lines(floors)
    for place, rounds in places.items():
        lines += ["", f"== {place}: {len(rounds)} of {len(floors)} rounds"]
        for case, series in rows.items():
            lines += [""] + table(bench, case, list(series.values()), rounds, limit)
        if bench == "compile":
            lines += [""] + compile_checks(rows, rounds)
    return lines


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: ninja -C build bench-peers && bench/run.py halo --build build")
    parser.add_argument("bench", choices=[*CASES, "all"])
    parser.add_argument("--build", default="build", help="Meson's build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=9, help="at least 9 for a result to keep")
    parser.add_argument("--case", action="append", help='one case, e.g. "32 3"; may be repeated')
    parser.add_argument("--processes", type=int, default=2, help="of `exchange`; more than there are "
                        "cores: a machine that is shared (default: 2)")
    parser.add_argument("--rows", type=int, default=3, help="peer rows to show a library")
    parser.add_argument("--results", default=str(HERE / "results"), help="where results are kept")
    parser.add_argument("--no-save", action="store_true", help="print only")
    return parser.parse_args()


def run(bench, options):
    build = Path(options.build).resolve() / "bench"
    found, missing = programs(bench, build, options.case or CASES[bench], options.processes)
    now = datetime.datetime.now().strftime("%Y-%m-%d")
    arguments = " ".join(word if " " not in word else f'"{word}"' for word in sys.argv[1:])
    head = [f"peal benchmark: {bench}, {now}, {options.rounds} rounds",
            f"command: bench/run.py {arguments}", *machine()]
    head += [f"left out: {line}" for line in missing]
    print("\n".join(head), flush=True)
    if not found or not (build / "floor").exists():
        print("nothing to run: ninja -C BUILD bench-peers builds the programs")
        return 4
    say = lambda text: print(text, file=sys.stderr, flush=True)
    rows, floors, failed = measure(found, options.rounds, build, say)
    body = [f"left out: {line}" for line in failed]
    body += report(bench, rows, floors, options.rows)
    print("\n".join(body), flush=True)
    if not options.no_save and options.rounds >= 9:
        raw = {case: {s.label: [round(s.ns[r], 1) for r in sorted(s.ns)]
                      for s in shown(list(series.values()), range(len(floors)), options.rows)}
               for case, series in rows.items()}
        path = Path(options.results) / f"{now}-{bench}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = head + body + ["", "rounds: " + json.dumps(raw)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"kept in {path}", file=sys.stderr)
    wrong = any(not s.verified for series in rows.values() for s in series.values())
    return 1 if wrong else 0


def main():
    options = parse()
    benches = list(CASES) if options.bench == "all" else [options.bench]
    return max(run(bench, options) for bench in benches)


if __name__ == "__main__":
    sys.exit(main())
