#!/usr/bin/env python3
# `peal bench` for GPUs, on the stand-in whose kernels run on the CPU: what is timed in which mode, and that predictions take
# it. What it takes is noise here.
#
#   bench_test.py STANDIN INCLUDE: folder of the emulating driver and compiler; folder of the emulated device
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

# The emulating driver keeps functions and graphs until the process ends.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STANDIN, INCLUDE = sys.argv[1:3]
del sys.argv[1:3]
PEAL, ROOT = os.environ["PEAL"], os.environ.pop("PEAL_ROOT")
SMALL = [word for size in ("nx=24", "ny=24", "steps=400") for word in ("--set", size)]
LIMIT_S = 240


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(self.folder.cleanup)

    def peal(self, *words, expected=0, devices=2):
        units = os.environ.get("PEAL_TEST_CACHE") or self.folder.name
        env = {**os.environ, "LD_LIBRARY_PATH": STANDIN, "STANDIN_DEVICES": str(devices), "STANDIN_SMS": "3", "STANDIN_RECORD": os.devnull,
               "EMULATE_INCLUDE": INCLUDE, "EMULATE_UNITS": units, "XDG_CACHE_HOME": self.folder.name}
        done = subprocess.run([PEAL, *words], env=env, cwd=self.folder.name, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, expected, done.stderr)
        return done.stdout if expected == 0 else done.stderr

    def times_of(self, path):
        """By mode: the names that have times of it."""
        with open(os.path.join(self.folder.name, path), encoding="utf-8") as file:
            modes = re.findall(r"^  (\w+): \{(.*?)\}$", file.read().split("kernels:\n")[0], re.DOTALL | re.MULTILINE)
        return {mode: set(re.findall(r"([\w ]+): \{", text.split("kernels: {")[1])) for mode, text in modes if "kernels: {" in text}

    @share.sometimes(2)
    def test_kernels_of_a_spec(self):
        sample, machine = os.path.join(ROOT, "samples/jacobi2d"), os.path.join(ROOT, "machines/h200x4.yaml")
        self.peal("bench", sample, *SMALL, "-n", "2", "--backend", "cuda", "--machine", machine, "--save-machine", "here.yaml", "-q")
        times = self.times_of("here.yaml")
        self.assertEqual(set(times), {"sync", "stream", "graph", "fused"})
        for mode, names in times.items():
            names = {name.strip() for name in names}
            self.assertLessEqual({"relax", "send exchange an"}, names, mode)
            self.assertEqual("wait exchange an" in names, mode == "sync", mode)  # there it is launched
        words = ("explain", sample, *SMALL, "-n", "2", "--json", "--machine")
        told, usual = ({p["mode"]: p["seconds_per_step"] for p in json.loads(self.peal(*words, path))["predictions"]}
                       for path in ("here.yaml", machine))
        for mode in times:
            self.assertNotEqual(told[mode], usual[mode], mode)

    @share.sometimes(2, 1)
    def test_a_verdict(self):
        """One that never ends the loop, though what is computed means nothing."""
        machine = os.path.join(ROOT, "machines/h200x4.yaml")
        spec = [os.path.join(ROOT, "samples/jacobi_until"), "--set", "nx=16", "--set", "ny=16", "--set", "limit=300", "-n", "2"]
        self.peal("bench", *spec, "--backend", "cuda", "--machine", machine, "--save-machine", "here.yaml", "-q")
        for mode, names in self.times_of("here.yaml").items():
            self.assertIn("until", {name.strip() for name in names}, mode)
        with open(os.path.join(self.folder.name, "here.yaml"), encoding="utf-8") as file:
            usual, until = re.search(r"  stream: \{launch_s: ([\d.e-]+).*? until: \{([^}]*)\}", file.read(), re.DOTALL).groups()
        for launch in re.findall(r"launch_s: ([\d.e-]+)", until):
            self.assertLessEqual(float(launch), float(usual))  # where it took any time, the CPU's waiting is not in it

    @share.sometimes(2)
    def test_many_tasks(self):
        """Each adds less than noise: all have times, nothing is said to take none; and a name may have a comma."""
        with open(os.path.join(ROOT, "machines/h200x4.yaml"), encoding="utf-8") as file:
            text = re.sub(r"(?m)^  (serial|sync|fused): .*\n", "", file.read())
        loops = "  - for: i\n    in: [0, 5]\n    do:\n      - {for: j, in: [0, 5], do: [{task: add, box: a, update: a, args: i + j}]}\n"
        for name, text in (("two_modes.yaml", text),
                           ("many.yaml", "peal: 1\nkernels: many.c\nfields: {a: {size: [24]}}\nrepeat: 100000\nstep:\n" + loops),
                           ("many.c", "PEAL_KERNEL(add)(peal_tile t, PEAL_UPDATE(double, a), long by)\n{\n"
                                      "    PEAL_FOR_1D(t, x) {\n        PEAL_AT(a, x) += (double)by;\n    }\n}\n")):
            with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.peal("bench", "many.yaml", "--backend", "cuda", "--machine", "two_modes.yaml", "--save-machine", "here.yaml", "-q")
        with open(os.path.join(self.folder.name, "here.yaml"), encoding="utf-8") as file:
            names = re.findall(r'"add\((\d,\d)\)": \{', file.read())
        self.assertEqual((len(names), len(set(names))), (50, 25))
        self.assertIn("predicted fastest", self.peal("explain", "many.yaml", "--backend", "cuda", "--machine", "here.yaml"))

    def test_a_mode_that_the_device_has_no_room_for(self):
        """27 ranks in one kernel (E664): measured without that mode."""
        machine = os.path.join(ROOT, "machines/h200x4.yaml")
        spec = [os.path.join(ROOT, "samples/jacobi2d"), "--set", "nx=8", "--set", "ny=56", "--set", "steps=20", "-n", "27"]
        self.peal("bench", *spec, "--backend", "cuda", "--machine", machine, "--save-machine", "here.yaml", "-q", devices=1)
        self.assertEqual(set(self.times_of("here.yaml")), {"sync", "stream", "graph"})

    def test_a_file_of_something_else(self):
        machine = os.path.join(ROOT, "machines/host2.yaml")
        said = self.peal("bench", os.path.join(ROOT, "samples/jacobi2d"), *SMALL, "--backend", "cuda", "--machine", machine, expected=3)
        self.assertIn("host2.yaml has no times of GPUs [E430]", said)

    def test_a_loop_that_ends_too_soon(self):
        """A step alone has what happens once in it: no times are made of that."""
        machine = os.path.join(ROOT, "machines/h200x4.yaml")
        spec = [os.path.join(ROOT, "samples/jacobi2d"), "--set", "nx=24", "--set", "ny=24", "--set", "steps=1"]
        said = self.peal("bench", *spec, "--backend", "cuda", "--machine", machine, "--save-machine", "here.yaml", expected=4)
        self.assertIn("a loop of 1 steps is too short to be timed in mode sync: it takes 3 [E421]", said)
        self.assertNotIn("here.yaml", os.listdir(self.folder.name))


if __name__ == "__main__":
    unittest.main()
