# What --verify and peal tune compare: kept arrays, rows of print, files of save; and what they say where there is
# nothing of these. The kernel draws random numbers, so that no run equals another.
import errno
import hashlib
import os
import re
import shutil
import stat
import struct
import tempfile
import unittest

from common import environment, main, peal, peal_json, share

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


ADD = """PEAL_KERNEL(add)(peal_tile t, PEAL_UPDATE(double, a)) { PEAL_FOR_1D(t, x) PEAL_AT(a, x) += 1; }
PEAL_KERNEL(more)(peal_tile t, PEAL_UPDATE(double, s)) { PEAL_ONE(t) { for (int i = 0; i < 4; i++) s[i] += 1; } }
PEAL_KERNEL(take)(peal_tile t, PEAL_READ(double, b), PEAL_UPDATE(double, a)) { PEAL_FOR_1D(t, x) PEAL_AT(a, x) += b[0]; }
"""
CHECKPOINT = """peal: 1
kernels: k.c
topology: {dims: [auto]}
fields: {a: {size: [16]}}
"""
CHECKPOINTS = ["""setup: [{load: a, file: ck.npy}]
repeat: 3
step: [{task: add, box: a, update: a}]
finish: [{save: a, file: ck.npy}]
""", """repeat: 3
step: [{load: a, file: ck.npy}, {task: add, box: a, update: a}, {save: a, file: ck.npy}]
""", """params: {where: ./, name: ck}
setup: [{load: a, file: "{where}{name}.npy"}]
repeat: 2
step: [{task: add, box: a, update: a}, {save: a, file: "ck.npy"}]
finish: [{load: a, file: ck.npy}, {task: add, box: a, update: a}, {save: a, file: ck.npy}]
"""]
CHECKPOINT_MODES = [["--mode", "sync", "--verify"], ["--mode", "fused", "--verify", "--processes", "1"],
                    ["--mode", "stream", "--verify"], ["--mode", "all"], ["--mode", "all", "--verify"]]


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

    def test_empty_buffers_are_told(self):
        spec = os.path.join(self.folder, "empty.yaml")
        with open(spec, "w", encoding="ascii") as file:
            file.write("peal: 1\ntopology: {dims: auto, periodic: true}\n"
                       "buffers: {t: {}, x: {keep: true, count: rank}, y: {keep: true, count: (rank + ranks - 1) % ranks}}\n"
                       "repeat: 3\nstep: [{send: x, to: [1]}, {recv: y, from: [-1]}]\n")
        for mode in ("sync", "stream", "fused", "all"):
            with self.subTest(mode):
                code, _, err = peal("run", spec, "-n", "1", "--mode", mode, "--verify", env=self.env)
                self.assertEqual(code, 3, err)
                self.assertRegex(err, r"empty\.yaml:3:\d+: .*what the spec keeps \(`x`\) has 0 elements on all ranks.*\[E372\]")
        self.assertEqual(peal("run", spec, "-n", "2", "--mode", "all", "--verify", env=self.env)[0], 0)

    def test_one_thing_is_enough(self):
        for turn, kind in enumerate([{"keep": ", keep: true"}, {"more": PRINT}, {"more": SAVE}]):
            for words in share.taken(MODES, 3, turn):
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

    # ---- files ----

    def checkpoint(self, text, name="ck.yaml"):
        """A spec that goes on from ck.npy: 16 numbers, each step adds 1 to them."""
        with open(os.path.join(self.folder, "k.c"), "w", encoding="ascii") as file:
            file.write(KERNELS + ADD)
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(CHECKPOINT + text)
        self.numbers("ck.npy", range(16))
        return os.path.join(self.folder, name)

    def numbers(self, name, values=None):
        """Writes such a file, or reads it."""
        path = os.path.join(self.folder, name)
        if values is None:
            with open(path, "rb") as file:
                return list(struct.unpack("<16d", file.read()[-128:]))
        text = "{'descr': '<f8', 'fortran_order': False, 'shape': (16,), }".ljust(117) + "\n"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack("<16d", *values))
        return None

    def test_a_file_that_is_loaded_and_saved(self):
        """Serial, and each mode, goes on from what was there before."""
        for turn, what in enumerate(CHECKPOINTS):
            for words in share.taken(CHECKPOINT_MODES, 3, turn):
                with self.subTest((what, words)):
                    path = self.checkpoint(what)
                    code, out, err = peal("run", path, *words, "-n", "2", env=self.env)
                    self.assertEqual((code, err), (0, ""), out)
                    self.assertIn("equal to serial, bit for bit", out)
                    self.assertEqual(self.numbers("ck.npy"), [i + 3.0 for i in range(16)])
                    self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".peal")], [])

    def test_each_rank_goes_on_from_its_own_file(self):
        path = self.checkpoint("""buffers: {s: {count: 4, keep: true}}
setup: [{load: s, file: "s-{rank}.npy"}]
repeat: 2
step: [{task: more, update: s}, {save: s, file: "s-{rank}.npy"}]
finish: [{load: s, file: "s-{rank}.npy"}, {task: more, update: s}, {save: s, file: "s-{rank}.npy"}]
""")
        for words in CHECKPOINT_MODES:
            with self.subTest(words):
                for rank in range(3):
                    self.numbers(f"s-{rank}.npy", [rank] * 16)
                    with open(os.path.join(self.folder, f"s-{rank}.npy"), "r+b") as file:
                        text = file.read().replace(b"(16,)", b"(4,) ")
                        file.seek(0)
                        file.truncate()
                        file.write(text[:-96])
                code, out, err = peal("run", path, *words, "-n", "3", env=self.env)
                self.assertEqual((code, err), (0, ""), out)
                for rank in range(3):
                    with open(os.path.join(self.folder, f"s-{rank}.npy"), "rb") as file:
                        self.assertEqual(struct.unpack("<4d", file.read()[-32:]), (rank + 3.0,) * 4)

    def test_a_constant_that_is_saved_over(self):
        """All runs that are compared begin with what was there, whichever process reads it."""
        path = self.checkpoint("""buffers: {c: {file: "c-{rank}.npy"}, x: {keep: true, count: c.count}}
step: [{task: more4, read: c, write: x}]
finish: [{save: x, file: "c-{rank}.npy"}]
""")
        with open(os.path.join(self.folder, "k.c"), "a", encoding="ascii") as file:
            file.write("PEAL_KERNEL(more4)(peal_tile t, PEAL_READ(double, c), PEAL_WRITE(double, x)) "
                       "{ PEAL_ONE(t) { for (int i = 0; i < 16; i++) x[i] = c[i] + 1; } }\n")
        for words in [["--mode", "all"], ["--mode", "all", "--processes", "1"], ["--mode", "sync", "--verify"]]:
            with self.subTest(words):
                for rank in range(3):
                    self.numbers(f"c-{rank}.npy", range(16))
                code, out, err = peal("run", path, *words, "-n", "3", env=self.env)
                self.assertEqual((code, err.count("error")), (0, 0), out + err)
                self.assertEqual(self.numbers("c-2.npy"), [i + 1.0 for i in range(16)])

    def test_a_difference_in_what_is_loaded_is_found(self):
        """That of a task which draws random numbers comes back through a file."""
        path = self.checkpoint("""buffers: {b: {count: 4}}
setup: [{load: a, file: ck.npy}]
step: [{task: draw, write: b}, {save: b, file: "b-{rank}.npy"}, {load: b, file: "b-{rank}.npy"},
       {task: take, box: a, read: b, update: a}]
finish: [{save: a, file: ck.npy}]
""")
        code, _, err = peal("run", path, "--mode", "sync", "--verify", env=self.env)
        self.assertEqual(code, 1, err)
        self.assertIn("'a' of rank 0 differs from serial at (0): ", err)

    @share.sometimes(2)
    def test_tune_goes_on_from_the_same_file(self):
        path = self.checkpoint("""setup: [{load: a, file: ck.npy}]
repeat: 50
step: [{task: add, box: a, update: a}, {save: a, file: ck.npy, when: step == 0}]
""")
        env = dict(self.env, PEAL_CACHE=os.path.join(self.folder, "tmp"), PEAL_TEST_PIECE_S="1e-4")
        code, _, err = peal("tune", path, "-n", "2", env=env)
        self.assertEqual(code, 0, err)

    def test_devices_are_not_compared(self):
        path = self.checkpoint("setup: [{load: a, file: ck.npy}]\nstep: [{save: a, file: /dev/null}]\n")
        code, out, err = peal("run", path, "--mode", "sync", "--verify", "--allow-outside", env=self.env)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("equal to serial, bit for bit", out)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        code, _, err = self.run_verified("--allow-outside", "--mode", "sync", more="  - {save: b, file: /dev/null}\n")
        self.assertEqual(code, 3, err)
        self.assertIn("[E372]", err)

    def test_long_paths(self):
        folder = "out/" + "/".join([f"folder{i:044}" for i in range(8)])
        os.makedirs(os.path.join(self.folder, folder))
        for kernel, wanted in [("count", 0), ("draw", 1)]:
            code, _, err = self.run_verified("--mode", "sync", kernel=kernel,
                                             more=f'  - {{save: b, file: "{folder}/b.npy"}}\n')
            self.assertEqual(code, wanted, err)
            if wanted:
                self.assertIn(f"the file `{folder}/b.npy` differs", err)

    @share.sometimes(2, 1)
    def test_errors_are_not_equality(self):
        """Whichever call fails from where serial has saved on: nothing says that the files are equal."""
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("each call of a process that a sanitizer follows takes too long")
        stepper = os.environ.get("PEAL_STEPPER", "")
        path = self.spec(kernel="draw", more="  - {save: b, file: b.npy}\n")
        trigger = hashlib.sha256(os.path.realpath(os.path.join(self.folder, "b.npy")).encode()).hexdigest()

        def step(action, number, *more):
            return peal("run", path, "--mode", "sync", "--steps", "1", "--verify", env=self.env,
                        prefix=(stepper, trigger, action, str(number), *more, "--"))

        code, _, err = step("count", 0) if stepper else (77, "", "")
        if code == 77:
            self.skipTest("ptrace cannot be used here")
        self.assertEqual(code, 1, err)
        seen, wanted = "", ["`b.npy`", "`b.npy` of serial"]
        count = int(re.search(r"fail (\d+)", err).group(1))
        for number in range(1, count + 1):
            with self.subTest(number):
                code, out, err = step("fail", number, str(errno.EIO))
                self.assertIn(code, [1, 3, 4], out + err)
                self.assertRegex(err, r"\[E\d{3}\]")
                seen += err
            if all(f"cannot read {name} to compare it: Input/output error [E373]" in seen for name in wanted):
                return  # what comes later cleans up
        self.fail(seen)

    # ---- other verbs and words ----

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
