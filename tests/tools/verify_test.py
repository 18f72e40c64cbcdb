# What --verify and peal tune compare: kept arrays, rows of print, files of save; and what they say where there is
# nothing of these. The kernel draws random numbers, so that no run equals another.
import os
import shutil
import tempfile
import unittest

from common import environment, main, peal, peal_json

KERNELS = """#include <stdlib.h>
PEAL_KERNEL(draw)(peal_tile t, PEAL_WRITE(double, b)) { PEAL_ONE(t) { for (int i = 0; i < 4; i++) b[i] = rand(); } }
PEAL_KERNEL(count)(peal_tile t, PEAL_WRITE(double, b)) { PEAL_ONE(t) { for (int i = 0; i < 4; i++) b[i] = i; } }
PEAL_KERNEL(first)(peal_tile t, PEAL_READ(double, b), PEAL_WRITE(double, x)) { PEAL_ONE(t) x[0] = b[0]; }
"""
SPEC = """peal: 1
kernels: k.c
params: {{folder: out/deep}}
buffers: {{b: {{count: 4{keep}}}, x: {{}}}}
repeat: 2
step:
  - {{task: fill, kernel: {kernel}, write: b}}
  - {{send: b, to: "(rank + 1) % ranks"}}
  - {{recv: b, from: "(rank - 1) % ranks"}}
  - {{task: first, read: b, write: x}}
{more}"""
PRINT = '  - {print: {value: x}}\n'
SAVE = '  - {save: b, file: "{folder}/b-{rank}-%25-{step}.npy"}\n'
MODES = [["--mode", "sync"], ["--mode", "stream", "-n", "2"], ["--mode", "fused", "-n", "3", "--processes", "1"],
         ["--mode", "all", "-n", "2"], ["--mode", "auto"]]


class Verify(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "out", "deep"))
        os.mkdir(os.path.join(self.folder, "tmp"))
        with open(os.path.join(self.folder, "k.c"), "w", encoding="ascii") as file:
            file.write(KERNELS)
        self.env = environment(TMPDIR=os.path.join(self.folder, "tmp"))

    def spec(self, kernel="count", more="", keep=""):
        path = os.path.join(self.folder, "spec.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(SPEC.format(kernel=kernel, more=more, keep=keep))
        return path

    def run_verified(self, *words, **kind):
        code, out, err = peal("run", self.spec(**kind), *words, "--verify", env=self.env)
        self.assertEqual([name for name in os.listdir(self.env["TMPDIR"]) if name.startswith("peal-verify")], [])
        return code, out, err

    def test_nothing_is_not_equal(self):
        for words in MODES:
            with self.subTest(words):
                code, out, err = self.run_verified(*words)
                self.assertEqual(code, 3, err)
                self.assertIn("nothing was compared", err)
                self.assertEqual(err.count("[E372]"), 1, err)
                self.assertNotIn("equal", out)

    def test_one_thing_is_enough(self):
        for kind in [{"keep": ", keep: true"}, {"more": PRINT}, {"more": SAVE}]:
            for words in MODES:
                with self.subTest((kind, words)):
                    code, out, err = self.run_verified(*words, **kind)
                    self.assertEqual(code, 0, err)
                    self.assertNotIn("error", err)
                    self.assertIn("equal to serial, bit for bit.", out)

    def test_differences_are_named(self):
        for kind, said in [({"keep": ", keep: true"}, "'b' of rank 0 differs from serial at (0): "),
                           ({"more": PRINT}, "row 1 of `print`, step 0: 'value' is "),
                           ({"more": SAVE}, "the file `out/deep/b-0-%25-0.npy` differs from the one that serial saves, "
                                            "from byte ")]:
            for words in MODES[:3]:
                with self.subTest((kind, words)):
                    code, out, err = self.run_verified(*words, kernel="draw", **kind)
                    self.assertEqual(code, 1, err)
                    self.assertIn("[E360]", err)
                    self.assertIn(said, err)
                    self.assertNotIn("equal", out)

    def test_rows_differ_without_verify(self):
        code, out, err = peal("run", self.spec(kernel="draw", more=PRINT), "--mode", "all", env=self.env)
        self.assertEqual(code, 1, err)
        self.assertIn("WRONG", out)
        code, out, err = peal("run", self.spec(kernel="draw"), "--mode", "all", env=self.env)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Result: nothing was compared (E372)", out)
        self.assertNotIn("equal", out)

    def test_json_says_so(self):
        code, data, err = peal_json("run", self.spec(), "--mode", "sync", "--verify", "--json", env=self.env)
        self.assertEqual((code, data["status"]), (3, "error in the spec"), err)
        self.assertNotIn("equal_to_serial", data["modes"][0])

    def test_tune_compares_something(self):
        env = dict(self.env, PEAL_CACHE=os.path.join(self.folder, "tmp"), PEAL_TEST_PIECE_S="1e-4")
        code, _, err = peal("tune", self.spec(), env=env)
        self.assertEqual(code, 3, err)
        self.assertIn("nothing was compared", err)
        code, _, err = peal("tune", self.spec(kernel="draw", more=PRINT), env=env)
        self.assertEqual(code, 1, err)
        self.assertIn("[E470]", err)
        self.assertEqual(peal("tune", self.spec(more=PRINT), env=env)[0], 0)

    def test_verification_and_footprints_exclude_each_other(self):
        code, _, err = peal("run", self.spec(), "--verify", "--check-footprints", env=self.env)
        self.assertEqual(code, 2)
        self.assertIn("[E404]", err)


if __name__ == "__main__":
    main()
