# `peal explain SPEC --machine FILE`, which predicts every mode, and `peal bench`, which measures such files.
import os
import re
import shutil
import tempfile
import unittest

from common import ROOT, main, peal, peal_json

SPEC = """peal: 1
name: line
params: {n: 8, steps: 10}
topology: {dims: [auto]}
fields: {u: {size: [n * ranks], halo: 1}, v: {like: u}}
kernels: line.c
repeat: steps
step:
  - {task: relax, box: u, read: {u: {star: 1}}, write: v}
  - {exchange: v}
  - {swap: [u, v]}
"""
KERNELS = """PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(v, x) = 1 + 0.25 * (PEAL_AT(u, x - 1) + PEAL_AT(u, x + 1));
    }
}
"""
MACHINE = """machine: 1
%sdevices: 2
modes:
  sync: {kernel_s: 1, launch_s: 0.25, synchronize_s: 0.5, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}
  stream: {kernel_s: 1, launch_s: 0.25, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}
  fused: {kernel_s: 0.5, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}
kernels: {default: {per_point_s: 0.125}}
links: {%s: {latency_s: 2, bytes_per_s: 4}}
"""


# The last rank has 2 m launches a step, the others m; so has a step with a condition that has no period.
MANY = """peal: 1
params: {m: 2100, steps: 4}
topology: {dims: [auto]}
buffers: {b: {count: 4, keep: true}, c: {count: 4, keep: true}}
kernels: many.c
repeat: steps
step:
  - repeat: m
    step:
      - {task: turn, update: b}
      - {task: turn, update: c, when: rank == ranks - 1}
"""
TURN = "PEAL_KERNEL(turn)(peal_tile t, PEAL_UPDATE(double, b))\n{\n    PEAL_FOR_1D(t, i) { b[i] = b[i] * 0.5 + i; }\n}\n"
FITS = "a period has 4201 launches, 4096 fit"


