# A build without libpmix and hwloc, then without libyaml: it works, and says what is missing. Built from the sources
# in a temporary folder, unoptimised.
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from common import ROOT, environment, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

HEAT = os.path.join(ROOT, "tests", "specs", "run", "heat.yaml")
LIMIT = 500  # of a build on a busy machine


class Bare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.build = os.path.join(cls.folder, "build")
        cls.make("meson", "setup", cls.build, ROOT, "-Dpmix=disabled", "-Dhwloc=disabled", "-Dtests=disabled",
                 "-Dbuildtype=plain", "-Dwerror=true")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def make(cls, *words):
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT, env=environment())
        if done.returncode:
            raise AssertionError(f"{words}: {done.stdout[-3000:]} {done.stderr[-3000:]}")

    def peal(self, *words):
        self.make("ninja", "-C", self.build, "tools/peal")
        done = subprocess.run([os.path.join(self.build, "tools", "peal"), *words], capture_output=True, text=True,
                              check=False, timeout=LIMIT, env=environment())
        return done.returncode, done.stdout, done.stderr

    @share.sometimes(4)
    def test_1_without_libpmix(self):
        code, _, err = self.peal("run", HEAT, "-n", "2")
        self.assertEqual(code, 0, err)  # peal's own launcher needs none
        code, out, err = self.peal("run", HEAT, "-n", "2", "--processes", "1", "--mode", "all", "--verify")
        self.assertEqual(code, 0, err)
        self.assertIn("every mode equal to serial", out)
        code, out, err = self.peal("doctor")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"pmix +off +built without libpmix")

    @share.sometimes(4, 2)
    def test_2_without_libyaml(self):
        self.make("meson", "configure", self.build, "-Dyaml=disabled")
        code, _, err = self.peal("run", HEAT)
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"built without libyaml \[E019\]")
        self.assertEqual(self.peal("doctor")[0], 0)


if __name__ == "__main__":
    if not (shutil.which("meson") and shutil.which("ninja")):
        print("meson and ninja are not in PATH")
        raise SystemExit(77)
    main()
