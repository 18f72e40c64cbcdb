#!/usr/bin/env python3
"""Runs one benchmark on NVIDIA GPUs: peal, its peers and the floor, side by side.

As run.py: a round asks every program for every case once, in turns, and medians over at least nine
rounds make a result. Time on such machines is dear: programs start once (gpu_serve.py), set up and
check a case when they are asked for it the first time, and then only measure. What was measured
before a failure counts; programs that were not built are named. `primitives` is one program that
makes its own rounds. A program that prints nothing for --timeout seconds is ended, and --limit ends
the rounds early; what was measured in whole rounds is reported."""

import argparse
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_samples
import gpu_serve
import run as host

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 20  # without a new line from a program
COMPILE_S = 60  # for all kernels

# What programs are asked for. Behind a ring without interior comes one whose interior takes three
# times as long as the exchange does with peal.
HALO = [f"ring {size} {interior}" for size in (8, 4096, 65536, 1048576) for interior in (0, 20)]
HALO += [f"ring {size} alone" for size in (8, 4096, 65536, 1048576)]
HALO += [f"box {points}" for points in (32, 64, 128, 256)]
CASES = {"halo": HALO, "jacobi": ["256", "512", "1024", "2048", "4096", "8192", "16384"],
         "hdiff": ["128", "256", "512", "1024"]}
UNIT = {"halo": "us a round", "jacobi": "us a step", "hdiff": "us a step"}
# NVLink multicast can put the host's GPUs out of service: off, whatever is set outside.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1",
               "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
# How the peers are started: what a user who tunes would try. The best one counts.
ONE_CHANNEL = {"NCCL_MAX_P2P_NCHANNELS": "1", "NCCL_MIN_P2P_NCHANNELS": "1"}
TUNINGS = {("halo", "nccl"): {"": {}, "one channel": ONE_CHANNEL}}
PEERS = {"halo": ["nccl", "memcpy", "nvshmem"], "jacobi": ["nccl", "nvshmem"], "hdiff": ["nccl"]}


def packages():
    """Folders of NCCL's and NVSHMEM's libraries as Python packages have them."""
    try:
        import nvidia  # pylint: disable=import-outside-toplevel
    except ImportError:
        return []
    return [str(Path(root) / part / "lib") for root in nvidia.__path__
            for part in ("nccl", "nvshmem") if (Path(root) / part / "lib").is_dir()]


def environment():
    paths = packages() + [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), **ENVIRONMENT}


def find(build, name):
    """Where a program was built, or where it would be."""
    places = [build / "bench" / "gpu" / name, build / "bench" / name]
    return next((p for p in places if p.exists()), places[0])


def own_environment(options):
    """What peal's programs are told."""
    own = {"PEAL_BENCH_WAYS": ";".join(options.way)} if options.way else {}
    return {**own, **({"PEAL_BENCH_FRESH": "1"} if options.fresh else {})}


def programs(bench, build, gpus, options):
    """The programs of a benchmark that were built, and a line for each that was not."""
    wanted = [gpu_serve.Server("", find(build, f"peal_gpu_{bench}"), [gpus],
                               own_environment(options)),
              gpu_serve.Server("", find(build, "gpu_floor"), [bench, gpus])]
    for peer in PEERS[bench] if options.peer is None else options.peer:
        for tuning, env in TUNINGS.get((bench, peer), {"": {}}).items():
            if not tuning or gpus > 1:
                wanted.append(gpu_serve.Server(tuning, find(build, f"gpu_{bench}_{peer}"), [gpus],
                                               env))
    found = [program for program in wanted if program.binary.exists()]
    missing = [f"{p.binary.name} was not built" for p in wanted if not p.binary.exists()]
    return found, missing


class Series(host.Series):
    """A row that also knows the CPU's time of a repetition."""

    def __init__(self, label, kind):
        super().__init__(label, kind)
        self.cpu_ns = []

    def add(self, number, line):
        super().add(number, line)
        if "cpu_ns" in line:
            self.cpu_ns.append(line["cpu_ns"])


