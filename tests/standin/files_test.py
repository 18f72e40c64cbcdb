#!/usr/bin/env python3
# `load` and `save` in the loop, on the driver's stand-in whose kernels run: in every mode the same files as in serial, between
# replays; and a file that cannot be written.
#
#   files_test.py EMULATING INCLUDE: the folder with that stand-in, that of the emulated device's headers
import json
import os
import shutil
import sys
import tempfile
import unittest

EMULATING, INCLUDE = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
SPECS = os.path.join(HERE, "..", "gpu", "specs")
sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "share")]
import common  # noqa: E402
import share  # noqa: E402

# The emulating driver keeps functions and graphs until the process ends.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
CASES = [(spec, ranks, mode) for spec in ("files", "files_until") for ranks in (1, 2) for mode in ("stream", "graph", "fused")]


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.units = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.units.cleanup()

    def run_in(self, folder, *words, change=None):
        env = common.environment(LD_LIBRARY_PATH=EMULATING, STANDIN_DEVICES="2", STANDIN_RECORD=os.devnull, STANDIN_SMS="3",
                                 EMULATE_INCLUDE=INCLUDE, EMULATE_UNITS=self.units.name, XDG_CACHE_HOME=self.units.name)
        for name in ("files.yaml", "files_until.yaml", "files.c"):
            shutil.copy(os.path.join(SPECS, name), folder)
        if change:
            path = os.path.join(folder, "files.yaml")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            assert text.count(change[0]) == 1
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(*change))
        return common.peal("run", os.path.join(folder, words[0] + ".yaml"), "--backend", "cuda", *words[1:], env=env)

    def test_files_are_those_of_serial(self):
        for spec, ranks, mode in share.taken(CASES, 3):
            with self.subTest(spec, ranks=ranks, mode=mode), tempfile.TemporaryDirectory() as folder:
                code, out, err = self.run_in(folder, spec, "-n", str(ranks), "--mode", mode, "--verify")
                self.assertEqual(code, 0, out + err)
                self.assertIn(f"{mode} equal to serial, bit for bit", out)
                self.assertIn("a33.npy", os.listdir(folder))
                self.assertFalse([name for name in os.listdir(folder) if not name.endswith((".npy", ".yaml", ".c"))])

    def test_other_steps_are_replayed(self):
        for mode in ("graph", "fused"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                code, out, err = self.run_in(folder, "files", "--mode", mode, "--json")
                self.assertEqual(code, 0, out + err)
                self.assertGreater(json.loads(out)["modes"][0]["steps_replayed"], 30)

    def failing(self, ranks, mode, change, make=None):
        with tempfile.TemporaryDirectory() as folder:
            if make:
                os.mkdir(os.path.join(folder, make))
            code, _, err = self.run_in(folder, "files", "-n", str(ranks), "--mode", mode, "--allow-outside", change=change)
            names = sorted(os.listdir(folder))
            for name in names:
                if name.endswith(".npy") and name != make:
                    self.assertEqual(os.path.getsize(os.path.join(folder, name)), 128 + 40 * 40 * 8, name)
            self.assertFalse([name for name in names if not name.endswith((".npy", ".yaml", ".c"))])
            return code, err, names

    def test_a_file_that_cannot_be_written_is_told_with_its_step(self):
        for ranks, mode in share.taken([(ranks, mode) for ranks in (1, 2) for mode in ("stream", "graph", "fused")], 2):
            with self.subTest(ranks=ranks, mode=mode):
                code, err, names = self.failing(ranks, mode, ('"a{step}.npy"', '"/dev/full"'))
                self.assertEqual(code, 4, err)
                self.assertIn("cannot write `/dev/full` in step 4: No space left on device [E210]", err)
                self.assertNotIn("last.npy", names)
                code, err, names = self.failing(ranks, mode, ("a33.npy, when", "a13.npy, when"), make="a33.npy")
                self.assertEqual(code, 4, err)
                self.assertRegex(err, r"cannot create `\S*a33.npy` in step 33: Is a directory")
                self.assertIn("a13.npy", names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
