# `peal tune`: what it prints and keeps, and what mode auto makes of it: measured, predicted, left out, forced.
import glob
import os
import shutil
import tempfile
import unittest

from common import SPECS, environment, main, peal, peal_json

HEAT = os.path.join(SPECS, "run", "heat.yaml")
FICKLE = os.path.join(SPECS, "run", "fickle.yaml")
# sync takes least by far, and nothing is told by simulating these
MACHINE = """machine: 1
devices: 2
modes: {sync: {kernel_s: 1e-6}, stream: {kernel_s: 4e-6}, fused: {kernel_s: 2e-6}}
kernels: {default: {}}
links: {host: {bytes_per_s: 1e15}}
"""
SPEC = """peal: 1
params: {n: 16}
kernels: k.c
fields: {a: {size: [n, n], halo: 1}, b: {like: a}}
repeat: 40
step:
  - {exchange: a}
  - {task: relax, box: a, read: {a: {star: 1}}, write: b, tile: whole}
  - {swap: [a, b]}
"""
KERNEL = """PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))
{
    PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x, y) + SCALE;
}
"""


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.mkdtemp()
        cls.env = environment(PEAL_CACHE=cls.cache, PEAL_TEST_PIECE_S="1e-4")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.cache)

    def tearDown(self):
        for path in self.answers():
            os.unlink(path)

    def answers(self):
        return glob.glob(os.path.join(self.cache, "tune-*.yaml"))

    def auto(self, *words, **changes):
        code, data, err = peal_json("run", HEAT, "--json", "--steps", "2", *words, env=dict(self.env, **changes))
        self.assertEqual(code, 0, err)
        return data.get("auto"), data["modes"][0]["mode"]

    def test_the_answer_is_kept_for_its_question(self):
        code, data, err = peal_json("tune", HEAT, "-n", "2", "--json", env=self.env)
        self.assertEqual((code, err, data["schema"], data["status"]), (0, "", "peal.tune/1", "ok"))
        self.assertEqual([data["kept"], data["compared_with"], data["steps_compared"]], [True, "serial", 60])
        self.assertEqual(self.answers(), [data["path"]])
        taken = data["candidates"][data["taken"]]
        self.assertIn(taken["verdict"], ("best", "tie"))
        self.assertGreaterEqual(data["rounds"], 9)
        self.assertEqual({c["mode"] for c in data["candidates"]}, {"sync", "stream", "fused"})
        for candidate in data["candidates"]:
            self.assertTrue(("dropped" in candidate) != ("verdict" in candidate), candidate)
        with open(data["path"], encoding="utf-8") as file:
            text = file.read()
        self.assertIn("# candidate", text)
        self.assertIn(f"mode: {taken['mode']}\n", text)

        why, mode = self.auto("-n", "2")
        self.assertIn("measured by peal tune on 20", why)
        self.assertEqual(mode, taken["mode"])
        self.assertIn("predicted", self.auto("-n", "2", "--no-tuning")[0])
        self.assertIn("predicted", self.auto("-n", "2", "--set", "n=32")[0])
        self.assertIn("predicted", self.auto("-n", "1")[0])
        self.assertEqual(self.auto("-n", "2", "--mode", "stream"), (None, "stream"))
        code, out, _ = peal("run", HEAT, "-n", "2", "--steps", "2", env=self.env)
        self.assertEqual((code, out.splitlines()[1]), (0, "auto: " + why))

        with open(data["path"], "a", encoding="utf-8") as file:
            file.write("x")
        code, _, err = peal("run", HEAT, "-n", "2", "--steps", "2", env=dict(self.env, PEAL_LOG="info"))
        self.assertEqual((code, err.count(f"peal: {data['path']} is ignored: it has been changed")), (0, 1), err)

        code, out, _ = peal("tune", "--forget", HEAT, "-n", "2", env=self.env)
        self.assertEqual((code, out, self.answers()), (0, "Forgotten.\n", []))
        code, out, _ = peal("tune", "--forget", HEAT, "-n", "2", env=self.env)
        self.assertEqual((code, out), (0, "There was no answer to forget.\n"))

    def test_tables_and_what_is_not_kept(self):
        code, out, err = peal("tune", HEAT, "--mode", "sync", "--threads", "1", env=self.env)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^heat: host on .*, 1 rank in 1 process, 1 worker a rank$")
        self.assertRegex(out, r"(?m)^sync +\d+\.\d+ +1\.000 +\d+\.\d %  best, taken$")
        self.assertIn("Result: sync.\nNot kept: --mode has left out the others.\n", out)
        self.assertIn("serial: 60 steps to compare with\nsync: ", err)
        code, out, err = peal("tune", HEAT, "--mode", "sync", "--lower", "tile=99", "--threads", "1", "-q", env=self.env)
        self.assertEqual((code, out.splitlines()[0], err), (0, "Result: sync tile=99.", ""))
        self.assertEqual(self.answers(), [])

    def test_predictions(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "machine.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(MACHINE)
            for more, changes in (["--machine", path], {}), ([], {"PEAL_MACHINE": path}):
                why, mode = self.auto(*more, "--threads", "1", **changes)
                self.assertEqual(mode, "sync")
                self.assertRegex(why, r"^sync, predicted \d+\.\d+ us a step \(fused \d+\.\d+, stream \d+\.\d+; times of ")
                self.assertIn(path, why)
            code, data, err = peal_json("tune", HEAT, "--threads", "1", "--machine", path, "--json", env=self.env)
            self.assertEqual(code, 0, err)
            dropped = [c.get("dropped", "") for c in data["candidates"] if c["mode"] == "stream"]
            self.assertTrue(all(d.startswith("predicted ") for d in dropped), dropped)
            code, _, err = peal("run", HEAT, env=dict(self.env, PEAL_MACHINE=path + "x"))
            self.assertNotEqual(code, 0)
            self.assertIn(path + "x", err)

    def test_kernels_and_what_they_include_count(self):
        def why(folder):
            code, data, err = peal_json("run", folder, "--threads", "1", "--json", env=self.env)
            self.assertEqual(code, 0, err)
            return data["auto"]

        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)

            write("s.yaml", SPEC)
            write("k.c", '#include "scale.h"\n' + KERNEL)
            write("scale.h", "#define SCALE 1\n")
            code, _, err = peal("tune", folder, "--threads", "1", "-q", env=self.env)
            self.assertEqual(code, 0, err)
            self.assertIn("measured", why(folder))
            write("scale.h", "#define SCALE 2\n")
            self.assertIn("predicted", why(folder))
            write("k.c", '#define NAME "scale.h"\n#include NAME\n' + KERNEL)
            code, out, err = peal("tune", folder, "--threads", "1", env=self.env)
            self.assertEqual(code, 0, err)
            self.assertIn("[E473]", err)
            self.assertNotIn("Kept", out)

    def test_what_differs_from_serial_is_wrong(self):
        code, data, err = peal_json("tune", FICKLE, "--json", env=self.env)
        self.assertEqual((code, data["exit"], data["taken"], data["kept"]), (1, 1, -1, False))
        self.assertIn("[E470]", err)
        self.assertTrue(all(c["equal_to_serial"] is False for c in data["candidates"]))

    def test_what_no_candidate_can_do_is_told_as_run_tells_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "spec.yaml")
            for change in ("", "require: [sync]\n"):
                with open(path, "w", encoding="utf-8") as spec, open(os.path.join(folder, "k.c"), "w", encoding="utf-8") as kernel:
                    spec.write(SPEC.replace("repeat: 40\n", change + "repeat: 40\n"))
                    kernel.write(KERNEL)  # SCALE is nowhere
                code, out, err = peal("tune", path, env=self.env)
                self.assertEqual(code, 3, err)
                self.assertIn("k.c:3:", err)
                self.assertIn("[E200]", err)
                self.assertNotIn("candidate", out)

    def test_a_loop_without_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "spec.yaml")
            with open(path, "w", encoding="utf-8") as spec, open(os.path.join(folder, "k.c"), "w", encoding="utf-8") as kernel:
                spec.write(SPEC.replace("repeat: 40", "repeat: 0"))
                kernel.write(KERNEL.replace("SCALE", "1"))
            code, out, err = peal("tune", path, env=self.env)
            self.assertNotIn("E470", err)
            self.assertEqual(code, 0, out + err)

    def test_mistakes(self):
        for words, number in ((["--forget", "--rounds", "9", HEAT], "E472"), (["--forget", "--mode", "sync"], "E472"),
                              (["--rounds", "8", HEAT], "E402"), ([], "E403"), (["--format", "dot", HEAT], "E402")):
            code, out, err = peal("tune", *words, env=self.env)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(f"[{number}]", err, words)
        code, _, err = peal("tune", HEAT, "--mode", "serial", env=self.env)
        self.assertEqual(code, 4)
        self.assertIn("[E471]", err)
        code, out, err = peal("tune", "--forget", env=self.env)
        self.assertEqual((code, out), (0, "0 answers forgotten.\n"))


if __name__ == "__main__":
    main()
