#!/usr/bin/env python3
"""What the modes gain on sync in samples/hpgmg: an F-cycle of N^3 cells, all of it and its fine levels.

    bench/hpgmg_modes.py --ranks 2 > bench/results/DATE-gpu-hpgmg-modes.txt

The same spec and the same kernels; only the mode differs. gain: 1 - t(mode) / t(sync), the median over
the rounds, in which all take turns. `fine` is the spec that ends with the first level that every rank has
all cells of (--gather along an axis), whose solution is then one task for each point: other numbers, of
course, so digests are compared among the modes of a case. A time is the median of the parts of a run.
Boxes of log2 b in the tables of GPUDirect Async (JPDC 2018) are (2 * 2^b)^3 cells, 8 boxes on 2 ranks;
there the levels of 32^3 cells and more run on GPUs, which are the fine ones with --gather 16."""

import argparse
import datetime
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import gpu_samples

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "samples" / "hpgmg"
# mode, what --lower says
WAYS = {"sync": ("sync", None), "sync, copy=kernel": ("sync", "copy=kernel"), "stream": ("stream", None), "fused": ("fused", None), "graph": ("graph", None)}
LAST, FINE = "  last: log2(n) ", "  last: log2(n / gather) "


def specs(folder):
    """By part: the sample, and a copy that ends with the first level that is gathered."""
    shutil.copy(SAMPLE / "hpgmg.c", folder)
    text = (SAMPLE / "hpgmg.yaml").read_text(encoding="utf-8")
    if text.count(LAST) != 1:
        sys.exit(f"{SAMPLE}/hpgmg.yaml: not one line {LAST!r}")
    fine = folder / "hpgmg.yaml"
    fine.write_text(text.replace(LAST, FINE), encoding="utf-8")
    return {"all": SAMPLE / "hpgmg.yaml", "fine": fine}


def run(options, spec, cells, way, solves):
    """Seconds of an F-cycle, and the digest; or None and why there are none."""
    mode, lower = WAYS[way]
    settings = {"n": cells, "gather": options.gather, "vcycles": 0, "solves": solves}
    also = ["--backend", options.backend, "--no-tuning"] + (["--lower", lower] if lower else [])
    result, why = gpu_samples.run(options.peal, spec, options.ranks, mode, settings, also)
    return (None, why) if result is None else (result["seconds_per_step"]["median"], result["digest"])


def table(options, times, notes):
    print(f"{'cells':>6s} {'part':5s} {'ms in sync':>22s}" + "".join(f"{way:>30s}" for way in options.ways[1:]))
    for cells in options.cells:
        for part in ("fine", "all"):
            base = times.get((cells, part, options.ways[0]), [])
            if not base:
                print(f"{cells:4d}^3 {part:5s} {notes.get((cells, part, options.ways[0]), 'not run')}")
                continue
            line = f"{1e3 * statistics.median(base):.3g} ({1e3 * min(base):.3g}-{1e3 * max(base):.3g})"
            cells_of = [f"{line:>22s}"]
            for way in options.ways[1:]:
                mine = times.get((cells, part, way), [])
                if mine:
                    gain = statistics.median(1 - t / b for t, b in zip(mine, base))
                    cells_of.append(f"{1e3 * statistics.median(mine):12.3g} ms, {100 * gain:5.1f} % less")
                else:
                    cells_of.append(f"{notes.get((cells, part, way), 'not run')[:28]:>30s}")
            print(f"{cells:4d}^3 {part:5s} " + "".join(f"{text:>30s}" if i else text for i, text in enumerate(cells_of)))


def measure(options, folder):
    times, digests, notes, until = {}, {}, {}, time.monotonic() + options.limit
    cases = [(cells, part, way) for cells in options.cells for part in ("fine", "all") for way in options.ways]
    path, done = specs(folder), 0
    for number in range(options.rounds + 1):  # the first one compiles
        if time.monotonic() > until:
            break
        for cells, part, way in cases:
            if (cells, part, way) in notes:
                continue
            solves = 3 if number == 0 else max(10, min(options.solves, options.solves * 64 // cells))
            seconds, said = run(options, path[part], cells, way, solves)
            if seconds is None:
                notes[cells, part, way] = said
            elif number > 0:
                times.setdefault((cells, part, way), []).append(seconds)
                digests.setdefault((cells, part), set()).add(said)
        done = number
    return times, digests, notes, done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peal", default=str(ROOT / "build" / "tools" / "peal"))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cells", type=lambda text: [int(word) for word in text.split(",")], default=[32, 64, 128, 256], help="along an axis")
    parser.add_argument("--gather", type=int, default=16, help="cells along an axis of the first level that every rank has (default 16)")
    parser.add_argument("--ways", type=lambda text: [word.strip() for word in text.split(";")], default=list(WAYS), help="of " + "; ".join(WAYS) + ": the first one is what others are compared with")
    parser.add_argument("--solves", type=int, default=40, help="F-cycles of a run of 64^3; fewer of larger ones (default 40)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds, after which no round begins")
    options = parser.parse_args()
    for way in options.ways:
        if way not in WAYS:
            parser.error(f"--ways: {way!r} is not one of " + "; ".join(WAYS))
    with tempfile.TemporaryDirectory() as folder:
        times, digests, notes, rounds = measure(options, Path(folder))
    print(f"samples/hpgmg, F-cycles, {options.ranks} ranks, gather {options.gather}, {datetime.date.today()}, {rounds} rounds\ncommand: bench/{Path(__file__).name} {' '.join(sys.argv[1:])}\n")
    table(options, times, notes)
    differ = [f"{cells}^3 {part}" for (cells, part), all_of in digests.items() if len(all_of) > 1]
    print("\ndigests differ: " + ", ".join(differ) if differ else "\ndigests of a case are equal in all modes")
    return 1 if differ or not times else 0


if __name__ == "__main__":
    sys.exit(main())
