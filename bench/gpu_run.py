#!/usr/bin/env python3
"""Runs one benchmark on NVIDIA GPUs: peal, its peers and the floor, side by side.

As run.py: a round runs every program once, in turns, and medians over at least nine rounds make a
result. What a program printed before it failed counts; programs that were not built are named.
`primitives` is one program that makes its own rounds. Time on such machines is dear: a program that
prints nothing for --timeout seconds is ended, what failed twice is left out, and --limit ends the
rounds early; what was measured is reported."""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run as host

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 20  # without a new line from a program

# Words of a program's command line, behind the number of GPUs.
HALO = [f"ring {size} {interior}" for size in (8, 4096, 65536, 1048576) for interior in (0, 20)]
HALO += [f"ring {size} alone" for size in (8, 4096, 65536, 1048576)]
HALO += [f"box {points}" for points in (32, 64, 128, 256)]
CASES = {"halo": HALO, "jacobi": ["256", "512", "1024", "2048", "4096", "8192", "16384"]}
UNIT = {"halo": "us a round", "jacobi": "us a step"}
# NVLink multicast can put the host's GPUs out of service: off, whatever is set outside.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1",
               "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
# How the peers are started: what a user who tunes would try. The best one counts.
ONE_CHANNEL = {"NCCL_MAX_P2P_NCHANNELS": "1", "NCCL_MIN_P2P_NCHANNELS": "1"}
TUNINGS = {("halo", "nccl"): {"": {}, "one channel": ONE_CHANNEL}}
PEERS = {"halo": ["nccl", "memcpy", "nvshmem"], "jacobi": ["nccl", "nvshmem"]}


class Program:
    """A command of a round, how it is called in tables, and on how many GPUs."""

    def __init__(self, name, binary, words, env=None):
        self.name = name
        self.binary = binary
        self.command = [str(binary), *[str(word) for word in words]]
        self.env = env or {}
        self.own = binary.name.startswith("peal_")  # goes on behind what fails, and says so
        self.failures = 0
        self.failed = set()  # what a program of ours says has failed in it


def packages():
    """Folders of NCCL's and NVSHMEM's libraries as Python packages have them."""
    try:
        import nvidia  # pylint: disable=import-outside-toplevel
    except ImportError:
        return []
    return [str(Path(root) / part / "lib") for root in nvidia.__path__
            for part in ("nccl", "nvshmem") if (Path(root) / part / "lib").is_dir()]


def environment(extra):
    paths = packages() + [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), **extra, **ENVIRONMENT}


def find(build, name):
    """Where a program was built, or where it would be."""
    places = [build / "bench" / "gpu" / name, build / "bench" / name]
    return next((p for p in places if p.exists()), places[0])


def programs(bench, build, counts, options):
    """All programs of a benchmark that were built, and a line for each that was not."""
    found, missing, cases = [], [], options.case or CASES[bench]
    own = {"PEAL_BENCH_WAYS": ";".join(options.way)} if options.way else {}
    for gpus in [g for g in counts if bench != "halo" or g > 1]:
        words = [str(gpus), *" ".join(cases).split()]
        wanted = [Program("", find(build, f"peal_gpu_{bench}"), words, own)]
        for peer in PEERS[bench] if options.peer is None else options.peer:
            for tuning, env in TUNINGS.get((bench, peer), {"": {}}).items():
                if tuning and gpus == 1:
                    continue
                wanted.append(Program(tuning, find(build, f"gpu_{bench}_{peer}"), words, env))
        for program in wanted:
            if program.binary.exists():
                found.append(program)
            else:
                missing.append(f"{program.binary.name} was not built")
    return found, sorted(set(missing))


def await_end(process, out, quiet, left):
    """Nothing, or why the program was ended: no output for `quiet` seconds, or `left` are over."""
    size, since, begin = -1, 0, time.monotonic()
    while True:
        try:
            process.wait(0.05)
            return f"exit {process.returncode}" if process.returncode != 0 else ""
        except subprocess.TimeoutExpired:
            pass
        now, length = time.monotonic(), os.fstat(out.fileno()).st_size
        if length != size:
            size, since = length, now
        if now - since > quiet or now - begin > left:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "no time left" if now - begin > left else f"printed nothing for {quiet:.0f} s"