class Table:
    """All rows by case and label, what failed, and how many rounds were made."""

    def __init__(self, say):
        self.rows = {}
        self.failed = {}
        self.longer = set()  # cases whose interior takes three times as long as the exchange
        self.say = say

    def take(self, number, program, lines, why):
        """Adds what a program has answered in a round."""
        for line in [line for line in lines if "ns" in line]:
            tuning = f" ({program.name})" if program.name else ""
            label = f"{line['peer']}{tuning} {line['variant']}"
            series = self.rows.setdefault(line["case"], {})
            series.setdefault(label, Series(label, line["kind"])).add(number, line)
        name = f"{program.binary.name} {program.command[-1]} {program.name}".strip()
        for text in [f"{l['failed']}: {l['why']}" for l in lines if "failed" in l] + [why]:
            if text:
                self.failed.setdefault(f"{name}: {text}", []).append(str(number + 1))
                self.say(f"  failed: {name}: {text}")

    def follow(self, case, gpus, cases):
        """Adds the case whose interior takes three times as long as this one's exchange."""
        words = case.split()
        if words[0] != "ring" or words[2] != "0":
            return
        series = self.rows.get(f"ring{gpus}/{words[1]}/0", {})
        best = host.best_of([s for s in series.values() if s.kind == "peal"], [0])
        if best:
            interior = f"{3 * best.ns[0] / 1e3:.1f}"
            cases.append(f"ring {words[1]} {interior}")
            self.longer.add(f"ring{gpus}/{words[1]}/{interior}")


