#!/usr/bin/env python3
# The persistent kernel of mode fused is compiled beside the plan's other kernels, of a plan without a device: what that compiles
# is what the plan then takes, so a process has one such unit, begun before the others were done, and no second.
#
#   ahead_test.py EMULATING INCLUDE: the folder with the driver's stand-in whose kernels run, that of the emulated device's headers
import glob
import os
import sys
import tempfile
import unittest

EMULATING, INCLUDE = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "share")]
import common  # noqa: E402
import share  # noqa: E402

# The emulating driver keeps functions and graphs until the process ends.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

# Ranks of two processes may have different ones: that of the first one prints.
CASES = [("jacobi2d/jacobi2d", 1, ["nx=64", "ny=66"]), ("jacobi2d/jacobi2d", 2, ["nx=64", "ny=66"]), ("heat3d/heat3d", 1, []),
         ("halo/short", 2, []), ("particles/particles", 1, []), ("vcycle/vcycle", 1, [])]
DISPATCH = "void peal_fused_call_(unsigned function"


class Ahead(unittest.TestCase):
    def test_what_is_compiled_ahead_is_what_runs(self):
        for spec, ranks, sets in share.taken(CASES, 3):
            with self.subTest(spec, ranks=ranks), tempfile.TemporaryDirectory() as folder:
                env = common.environment(LD_LIBRARY_PATH=EMULATING, STANDIN_DEVICES=str(ranks), STANDIN_RECORD=os.devnull, STANDIN_SMS="3",
                                         EMULATE_INCLUDE=INCLUDE, EMULATE_UNITS=folder, XDG_CACHE_HOME=folder)
                words = ["--backend", "cuda", "--mode", "fused", "--verify", "--steps", "60", "-n", str(ranks)]
                words += [word for each in sets for word in ("--set", each)]
                code, out, err = common.peal("run", os.path.join(common.ROOT, "samples", spec + ".yaml"), *words, env=env)
                self.assertEqual(code, 0, out + err)
                self.assertIn("fused equal to serial, bit for bit", out)
                begun, others_done = [], []
                for path in glob.glob(os.path.join(folder, "*", "unit.cc")):
                    with open(path, encoding="utf-8") as file:
                        is_persistent = DISPATCH in file.read()
                    (begun if is_persistent else others_done).append(os.stat(path if is_persistent else path[:-2] + "so").st_mtime)
                self.assertIn(len(begun), range(1, ranks + 1))
                self.assertLess(max(begun), max(others_done), "it was compiled behind the others")

    def tune(self, spec):
        """When the compilers of persistent kernels began and ended, in the order in which they began."""
        with tempfile.TemporaryDirectory() as folder:
            env = common.environment(LD_LIBRARY_PATH=EMULATING, STANDIN_DEVICES="1", STANDIN_RECORD=os.devnull, STANDIN_SMS="3",
                                     EMULATE_INCLUDE=INCLUDE, EMULATE_UNITS=folder, XDG_CACHE_HOME=folder, PEAL_TEST_PIECE_S="0.0001")
            words = ["--backend", "cuda", "--mode", "fused", "--steps", "10"]
            code, out, err = common.peal("tune", spec, *words, env=env)
            self.assertEqual(code, 0, out + err)
            spans = []
            for path in glob.glob(os.path.join(folder, "*", "unit.cc")):
                with open(path, encoding="utf-8") as file:
                    if DISPATCH in file.read():
                        spans.append((os.stat(path).st_mtime, os.stat(path[:-2] + "so").st_mtime))
            self.assertGreater(len(spans), 2)
            return sorted(spans)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core compiles one after the other")
    def test_tuning_compiles_its_candidates_side_by_side(self):
        """But constants are read by one thread at a time."""
        for spec, together in share.taken([(CONSTANT, False), (SPEC, True)], 2):
            with self.subTest(spec), tempfile.TemporaryDirectory() as folder:
                path = common.folder_of({"s.yaml": spec, "k.c": ADD_CONSTANT if spec == CONSTANT else ADD}, folder)
                spans = self.tune(os.path.join(path, "s.yaml"))
                self.assertEqual(any(later[0] < earlier[1] for earlier, later in zip(spans, spans[1:])), together, spans)

    def test_an_error_of_the_compiler_is_told_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = common.folder_of({"s.yaml": SPEC, "k.c": "PEAL_KERNEL(add)(peal_tile t, PEAL_UPDATE(int, u)) { nothing; }\n"}, folder)
            env = common.environment(LD_LIBRARY_PATH=EMULATING, STANDIN_DEVICES="1", STANDIN_RECORD=os.devnull,
                                     EMULATE_INCLUDE=INCLUDE, EMULATE_UNITS=folder, XDG_CACHE_HOME=folder)
            code, _, err = common.peal("run", os.path.join(path, "s.yaml"), "--backend", "cuda", "--mode", "fused", env=env)
            self.assertEqual(code, 3, err)
            self.assertEqual(err.count("[E"), 1, err)
            self.assertIn("k.c", err)


SPEC = """peal: 1
kernels: k.c
fields: {u: {type: i32, size: [64]}}
repeat: 20
step:
  - {task: add, box: u, update: u}
"""

ADD = """PEAL_KERNEL(add)(peal_tile t, PEAL_UPDATE(int, u))
{
    PEAL_FOR_1D(t, x) PEAL_AT(u, x) += 1;
}
"""
CONSTANT = """peal: 1
kernels: k.c
fields: {u: {type: i32, size: [64]}}
buffers: {w: {type: i32, values: [3, 4]}}
repeat: 20
step:
  - {task: add, box: u, read: w, update: u}
"""
ADD_CONSTANT = """PEAL_KERNEL(add)(peal_tile t, PEAL_READ(int, w), PEAL_UPDATE(int, u))
{
    PEAL_FOR_1D(t, x) PEAL_AT(u, x) += PEAL_AT(w, 1);
}
"""

if __name__ == "__main__":
    common.main()