def run_program(program, quiet, left):
    """What it printed, also if it failed, and what went wrong or nothing."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(program.command, env=environment(program.env), stdout=out,
                                   stderr=error, stdin=subprocess.DEVNULL, start_new_session=True)
        why = await_end(process, out, quiet, left)
        out.seek(0)
        error.seek(0)
        text, last = out.read(), error.read().strip().splitlines()[-1:] or [""]
    return text, f"{why}: {last[0][:200]}" if why else ""


def execute(program, quiet, left):
    """Its JSON lines, and what went wrong or nothing."""
    text, why = run_program(program, quiet, left)
    lines = [line for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    return [json.loads(line) for line in lines], why


def skip(program, lines):
    """What a program of ours says has failed twice is left out then; a text for each failure."""
    said = []
    for line in [line for line in lines if "failed" in line]:
        if line["failed"] in program.failed:
            names = f"{program.env.get('PEAL_BENCH_SKIP', '')};{line['failed']}".strip(";")
            program.env = {**program.env, "PEAL_BENCH_SKIP": names}
        program.failed.add(line["failed"])
        said.append(f"{program.binary.name}: {line['failed']}: {line['why']}")
    return said


class Series(host.Series):
    """A row that also knows the CPU's time of a repetition."""

    def __init__(self, label, kind):
        super().__init__(label, kind)
        self.cpu_ns = []

    def add(self, number, line):
        super().add(number, line)
        if "cpu_ns" in line:
            self.cpu_ns.append(line["cpu_ns"])


def copy_rate(build):
    """GB/s, read and written, of a copy on one GPU, or None."""
    binary = find(build, "gpu_primitives")
    if not binary.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        execute(Program("", binary, ["--rounds", "1", "--gpus", "1", "--no-rescue", "--only",
                                     "local copy, 128 MiB", "--json", path]), TIMEOUT_S, TIMEOUT_S)
        rates = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return max((line["median"] for line in rates if "median" in line), default=None)


def add_floors(rows, number, rate):
    """The time in which a step's points could be read and written once, for each Jacobi case."""
    for case, series in rows.items():
        if rate:
            n, gpus = [int(word) for word in case.split("/")[:2]]
            ns = 8.0 * n * n / gpus / rate
            line = {"ns": ns, "verified": True, "digest": "0"}
            series.setdefault("copy rate", Series("copy rate", "floor")).add(number, line)


def take(rows, number, program, lines):
    """Adds what a program has measured in a round."""
    for line in [line for line in lines if "ns" in line]:
        tuning = f" ({program.name})" if program.name else ""
        label = f"{line['peer']}{tuning} {line['variant']}"
        series = rows.setdefault(line["case"], {})
        series.setdefault(label, Series(label, line["kind"])).add(number, line)


def measure(bench, found, options, build, say):
    """Rows by case, what failed, and how many rounds were made."""
    rows, failed, begin = {}, {}, time.monotonic()
    for number in range(options.rounds):
        rate = copy_rate(build) if bench == "jacobi" else None
        for program in found:
            left = options.limit - (time.monotonic() - begin)
            if program.failures >= 2 or left <= 0:
                continue
            lines, why = execute(program, options.timeout, max(left, 1))
            program.failures += bool(why) and not (program.own and any("ns" in l for l in lines))
            what = f"{program.binary.name} {program.command[1]} GPUs {program.name}: {why}"
            for text in skip(program, lines) + ([what] if why else []):
                failed.setdefault(text, []).append(str(number + 1))
                say(f"  failed: {text}")
            take(rows, number, program, lines)
        add_floors(rows, number, rate)
        say(f"  round {number + 1} of {options.rounds}: {time.monotonic() - begin:.0f} s")
        if time.monotonic() - begin > options.limit:
            break
    return rows, [f"{text} (round {', '.join(at)})" for text, at in failed.items()], number + 1