class Engines(unittest.TestCase):
    """Which engine carries messages between hosts, and why not the others."""

    def engines(self, *words):
        code, out, err = peal_json("explain", os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml"), "-n", "2", *words, "--json")
        self.assertEqual(code, 0, err)
        return {item["engine"]: (item["taken"], item["text"]) for item in out.get("engines", [])}

    def test_they_are_told(self):
        self.assertEqual(self.engines(), {})
        found = self.engines("--transport", "tcp")
        self.assertEqual([name for name, (taken, _) in found.items() if taken], ["tcp"])
        self.assertEqual(found["tcp"][1], "sockets, which are always there")
        findings = {item["name"]: item for item in peal_json("doctor", "--json")[1]["findings"]}
        for name, (_, text) in found.items():
            there = findings[f"network {name}"]
            if there["state"] != "ok":
                self.assertEqual(text, there["text"])  # why it is not here
            elif name != "tcp":
                self.assertIn(f"not asked for: --transport auto+{name}", text)
        taken, text = self.engines("--transport", "mlx5", "--backend", "cuda")["mlx5"]
        self.assertTrue(taken)
        self.assertRegex(text, r"asked for; in stream the GPU's stream rings for messages|asked for, but not here: \w+")
        code, out, err = peal("explain", os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml"), "-n", "2", "--hosts", "a:1,b:1")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"engine    taken    how, or why not \(on this host\)\ntcp       yes      sockets, which are always there\nucx       no       ")


class Limits(unittest.TestCase):
    """What a mode cannot hold is known before a run, where there is no GPU, of whichever process it is."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        for name, text in [("many.yaml", MANY), ("many.c", TURN)]:
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(text)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def cuda(self, verb, *words):
        code, out, err = peal(verb, "many.yaml", "--backend", "cuda", *words, cwd=self.folder)
        if "E381" in err:
            self.skipTest("this build has no CUDA")
        return code, out, err

    def test_explain(self):
        for words, who in [(["-n", "1"], ""), (["-n", "3"], " (rank 2)"), (["-n", "3", "--processes", "1"], ""),
                           (["-n", "140", "--processes", "70"], " (process 69)"), (["-n", "200"], " (rank 199)")]:
            with self.subTest(words):
                code, out, err = self.cuda("explain", *words)
                self.assertEqual((code, err), (0, ""))
                self.assertRegex(out, r"(?m)^graph +yes")
                self.assertRegex(out, r"(?m)^fused +no +" + re.escape(f"{FITS}{who} [E664]"))
                self.assertNotIn("tried out", out)
        code, out, _ = self.cuda("explain", "-n", "3", "--set", "m=900")
        self.assertRegex(out, r"(?m)^fused +yes")

    def test_bundles_of_few_among_many(self):
        """Shapes of launches that are alone leave room for those of bundles."""
        self.cuda("explain")
        lone = "".join(f"  - {{task: t, box: s{i}, update: s{i}}}\n  - {{task: t, box: big, update: big}}\n" for i in range(30))
        text = ("peal: 1\nkernels: few.c\nfields:\n  big: {size: [100000]}\n" + "".join(f"  s{i}: {{size: [{10 + i}]}}\n" for i in range(31))
                + "repeat: 100\nstep:\n" + lone + 12 * "  - {task: t, box: s30, update: s30}\n")
        kernel = "PEAL_KERNEL(t)(peal_tile t, PEAL_UPDATE(double, a))\n{\n    PEAL_FOR_1D(t, x) PEAL_AT(a, x) += 1;\n}\n"
        for name, content in (("few.yaml", text), ("few.c", kernel)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(content)
        code, out, err = peal("explain", os.path.join(self.folder, "few.yaml"), "--backend", "cuda")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("bundles: of 73 launches of 1 step 12 run in 1 kernels of one block", out)

    def test_bundles(self):
        """How many launches one block runs one after the other, where these are many."""
        self.cuda("explain")
        hpgmg, cg = (os.path.join(ROOT, "samples", name) for name in ("hpgmg", "cg"))
        for words, found in (((hpgmg, "-n", "1"), True), ((hpgmg, "-n", "2"), True), ((cg, "-n", "1"), False)):
            with self.subTest(words):
                code, out, err = peal("explain", *words, "--backend", "cuda")
                self.assertEqual((code, err), (0, ""))
                note = re.search(r"(?m)^graph +bundles: of (\d+) launches of \d+ steps? (\d+) run in (\d+) kernels of one block; "
                                 r"by prediction they save (\d+) % of a step$", out)
                self.assertEqual(note is not None, found, out)
                if note:
                    launches, bundled, kernels, saved = (int(number) for number in note.groups())
                    self.assertTrue(2 * kernels <= bundled <= launches)
                    self.assertTrue(0 < saved <= 100 * (bundled - kernels) / launches)

    def test_deep_rounds(self):
        """What runs several steps at a time, or sends within the step before, or why nothing does, by line; auto heeds what
        that saves."""
        self.cuda("explain")
        jacobi, machine = os.path.join(ROOT, "samples", "jacobi2d"), os.path.join(ROOT, "machines", "h200x4.yaml")
        short = os.path.join(ROOT, "samples", "halo", "short.yaml")
        small = (jacobi, "-n", "1", "--backend", "cuda", "--set", "nx=256", "--set", "ny=256", "--machine", machine)
        for words, note, auto in (
                (small, r"deep rounds: a block runs up to \d+ steps of `relax` \(line 16\) on \d+ x \d+ x 1 points; by prediction they save \d+ % of a step", "fused"),
                ((*small, "--set", "report=1"), r"no deep rounds: `relax` \(line 16\) has a reduction in each step", "graph"),
                ((jacobi, "-n", "2", *small[3:]), r"no deep rounds: other ranks have parts of the domain", "fused"),
                ((short, "-n", "2", *small[3:]), r"joined steps: \d+ work items of \d+ steps, \d+ one by one; by prediction they save \d+ % of a step", "fused"),
                ((os.path.join(ROOT, "tests", "gpu", "specs", "long.yaml"), "-n", "2", *small[3:5], *small[-2:]),
                 r"turns: 1213 work items of 2 steps, whose numbers come round after 8", "fused"),
                ((short, "-n", "20", *small[3:]), r"joined steps: \d+ work items of \d+ steps, \d+ one by one", "(fused|graph)"),
                # A period of 1000 steps would leave no room in the list.
                ((short, "-n", "1", *small[3:5], "--set", "steps=20000", "--set", "report=1000", *small[-2:]),
                 r"deep rounds: a block runs up to \d+ steps of .*", "fused"),
                ((short, "-n", "2", *small[3:5], "--set", "steps=20000", "--set", "report=1000", *small[-2:]),
                 r"joined steps: \d+ work items of \d+ steps, \d+ one by one; .*", "fused")):
            with self.subTest(words):
                code, out, err = peal("explain", *words)
                self.assertEqual((code, err), (0, ""))
                self.assertRegex(out, r"(?m)^fused +" + note + "$")
                self.assertRegex(out, rf"(?m)^auto +yes +takes {auto} ")
        _, data, _ = peal_json("explain", *small, "--json")
        fused = {mode["mode"]: mode for mode in data["modes"]}["fused"]
        self.assertTrue(0.3 < fused["saved"] < 1 and fused["note"].startswith("deep rounds: "))

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "a sanitizer reserves more")
    def test_what_does_not_fit_is_not_kept(self):
        """Launches beyond those that fit take no memory: they would be gigabytes here."""
        self.cuda("explain")
        code, out, err = peal("explain", "many.yaml", "--backend", "cuda", "--set", "m=3000", "--set", "steps=1000", prefix=("prlimit", "--as=1000000000"), cwd=self.folder)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^fused +no +a period has 6001 launches, 4096 fit")

    def test_explain_json(self):
        self.cuda("explain")
        _, data, _ = peal_json("explain", "many.yaml", "-n", "2", "--backend", "cuda", "--json", cwd=self.folder)
        by_mode = {mode["mode"]: mode for mode in data["modes"]}
        self.assertEqual((by_mode["fused"]["applicable"], by_mode["fused"]["code"]), (False, "E664"))
        self.assertEqual(by_mode["fused"]["reason"], f"{FITS} (rank 1)")
        self.assertTrue(by_mode["fused"]["reasons"][0]["refuses"])
        self.assertEqual((by_mode["graph"]["applicable"], by_mode["graph"]["ranks_tried"]), (True, 2))
        self.assertEqual(data["auto"], "graph")

    def test_processes_that_are_not_tried(self):
        """Where each one is unlike the others only so many are, and that is said."""
        with open(os.path.join(self.folder, "many.yaml"), "a", encoding="utf-8") as out:
            out.write("  - {send: b, to: (rank * 7 + 1) % ranks}\n  - {recv: c, from: (rank - 1) * 43 % ranks}\n")
        code, out, _ = self.cuda("explain", "-n", "300", "--processes", "150", "--set", "m=3")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^fused +yes")
        self.assertIn("only ranks 0 to 127 were tried out", out)

    def test_check(self):
        for mode, expected in [("fused", 4), ("graph", 0), ("stream", 0), ("all", 4), ("auto", 0)]:
            with self.subTest(mode):
                code, out, err = self.cuda("check", "-n", "3", "--mode", mode)
                self.assertEqual(code, expected, err)
                self.assertEqual("mode fused cannot run this: " + FITS + " (rank 2) [E664]" in err, expected == 4)
                self.assertEqual("fine on 3 ranks" in out, expected == 0)
        code, _, err = peal("check", "many.yaml", "--mode", "graph", cwd=self.folder)  # on the host
        self.assertEqual(code, 4)
        self.assertIn("E355", err)
        code, _, err = self.cuda("check", "--set", "m=step", "--mode", "graph")
        self.assertEqual(code, 3, err)

    def test_check_names_the_line(self):
        with open(os.path.join(self.folder, "many.yaml"), "a", encoding="utf-8") as out:
            out.write("  - {task: turn, update: b, when: step * step % 7 == 1}\n")
        code, _, err = self.cuda("check", "--mode", "graph")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"many.yaml:12:.*mode graph cannot run this: `turn` in line 12 has a `when`.*\[E451\]")

    def test_plan(self):
        code, out, err = self.cuda("plan", "-n", "2", "--mode", "fused")
        self.assertEqual((code, out), (4, ""))
        self.assertIn(f"mode fused cannot run this: {FITS} (rank 1) [E664]", err)
        code, out, err = self.cuda("plan", "-n", "2", "--rank", "0", "--mode", "all")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(re.findall(r"mode (\w+), rank", out), ["serial", "sync", "stream", "graph"])
        code, out, _ = self.cuda("plan", "-n", "2", "--rank", "0")
        self.assertEqual(re.findall(r"mode (\w+), rank", out), ["graph"])


class Explain(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        for name, text in [("line.yaml", SPEC), ("line.c", KERNELS), ("cores.yaml", MACHINE % ("", "host")),
                           ("gpus.yaml", MACHINE % ("accelerator: true\n", "p2p"))]:
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(text)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def peal(self, *words):
        return peal(*words, cwd=self.folder)

    def explain(self, machine, *words):
        code, data, err = peal_json("explain", "line.yaml", "-n", "2", "--machine", machine, "--json", *words, cwd=self.folder)
        if "E381" in err:
            self.skipTest("this build has no CUDA")
        self.assertEqual((code, err, data["schema"]), (0, "", "peal.explain/1"))
        return data

    def check(self, machine):
        data = self.explain(machine)
        by_mode = {p["mode"]: p for p in data["predictions"]}
        _, simulated, _ = peal_json("simulate", "line.yaml", "-n", "2", "--machine", machine, "--mode", "all", "--json", cwd=self.folder)
        for point in simulated["points"]:
            self.assertEqual(by_mode[point["mode"]]["seconds_per_step"], point["seconds_per_step"])
        for prediction in by_mode.values():
            model = prediction["model"]
            parts = dict(model["parts"])
            self.assertAlmostEqual(sum(parts.values()) - 2 * parts["overlap"], model["seconds"])
            self.assertLess(abs(model["seconds"] / prediction["seconds_per_step"] - 1), 0.3)
            self.assertFalse(prediction["kernels_are_told"])
        self.assertEqual(data["fastest"], "fused")
        return by_mode

    def test_cores(self):
        by_mode = self.check("cores.yaml")
        self.assertNotIn("conditions", by_mode["fused"])
        code, out, _ = self.peal("explain", "line.yaml", "-n", "2", "--machine", "cores.yaml")
        self.assertEqual(code, 0)
        for words in ("A step on cores.yaml", "fused is predicted fastest", "times as long", "more tasks"):
            self.assertIn(words, out)
        self.assertIn("graph     no", out)
        self.assertIn("[E355]", out)

    def test_devices(self):
        by_mode = self.check("gpus.yaml")
        self.assertEqual([by_mode["stream"]["conditions"][c] for c in ("C1", "C2", "C3")], [True, True, True])
        self.assertEqual(by_mode["stream"]["model"]["period"], {"R": 10.0, "X": 1.0, "Y": 0.0, "Z": 1.0})
        self.assertAlmostEqual(by_mode["sync"]["model"]["parts"]["launches"], 0.25 + 0.5)
        self.assertIn("C1 asynchrony", self.peal("explain", "line.yaml", "-n", "2", "--machine", "gpus.yaml")[1])

    def test_sweeps_in_place(self):
        """Border and rest of a launch come after its message, though the rest does not wait for the border."""
        code, out, _ = peal("explain", os.path.join(ROOT, "tests/gpu/specs/sweeps.yaml"), "-n", "2", "--machine",
                            os.path.join(ROOT, "machines/h200x4.yaml"))
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^graph .* X=4 Y=0 Z=8$")

    def test_nothing_without_times(self):
        code, out, _ = self.peal("explain", "line.yaml", "-n", "2")
        self.assertEqual(code, 0)
        self.assertIn("--machine FILE.yaml", out)
        self.assertNotIn("predictions", self.explain("process:2"))

    def test_own_files(self):
        """They are found everywhere; one that is there goes first."""
        by_mode = {}
        for name in ("host2.yaml", "machines/host2.yaml"):
            by_mode[name] = self.explain(name)["predictions"]
        self.assertEqual(by_mode["host2.yaml"], by_mode["machines/host2.yaml"])
        with open(os.path.join(self.folder, "host2.yaml"), "w", encoding="ascii") as file:
            file.write("machine: 2\n")
        code, _, err = self.peal("explain", "line.yaml", "-n", "2", "--machine", "host2.yaml")
        self.assertNotEqual(code, 0, err)
        os.remove(file.name)
        code, _, err = self.peal("explain", "line.yaml", "-n", "2", "--machine", "machines/host3.yaml")
        self.assertIn("E001", err)

    def test_every_sample(self):
        for name in ("cg", "denoise", "halo", "hdiff", "heat3d", "jacobi2d", "jacobi_until", "mesh", "vcycle"):
            sample = os.path.join(ROOT, "samples", name)
            code, data, err = peal_json("explain", sample, "-n", "4", "--machine", os.path.join(ROOT, "machines/host2.yaml"), "--json")
            self.assertEqual((code, err), (0, ""), name)
            self.assertEqual([p["mode"] for p in data["predictions"]], ["serial", "sync", "stream", "fused"], name)
            for prediction in data["predictions"]:
                ratio = prediction["model"]["seconds"] / prediction["seconds_per_step"]
                self.assertTrue(0.7 < ratio < 1.5, (name, prediction))

    def test_kernels_of_a_spec(self):
        words = ["bench", "line.yaml", "-n", "2", "--machine", "cores.yaml", "--save-machine", "here.yaml"]
        self.assertEqual(self.peal(*words)[:2], (0, "written to here.yaml\n"))
        self.assertTrue(all(p["kernels_are_told"] for p in self.explain("here.yaml")["predictions"]))
        code, data, err = peal_json(*words, "--json", cwd=self.folder)
        self.assertEqual((code, err, data["schema"]), (0, "", "peal.bench/1"))
        for mode in ("serial", "sync", "stream", "fused"):
            self.assertGreater(data["seconds_per_step"][mode]["spec"], 0)

    def test_a_machine(self):
        code, data, err = peal_json("bench", "--backend", "host", "--rounds", "1", "--json", cwd=self.folder)
        self.assertEqual((code, err), (0, ""))
        for mode in ("serial", "sync", "stream", "fused"):
            self.assertEqual(len(data["seconds_per_step"][mode]), 8)
            self.assertTrue(all(seconds > 0 for seconds in data["seconds_per_step"][mode].values()))

    def test_a_file_has_no_zeros(self):
        """One round on a machine with other work is refused, or whole; what was there before stays."""
        path = os.path.join(self.folder, "here.yaml")
        for _ in range(3):
            with open(path, "w", encoding="utf-8") as out:
                out.write("before\n")
            code, _, err = self.peal("bench", "--backend", "host", "--rounds", "1", "--save-machine", "here.yaml")
            with open(path, encoding="utf-8") as text:
                written = text.read()
            if code:
                self.assertEqual((code, written), (4, "before\n"), err)
                self.assertIn("[E421]", err)
                self.assertIn("--rounds", err)
                continue
            for key in ("kernel_s", "copy_s", "write_s", "wait_s"):
                self.assertEqual(written.count(key + ": "), 4, written)
            self.assertNotRegex(written, r": 0[,}]|inf|nan|\{\}")
            self.assertEqual(len(self.explain("here.yaml")["predictions"]), 4)

    def test_a_file_of_zeros(self):
        for old, new in (("stream: {kernel_s: 1, launch_s: 0.25, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}", "stream: {}"),
                         ("per_point_s: 0.125", "per_point_s: 0"), 
                         ("kernel_s: 0.5, copy_s: 0.5, write_s: 0.25, wait_s: 0.125", "kernel_s: 0, copy_s: 0.0")):
            with open(os.path.join(self.folder, "zeros.yaml"), "w", encoding="utf-8") as out:
                out.write((MACHINE % ("", "host")).replace(old, new))
            code, _, err = self.peal("explain", "line.yaml", "-n", "2", "--machine", "zeros.yaml")
            self.assertEqual(code, 3, err)
            self.assertRegex(err, r"zeros\.yaml:\d+:\d+: error: the \w+ `\w+` has no time above 0 \[E422\]")

    def test_what_cannot_be(self):
        for words, number in [(["nowhere.yaml", "--machine", "cores.yaml"], "E411"),
                              (["--machine", "cores.yaml", "--save-machine", "no/where.yaml"], "E410"), (["--rounds", "0"], "E402")]:
            code, _, err = self.peal("bench", *words)
            self.assertNotEqual(code, 0, words)
            self.assertIn(number, err, words)


if __name__ == "__main__":
    main()