def compile_first(gpus, build, options, until):
    """Peal's kernels, into its cache: several processes of its program, each with some cases."""
    binary, cases = find(build, f"peal_gpu_{options.bench}"), options.case or CASES[options.bench]
    if not binary.exists():
        return
    count = max(1, min(len(cases), (os.cpu_count() or 1) // (2 * gpus)))
    around = {**environment(), **own_environment(options), "PEAL_BENCH_COMPILE": "1"}
    running = [subprocess.Popen([str(binary), str(gpus), *cases[k::count]], env=around,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)
               for k in range(count)]
    for process in running:
        try:
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def make_rounds(gpus, found, cases, options, table, until):
    """Asks all programs for all cases, round by round; how many rounds were whole."""
    begin, follows = time.monotonic(), options.bench == "halo" and not options.case
    around = environment()
    for number in range(options.rounds):
        for case in cases:  # grows in the first round
            for program in found:
                if time.monotonic() >= until:
                    return number
                lines, why = program.ask(case, around, options.timeout, until)
                table.take(number, program, lines, f"{case}: {why}" if why else "")
            if follows and number == 0:
                table.follow(case, gpus, cases)
        table.say(f"  {gpus} GPUs, round {number + 1} of {options.rounds}: "
                  f"{time.monotonic() - begin:.0f} s")
    return options.rounds


def measure(counts, build, options, say):
    """The table, how many rounds each number of GPUs had, and what was not built."""
    table, done, missing = Table(say), {}, set()
    end = time.monotonic() + options.limit
    for index, gpus in enumerate(counts):
        found, absent = programs(options.bench, build, gpus, options)
        missing.update(absent)
        now = time.monotonic()
        until = now + (end - now) / (len(counts) - index)
        try:
            for program in found:  # libraries open while kernels are compiled
                program.start(environment())
            compile_first(gpus, build, options, min(until, now + COMPILE_S))
            say(f"  {gpus} GPUs, kernels compiled: {time.monotonic() - now:.0f} s")
            done[gpus] = make_rounds(gpus, found, list(options.case or CASES[options.bench]),
                                     options, table, until)
        finally:
            for program in found:
                program.hush()
            for program in found:
                program.close()
    return table, done, sorted(missing)


def compare(own, other, target, rounds, words):
    """One line about a target: met, missed, or lost."""
    ratio = host.median(host.ratios(own, other, rounds))
    limit = host.TIE if target == 1 else target
    word = "met" if ratio <= limit else "LOSS" if ratio > host.TIE else "MISSED, but faster or tied"
    wanted = "a tie" if target == 1 else f"at most {target}"
    return f"  target: {wanted} of {words} ({other.label}): {ratio:.2f}: {word}"


def floor_of(peal, series):
    """The same graph without its messages, in the same way if there is one: by hand it packs and
    unpacks all the same."""
    style, way = peal.label.split(", ", 1)
    empty = "no exchange" if style == "peal tasks" else "interior"
    named = {s.label: s for s in series}
    return named.get(f"peal {way}, {empty}") or named.get(f"peal graph, {empty}")


def judge_exposed(peal, floor, rounds, wanted):
    """What of the communication is exposed."""
    base = host.median([floor.ns[r] for r in rounds if r in floor.ns])
    exposed = host.median([peal.ns[r] - floor.ns[r] for r in rounds
                           if r in floor.ns and r in peal.ns])
    limit = max(0.02 * base, 1200)
    text = (f"  exposed communication: {exposed / 1e3:.2f} us over {base / 1e3:.2f} us "
            f"({floor.label})")
    if wanted:
        text += (f"; target: at most {limit / 1e3:.2f}: "
                 f"{'met' if exposed <= limit else 'MISSED'}")
    return text


def judge_cpu(series):
    """CPU a step against launching graphs of empty kernels."""
    lines = []
    for label, steps in (("peal exchange, graph", 64), ("peal exchange, graph, steps=100", 100)):
        row = next((s for s in series if s.label == label), None)
        floor = next((s for s in series if s.label == f"cuda empty kernels, {steps} steps a graph"),
                     None)
        if row and floor and any(floor.cpu_ns):
            cpu, empty = host.median(row.cpu_ns) / 1e3, host.median(floor.cpu_ns) / 1e3
            text = f"  CPU a step, {steps} a graph: {cpu:.3f} us, {cpu / empty:.2f} of launching "
            text += f"empty kernels ({empty:.3f}); target: at most 1.2: "
            text += "met" if cpu <= 1.2 * empty else "MISSED"
            if steps == 100:
                text += f"; at most 0.3 us: {'met' if cpu <= 0.3 else 'MISSED'}"
            lines.append(text)
    return lines


def judge_halo(case, peal, series, rounds, longer):
    """Against NCCL's and the copies' best graphs, and what of the communication is exposed."""
    small = case.startswith("ring") and int(case.split("/")[1]) <= 65536
    lines = []
    for peer, target in (("nccl", 0.5 if small else 1), ("memcpy", 0.8 if small else 1),
                         ("nvshmem", 1)):
        graphs = [s for s in series if s.kind == "peer" and s.label.startswith(peer)
                  and (peer == "nvshmem" or "graph" in s.label)]
        best = host.best_of(graphs, rounds)
        if best:
            lines.append(compare(peal, best, target, rounds, peer))
    floor = floor_of(peal, series)
    if floor:
        lines.append(judge_exposed(peal, floor, rounds, longer))
    return lines + judge_cpu(series)


def judge_jacobi(case, peal, series, rounds, _):
    n = int(case.split("/")[0])
    best = host.best_of([s for s in series if s.kind == "peer"], rounds)
    lines = [compare(peal, best, 0.3 if n <= 1024 else 1, rounds, "the best peer")] if best else []
    floor = next((s for s in series if s.kind == "floor"), None)
    if floor and n == 16384 and not case.endswith("norm"):
        share = 1 / host.median(host.ratios(peal, floor, rounds))
        lines.append(f"  target: at least 0.9 of the copy rate: {share:.2f}: "
                     f"{'met' if share >= 0.9 else 'MISSED'}")
    return lines


def judge_hdiff(case, _, series, rounds, __):
    """Each of peal's modes against NCCL's best graph; between ranks only."""
    n, gpus = (int(word) for word in case.split("/"))
    graphs = [s for s in series if s.kind == "peer" and s.label.endswith("graph")]
    best = host.best_of(graphs, rounds)
    lines = []
    for mode in ("fused", "graph"):
        own = host.best_of([s for s in series if s.kind == "peal" and f", {mode}" in s.label], rounds)
        if own and best and gpus > 1:
            wanted = 0.5 if n <= 128 else 0.75 if n <= 256 else 0.95
            lines.append(compare(own, best, wanted, rounds, f"nccl, mode {mode}"))
    return lines


def shown(series, rounds, limit):
    """The rows of a table: all of peal's, all floors, the best few peers of each library."""
    kept = [s for s in host.shown(series, rounds, limit) if s.kind != "floor"]
    floors = [s for s in series if s.kind == "floor" and any(r in s.ns for r in rounds)]
    own = [s for s in kept if s.kind == "peal"]
    return own + floors + [s for s in kept if s.kind != "peal"]


JUDGE = {"halo": judge_halo, "jacobi": judge_jacobi, "hdiff": judge_hdiff}


def case_lines(bench, case, series, rounds, limit, longer):
    """A case as lines of text."""
    best = host.best_of([s for s in series if s.kind == "peer"], rounds)
    peal = host.best_of([s for s in series if s.kind == "peal"], rounds)
    about = ", the interior takes 3 times as long as the exchange" if longer else ""
    lines = [f"{bench} {case} ({UNIT[bench]}; {len(rounds)} rounds{about})",
             f"  {'':50}{'median':>10}{'min':>10}{'max':>10}{'CPU':>9}   ratio to best peer"]
    for row in shown(series, rounds, limit):
        values = [row.ns[r] / 1e3 for r in rounds if r in row.ns]
        text = f"  {row.kind + ': ' + row.label:50}{host.median(values):10.2f}"
        text += f"{min(values):10.2f}{max(values):10.2f}"
        text += f"{host.median(row.cpu_ns) / 1e3:9.2f}" if row.cpu_ns else " " * 9
        compared = host.ratios(row, best, rounds) if best else []
        if compared:
            text += f"   {host.median(compared):5.2f} [{min(compared):.2f}, {max(compared):.2f}]"
        if len(values) < len(rounds):
            text += f"   in {len(values)} rounds"
        lines.append(text + ("" if row.verified else "   WRONG RESULT"))
    if peal:
        lines += JUDGE[bench](case, peal, series, rounds, longer)
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
                       f"commit: {commit or 'unknown'}"]


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
    """Its own tables, as they come."""
    binary = find(build, "gpu_primitives")
    head = head_of("primitives", about, options.rounds)
    print("\n".join(head), flush=True)
    if not binary.exists():
        print("nothing to run: ninja -C BUILD bench-gpu builds the program")
        return 4
    words = ["--rounds", str(options.rounds), "--gpus", str(min(max(options.gpus), 2))]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([str(binary), *words], env=environment(), stdout=out,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            why = "" if process.wait(options.limit) == 0 else f"exit {process.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            why = "no time left"
        out.seek(0)
        text = out.read()
    print(text, why, sep="\n", flush=True)
    keep(options, "primitives", head + [text.rstrip()], 0 if why else options.rounds)
    return 1 if why else 0


def run_compared(bench, options, build, there, about):
    counts = [g for g in options.gpus if (g <= there or not there) and (bench != "halo" or g > 1)]
    print("\n".join(about), flush=True)
    table, done, missing = measure(counts, build, options,
                                   lambda text: print(text, file=sys.stderr, flush=True))
    if not table.rows:
        print("\n".join([f"left out: {line}" for line in missing + list(table.failed)] +
                        ["nothing was measured: ninja -C BUILD bench-gpu builds the programs"]))
        return 4
    failed = [f"{text} (round {', '.join(at)})" for text, at in table.failed.items()]
    lines = head_of(bench, about, min(done.values()))
    lines += [f"left out: {line}" for line in missing + failed]
    for case, series in table.rows.items():
        gpus = int(case.split("/")[1]) if bench != "halo" else int(
            case.split("/")[0].lstrip("ringbox"))
        rounds = range(done.get(gpus, 0))
        some = [s for s in series.values() if any(r in s.ns for r in rounds)]
        if some:
            lines += [""] + case_lines(bench, case, some, rounds, options.rows,
                                       case in table.longer)
    print("\n".join(lines), flush=True)
    keep(options, bench, lines, min(done.values()))
    right = all(s.verified for series in table.rows.values() for s in series.values())
    return 0 if right else 1


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: ninja -C build bench-gpu && bench/gpu_run.py halo --gpus 2,4")
    parser.add_argument("bench", choices=["primitives", "samples", *CASES],
                        help="samples: as users type them; options of its own (samples --help)")
    parser.add_argument("--build", default="build", help="Meson's build folder (default: build)")
    parser.add_argument("--gpus", default="1,2,4", help="numbers of GPUs (default: 1,2,4)")
    parser.add_argument("--rounds", type=int, default=9, help="at least 9 for a result to keep")
    parser.add_argument("--limit", type=float, default=540, help="seconds in all (default: 540)")
    parser.add_argument("--case", action="append", help='"ring 4096 20" or 1024; may be repeated')
    parser.add_argument("--batch-ms", type=float, help="of a batch; three make a time (default: 8)")
    parser.add_argument("--fresh", action="store_true", help="make peal's plans anew each round")
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
    if options.batch_ms:
        os.environ["PEAL_BENCH_BATCH_MS"] = str(options.batch_ms)
    return options


def main():
    if sys.argv[1:2] == ["samples"]:
        return gpu_samples.main(sys.argv[2:])
    options = parse()
    build = Path(options.build).resolve()
    there, about = machine()
    if options.bench == "primitives":
        return run_primitives(options, build, about)
    return run_compared(options.bench, options, build, there, about)


if __name__ == "__main__":
    sys.exit(main())
