#!/usr/bin/env python3
# The protocols as models, checked by spin over all interleavings; and mutants of them, of which spin must find that
# they are wrong. Skipped where spin or a C compiler is missing.
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))
LIMIT = 300  # of a step that hangs; no test judges speed
RIGHT = [
    ("channel", []), ("channel", ["SLOTS=2"]), ("channel", ["SLOTS=2", "P=8"]), ("channel", ["SLOTS=3", "P=8"]),
    ("channel", ["SLOTS=3", "P=8", "LEAD=3"]), ("channel", ["SLOTS=4", "P=16", "LEAD=3"]),
    ("carrier", []), ("carrier", ["STORAGES=4"]),
    ("dispatcher", []),
    ("fused", []), ("behind", []),
    ("round", []), ("round", ["NO_DECIDE"]),
    ("tickets", []), ("tickets", ["BLOCKS=1"]),
    ("network", []), ("network", ["REORDER"]), ("network", ["SLOTS=1"]), ("network", ["SLOTS=1", "REORDER"]),
]
# model, defines, what spin must report
WRONG = [
    ("channel", ["DROP_CREDIT"], "assertion violated"), ("channel", ["SLOTS=2", "DROP_CREDIT"], "assertion violated"),
    ("channel", ["DROP_WAIT"], "assertion violated"), ("channel", ["EARLY_CREDIT"], "assertion violated"),
    ("channel", ["SLOTS=2", "P=2"], "invalid end state"),
    ("channel", ["SLOTS=2", "P=8", "LEAD=3"], "invalid end state"),
    ("channel", ["SLOTS=3", "P=8", "LEAD=3", "DROP_CREDIT"], "assertion violated"),
    ("carrier", ["STORAGES=1"], "assertion violated"), ("carrier", ["LATE_USE"], "assertion violated"),
    ("dispatcher", ["OFF_BY_ONE"], "assertion violated"), ("dispatcher", ["NO_RETURN"], "assertion violated"),
    ("dispatcher", ["EARLY_COUNT"], "assertion violated"),
    *(("fused", [mutant], "assertion violated") for mutant in (
        "NO_EPOCH", "NO_ORDER", "HALF_SUM", "NO_RELEASE", "GPU_SCOPE", "NO_ACQUIRE", "EARLY_SHARE", "STORAGES=1")),
    ("fused", ["WAIT_AHEAD"], "invalid end state"),
    *(("behind", [mutant], "assertion violated") for mutant in (
        "FAR_BEHIND", "FEW_SCRATCH", "FEW_SLOTS", "NO_CREDIT", "NO_EPOCH", "EARLY_EPOCH", "EARLY_FLAG")),
    ("behind", ["NEVER_BEHIND"], "invalid end state"),
    ("round", ["NO_BARRIER"], "assertion violated"), ("round", ["NO_BARRIER", "NO_DECIDE"], "assertion violated"),
    ("round", ["NO_RESET"], "assertion violated"),
    *(("round", [mutant], "invalid end state") for mutant in ("LOOK_EARLY", "DECIDE_EARLY", "NO_RELEASE")),
    *(("tickets", [mutant], "assertion violated") for mutant in ("NO_OWN", "NO_BEGIN", "NO_RESET", "NO_RELEASE", "NO_ACQUIRE")),
    *(("network", [mutant], "assertion violated") for mutant in (
        "POST_LATEST", "NO_CREDIT", "FLAG_FIRST", "NO_PLAN", "NO_LOCK", "EARLY_START", "NO_JOIN")),
    ("network", ["REORDER", "NO_ORDER"], "assertion violated"),
    *(("tickets", [mutant], "invalid end state") for mutant in ("NO_NEXT", "OLD_EPOCHS", "BACKWARDS")),
]


class Models(unittest.TestCase):
    def explore(self, model, defines):
        """What spin says of all interleavings: assertions and states in which nobody can go on."""
        with tempfile.TemporaryDirectory() as folder:
            for words in [["spin", *("-D" + d for d in defines), "-a", os.path.join(FOLDER, model + ".pml")],
                          [os.environ.get("CC", "cc").split()[0], "-O0", "-w", "-DSAFETY", "-o", "pan", "pan.c"]]:
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT)
                self.assertEqual(done.returncode, 0, f"{words}: {done.stdout} {done.stderr}")
            done = subprocess.run(["./pan", "-m1000000"], cwd=folder, capture_output=True, text=True, check=False,
                                  timeout=LIMIT)
        errors = re.search(r"errors: (\d+)", done.stdout)
        self.assertTrue(errors, done.stdout + done.stderr)
        self.assertNotIn("max search depth too small", done.stdout)
        self.assertNotIn("out of memory", done.stdout)
        return int(errors.group(1)), done.stdout

    def test_right(self):
        for model, defines in share.taken(RIGHT, 3):
            with self.subTest((model, *defines)):
                errors, said = self.explore(model, defines)
                self.assertEqual(errors, 0, said)
                self.assertGreater(int(re.search(r"(\d+) states, stored", said).group(1)), 50, said)

    def test_mutants(self):
        for model, defines, expected in share.taken(WRONG, 5):
            with self.subTest((model, *defines)):
                errors, said = self.explore(model, defines)
                self.assertGreater(errors, 0, said)
                self.assertIn(expected, said)


if __name__ == "__main__":
    if not shutil.which("spin") or not shutil.which(os.environ.get("CC", "cc").split()[0]):
        print("skipped: spin (Debian's package of that name) or a C compiler is missing")
        sys.exit(77)
    unittest.main(verbosity=1)