def compare(own, other, target, rounds, words):
    """One line about a target: met, missed, or lost."""
    ratio = host.median(host.ratios(own, other, rounds))
    limit = host.TIE if target == 1 else target
    word = "met" if ratio <= limit else "LOSS" if ratio > host.TIE else "MISSED, but faster or tied"
    wanted = "a tie" if target == 1 else f"at most {target}"
    return f"  target: {wanted} of {words} ({other.label}): {ratio:.2f}: {word}"


def judge_halo(case, peal, series, rounds):
    """Against NCCL's and the copies' best graphs, and what of the communication is exposed."""
    small = case.startswith("ring") and int(case.split("/")[1]) <= 65536
    lines = []
    for peer, target in (("nccl", 0.5 if small else 1), ("memcpy", 0.8 if small else 1),
                         ("nvshmem", 1)):
        graphs = [s for s in series if s.kind == "peer" and s.label.startswith(peer)]
        best = host.best_of(graphs, rounds)
        if best:
            lines.append(compare(peal, best, target, rounds, peer))
    # What the best graph does without its messages: by hand it packs and unpacks all the same.
    empty = "no exchange" if peal.label.startswith("peal tasks") else "interior"
    floor = next((s for s in series if s.label == f"peal graph, {empty}"), None)
    if floor:
        base = host.median([floor.ns[r] for r in rounds if r in floor.ns])
        exposed = host.median([peal.ns[r] - floor.ns[r] for r in rounds
                               if r in floor.ns and r in peal.ns])
        lines.append(f"  exposed communication: {exposed / 1e3:.2f} us of {base / 1e3:.2f} us "
                     f"(wanted where the interior is 3 times as long: "
                     f"{max(0.02 * base, 1200) / 1e3:.2f})")
    if floor and any(floor.cpu_ns):
        cpu, empty = host.median(peal.cpu_ns) / 1e3, host.median(floor.cpu_ns) / 1e3
        lines.append(f"  CPU a step: {cpu:.3f} us (wanted: at most 0.3), {cpu / empty:.2f} of the "
                     f"floor's {empty:.3f} (wanted: at most 1.2)")
    return lines


def judge_jacobi(case, peal, series, rounds):
    n = int(case.split("/")[0])
    best = host.best_of([s for s in series if s.kind == "peer"], rounds)
    lines = [compare(peal, best, 0.3 if n <= 1024 else 1, rounds, "the best peer")] if best else []
    floor = next((s for s in series if s.label == "copy rate"), None)
    if floor and n == 16384:
        share = 1 / host.median(host.ratios(peal, floor, rounds))
        lines.append(f"  target: at least 0.9 of the copy rate: {share:.2f}: "
                     f"{'met' if share >= 0.9 else 'MISSED'}")
    return lines


def table(bench, case, series, rounds, limit):
    """A case as lines of text."""
    best = host.best_of([s for s in series if s.kind == "peer"], rounds)
    peal = host.best_of([s for s in series if s.kind == "peal"], rounds)
    lines = [f"{bench} {case} ({UNIT[bench]})",
             f"  {'':50}{'median':>10}{'min':>10}{'max':>10}{'CPU':>9}   ratio to best peer"]
    for row in host.shown(series, rounds, limit):
        values = [row.ns[r] / 1e3 for r in rounds if r in row.ns]
        text = f"  {row.kind + ': ' + row.label:50}{host.median(values):10.2f}"
        text += f"{min(values):10.2f}{max(values):10.2f}"
        text += f"{host.median(row.cpu_ns) / 1e3:9.2f}" if row.cpu_ns else " " * 9
        compared = host.ratios(row, best, rounds) if best else []
        if compared:
            text += f"   {host.median(compared):5.2f} [{min(compared):.2f}, {max(compared):.2f}]"
        lines.append(text + ("" if row.verified else "   WRONG RESULT"))
    if peal:
        judge = judge_halo if bench == "halo" else judge_jacobi
        lines += judge(case, peal, series, rounds)
    digests = set().union(*(s.digests for s in series))
    wrong = [s.label for s in series if not s.verified]
    lines.append("  verified: " + ("WRONG: " + ", ".join(wrong) if wrong else
                                   "RESULTS DIFFER between programs" if len(digests) > 1 else
                                   "all of them"))
    return lines


