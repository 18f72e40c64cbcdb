#!/usr/bin/env python3
"""`peal run` and `save` when one call of peal's own fails: the n-th allocation, write, or call on files;
and when it is killed at the n-th of them. Each n of each process in turn. The verbs that start no
processes, when the n-th allocation fails.

    every_call_test.py INJECT.so [--every K [--from N]] [--kinds memory,write,file,thread,kill]

Without a failure the run's file and rows are what they always are. With one, each process ends by
itself with a status of the list, says why under a number (once), and leaves nothing behind; the file
that was saved before stays whole, or is the new one. --every 7 takes every 7th n, another 7th at
each commit (../share/share.py)."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from math import prod
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

PEAL = os.path.abspath(os.environ.get("PEAL", "build/tools/peal"))
HARD_LIMIT = 120
PROCESSES = ("none", "0/2", "1/2")  # the one that was started, and its two
KINDS = {"memory": ("",), "write": ("ENOSPC", "EIO", "0"), "file": ("EMFILE",), "thread": ("",), "kill": ("",)}
SPEC = """peal: 1
params: {n: 24, steps: 4, first: 1}
topology: {dims: [auto, auto], periodic: true}
kernels: kernels.c
fields: {a: {size: [n, n], halo: 1}, b: {like: a}}
buffers: {total: {}, weights: {file: weights.npy}}
setup:
  - {load: b, file: weighed.npy}
  - {task: start, box: a, read: [b, weights], write: a, args: first}
repeat: steps
step:
  - {exchange: a}
  - {task: relax, box: a, read: {a: {star: 1}}, write: b, reduce: {total: sum}}
  - {allreduce: {total: sum}, when: step % 2 == 0}
  - {print: {total: total}, when: step % 2 == 0}
  - {swap: [a, b]}
finish:
  - {save: a, file: a.npy}
"""
HEADER = "#define WEIGHED(value, weight) ((value) * (weight))\n"
KERNELS = """#include "weighed.h"
PEAL_KERNEL(start)(peal_tile t, PEAL_READ(double, b), PEAL_READ(double, weights), PEAL_WRITE(double, a), long first)
{
    PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = WEIGHED(x + y % 3 + first, PEAL_AT(weights, 1)) + PEAL_AT(b, x, y);
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b), PEAL_REDUCE(double, total))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(b, x, y) = 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) +
                                   PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
        sum += PEAL_AT(b, x, y);
    }
    PEAL_PARTIAL(total, sum);
}
"""
INPUTS = ("spec.yaml", "kernels.c", "weighed.h", "weights.npy", "weighed.npy")
# Statuses that say what went wrong: environment, a peer that was lost. A killed one is 128 + 9.
ENDS = {4, 5}


def npy(shape):
    """A file of ones, as numpy.save writes it."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<d", 1) * prod(shape)