def machine():
    """What was measured on; no names of hosts or users."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        gpus = shown.stdout.strip().splitlines() if shown.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        gpus = []
    commit = host.first_line("git", "-C", str(HERE), "describe", "--always", "--dirty")
    what = gpus[0].replace(", ", ", driver ") if gpus else "none"
    return len(gpus), [f"GPUs: {len(gpus)} x {what}", *host.machine()[:1],
                       f"versions: peal {commit or 'unknown'}"]


def keep(options, name, lines, rounds):
    if options.no_save or rounds < 9:
        return
    date = datetime.datetime.now().strftime("%Y-%m-%d")
    path = Path(options.results) / f"{date}-gpu-{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"kept in {path}", file=sys.stderr)


def head_of(bench, about, rounds):
    arguments = " ".join(word if " " not in word else f'"{word}"' for word in sys.argv[1:])
    now = datetime.datetime.now().strftime("%Y-%m-%d")
    return [f"peal GPU benchmark: {bench}, {now}, {rounds} rounds",
            f"command: bench/gpu_run.py {arguments}", *about]


def run_primitives(options, build, about):
    binary = find(build, "gpu_primitives")
    head = head_of("primitives", about, options.rounds)
    print("\n".join(head), flush=True)
    if not binary.exists():
        print("nothing to run: ninja -C BUILD bench-gpu builds the program")
        return 4
    program = Program("", binary, ["--rounds", options.rounds, "--gpus", min(max(options.gpus), 2)])
    text, why = run_program(program, max(options.timeout, 120), options.limit)
    print(text, why, sep="\n", flush=True)
    keep(options, "primitives", head + [text.rstrip()], 0 if why else options.rounds)
    return 1 if why else 0


def run_compared(bench, options, build, there, about):
    counts = [g for g in options.gpus if g <= there] if there else options.gpus
    found, missing = programs(bench, build, counts, options)
    print("\n".join(about + [f"left out: {line}" for line in missing]), flush=True)
    if not found:
        print("nothing to run: ninja -C BUILD bench-gpu builds the programs")
        return 4
    say = lambda text: print(text, file=sys.stderr, flush=True)
    rows, failed, done = measure(bench, found, options, build, say)
    lines = head_of(bench, about, done) + [f"left out: {line}" for line in missing + failed]
    for case, series in rows.items():
        lines += [""] + table(bench, case, list(series.values()), range(done), options.rows)
    print("\n".join(lines), flush=True)
    keep(options, bench, lines, done)
    return 1 if any(not s.verified for series in rows.values() for s in series.values()) else 0


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: ninja -C build bench-gpu && bench/gpu_run.py halo --gpus 2,4")
    parser.add_argument("bench", choices=["primitives", *CASES])
    parser.add_argument("--build", default="build", help="Meson's build folder (default: build)")
    parser.add_argument("--gpus", default="1,2,4", help="numbers of GPUs (default: 1,2,4)")
    parser.add_argument("--rounds", type=int, default=9, help="at least 9 for a result to keep")
    parser.add_argument("--limit", type=float, default=540, help="seconds in all (default: 540)")
    parser.add_argument("--case", "--cases", action="append",
                        help='e.g. "ring 4096 20" or "256 1024"; may be repeated')
    parser.add_argument("--way", action="append",
                        help='of peal: a part of its name, or "all"; may be repeated')
    parser.add_argument("--peer", action="append",
                        help="nccl, memcpy, nvshmem; may be repeated; \"\": none")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S,
                        help=f"seconds without a new line (default: {TIMEOUT_S})")
    parser.add_argument("--rows", type=int, default=3, help="peer rows to show a library")
    parser.add_argument("--results", default=str(HERE / "results"), help="where results are kept")
    parser.add_argument("--no-save", action="store_true", help="print only")
    options = parser.parse_args()
    options.gpus = [int(word) for word in options.gpus.split(",")]
    options.peer = None if options.peer is None else [word for word in options.peer if word]
    return options


def main():
    options = parse()
    build = Path(options.build).resolve()
    there, about = machine()
    if options.bench == "primitives":
        return run_primitives(options, build, about)
    return run_compared(options.bench, options, build, there, about)


if __name__ == "__main__":
    sys.exit(main())