class Trials:
    def __init__(self, library, scratch):
        self.folder = Path(scratch) / "job"
        self.folder.mkdir(mode=0o700)
        (self.folder / "spec.yaml").write_text(SPEC)
        (self.folder / "kernels.c").write_text(KERNELS)
        (self.folder / "weighed.h").write_text(HEADER)
        (self.folder / "weights.npy").write_bytes(npy((3,)))
        (self.folder / "weighed.npy").write_bytes(npy((24, 24)))
        self.file = self.folder / "a.npy"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMIX_", "PEAL", "OMPI_"))}
        self.env = {**kept, "XDG_CACHE_HOME": str(Path(scratch) / "cache")}
        self.injected = {**self.env, "LD_PRELOAD": library}
        self.words = ["run", "spec.yaml", "-n", "2", "--mode", "stream", "--deadline", "10s"]
        self.wrong = []
        self.right = None
        self.old = None

    def run(self, env, first=1):
        done = subprocess.run([PEAL, *self.words, "--set", f"first={first}"], cwd=self.folder, env=env,
                              capture_output=True, text=True, errors="replace", timeout=HARD_LIMIT, check=False)
        return done.returncode, done.stdout, done.stderr

    def prepare(self):
        """The file that was there before, what a run prints and saves, and how many calls each process makes."""
        assert self.run(self.env, first=2)[0] == 0
        self.old = self.file.read_bytes()
        code, out, err = self.run(self.env)
        assert code == 0, err
        self.right = (self.rows(out), self.file.read_bytes())
        counts = self.folder.parent / "counts"
        assert self.run({**self.injected, "INJECT_COUNT": str(counts)})[0] == 0
        found = {}
        for line in counts.read_text().splitlines():
            rank, *calls = line.split()
            found[rank] = dict(zip(("memory", "write", "file", "thread"), map(int, calls)))
            found[rank]["kill"] = sum(found[rank].values())
        assert set(found) == set(PROCESSES), found
        return found

    @staticmethod
    def rows(out):
        return [line for line in out.splitlines() if not re.search(r" in .*a step", line)]

    def judge(self, name, kind, code, out, err):
        """What is wrong with how a run ended; None: nothing."""
        whole = self.file.read_bytes()
        left = [p.name for p in self.folder.iterdir() if p.name not in (*INPUTS, "a.npy")]
        if code == 0 and (self.rows(out), whole) != self.right:
            return "rc 0, but not the result"
        if whole not in (self.old, self.right[1]):
            return "the file is neither the old one nor the new one"
        if left and kind != "kill":
            return f"left behind: {left}"
        if code == 0:
            return None
        if kind == "kill":
            return None if code in ENDS or code == -9 else f"rc {code}"
        told = re.findall(r"error: .*\[(E\d\d\d)\]", err)
        if code not in ENDS or "E333" in told:  # a crash
            return f"rc {code}"
        return None if len(told) == 1 else f"told {len(told)} times"

    def trial(self, process, kind, n, error):
        self.file.write_bytes(self.old)
        name = f"{kind} {n}{' ' + error if error else ''} of process {process}"
        env = {**self.injected, "INJECT": f"{kind}:{n}:{error or 'EIO'}", "INJECT_RANK": process, "INJECT_TRACE": "1"}
        try:
            code, out, err = self.run(env)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"{name}: hangs")
            return
        said = "\n".join(line for line in err.splitlines() if not line.startswith("inject:"))
        bad = self.judge(name, kind, code, out, said)
        if bad:
            self.wrong.append(f"{name}: {bad}\n    " + "\n    ".join(err.splitlines()[:6]))
            print(self.wrong[-1], flush=True)
        for path in self.folder.iterdir():
            if path.name not in (*INPUTS, "a.npy"):
                path.unlink()


def verbs(trials, every, first):
    """What starts no processes, when the n-th allocation fails: (runs, those that went wrong)."""
    machine = os.path.join(os.environ.get("PEAL_ROOT", "."), "machines", "h200x4.yaml")
    count, wrong, counts = 0, [], trials.folder.parent / "verb"
    for words in (["check"], ["explain"], ["plan", "--json"], ["simulate", "--machine", os.path.abspath(machine)]):
        def run(env, words=words):
            return subprocess.run([PEAL, words[0], "spec.yaml", "-n", "2", *words[1:]], cwd=trials.folder, env=env,
                                  capture_output=True, text=True, errors="replace", timeout=HARD_LIMIT, check=False)
        counts.unlink(missing_ok=True)
        done = run({**trials.injected, "INJECT_COUNT": str(counts)})
        assert done.returncode == 0, done.stderr
        for n in range(first % every, int(counts.read_text().split()[1]), every):
            done = run({**trials.injected, "INJECT": f"memory:{n}:EIO"})
            told = re.findall(r"error: .*\[(E\d\d\d)\]", done.stderr)
            count += 1
            fine = not told or words[0] != "check" if done.returncode == 0 else (done.returncode, len(told)) == (4, 1)
            if not fine:
                wrong.append(f"memory {n} of {words[0]}: rc {done.returncode}, told {len(told)} times")
                print(wrong[-1], done.stderr[:300], flush=True)
    return count, wrong


def main():
    library = os.path.abspath(sys.argv[1])
    every = int(sys.argv[sys.argv.index("--every") + 1]) if "--every" in sys.argv else 1
    every = int(os.environ.get("PEAL_TEST_EVERY") or every)
    first = int(sys.argv[sys.argv.index("--from") + 1]) if "--from" in sys.argv else share.SEED
    kinds = sys.argv[sys.argv.index("--kinds") + 1].split(",") if "--kinds" in sys.argv else list(KINDS)
    scratch = tempfile.mkdtemp(prefix="peal-every-")
    try:
        trials, count = Trials(library, scratch), 0
        for process, calls in trials.prepare().items():
            for kind, errors in ((k, KINDS[k]) for k in kinds):
                for n in range(first % every, calls[kind], every):
                    for error in errors:
                        trials.trial(process, kind, n, error)
                        count += 1
        if "memory" in kinds:
            more, wrong = verbs(trials, every, first)
            count += more
            trials.wrong += wrong
    finally:
        shutil.rmtree(scratch)
    print(f"{count} runs in which a call failed (every {every} from {first % every}), {len(trials.wrong)} wrong")
    return 1 if trials.wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
