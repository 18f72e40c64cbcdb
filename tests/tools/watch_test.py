# --watch: the first value that is not a number is named with array, point and steps in every mode, in serial with task
# and tile; without it, what `print` shows and `until` compares is warned of.
import os
import shutil
import tempfile
import unittest

from common import environment, main, peal, peal_json

KERNELS = """#include <math.h>
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u)) { PEAL_FOR_2D(t, x, y) PEAL_AT(u, x, y) = x + y; }
/* stores `value` at (17, 5) in step `when`, a half of the sum of neighbours elsewhere */
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), long step, long when, double value) {
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(v, x, y) = x == 17 && y == 5 && step == when ? value : (PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y)) / 2;
}
PEAL_KERNEL(same)(peal_tile t, PEAL_UPDATE(double, v)) { PEAL_FOR_2D(t, x, y) PEAL_AT(v, x, y) += 0; }
PEAL_KERNEL(root)(peal_tile t, PEAL_UPDATE(float, f), long step) { PEAL_FOR_2D(t, x, y) PEAL_AT(f, x, y) = sqrtf(4.5f - step); }
PEAL_KERNEL(sum)(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(double, m)) {
    double s = 0;
    PEAL_FOR_2D(t, x, y) s += PEAL_AT(u, x, y);
    PEAL_PARTIAL(m, s);
}
PEAL_KERNEL(divide)(peal_tile t, PEAL_UPDATE(double, m), long step) { PEAL_ONE(t) m[0] = m[0] - m[0] + 0.0 / (double)(9 - step); }
"""
HEAD = """peal: 1
kernels: k.c
topology: {dims: [auto, auto], periodic: true}
params: {when: 30, value: 0.0, half: false}
fields: {u: {size: [20, 24], halo: 1}, v: {like: u}, f: {size: [20, 24], type: f32}}
buffers: {m: {}, b: {keep: true}}
"""
RELAX = """setup: [{task: start, box: u, write: u}]
repeat: 50
step:
  - exchange: u
  - {task: relax, box: u, read: {u: {star: 1}}, write: v, args: [step, when, value]}
  - {swap: [u, v]}
"""
MODES = [["--mode", "sync"], ["--mode", "stream", "--processes", "2"], ["--mode", "fused", "--processes", "1", "--threads", "8"],
         ["--mode", "auto"]]


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        with open(os.path.join(self.folder, "k.c"), "w", encoding="ascii") as file:
            file.write(KERNELS.replace("? value :", "? value / 0.0 * (value > 1 ? 1 : 0.0) :"))
        self.env = environment()

    def run_spec(self, body, *words, verb=peal):
        path = os.path.join(self.folder, "spec.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(HEAD + body)
        return verb("run", path, "-n", "4", *words, env=self.env)

    def test_every_mode_names_field_point_and_steps(self):
        for mode in MODES:
            for every, when in [("7", "in steps 28 to 34"), ("1", "in step 30"), ("31", "in setup or steps 0 to 30")]:
                with self.subTest((mode, every)):
                    code, out, err = self.run_spec(RELAX, *mode, "--watch", "nan=" + every)
                    self.assertEqual(code, 1, out + err)
                    self.assertRegex(err, r"spec\.yaml:5:\d+: error: `u` is nan at \(\d+, \d+\), of rank \d.*: it came " + when +
                                          r"; it is written by 'start', 'relax' \[E376\]")
                    self.assertEqual(err.count("[E376]"), 1)
                    self.assertIn("at (17, 5), of rank 1: it" if every != "7" else "and so are 4 other points", err)
                    self.assertIn("--mode serial", err)

    def test_serial_names_task_and_tile(self):
        for words in (["--mode", "serial"], ["--mode", "serial", "--processes", "1"], ["--mode", "all"]):
            with self.subTest(words):
                code, out, err = self.run_spec(RELAX, *words, "--watch", "nan")
                self.assertEqual(code, 1, out + err)
                self.assertRegex(err, r"spec\.yaml:11:5: error: task 'relax' computes nan: 'v' at \(17, 5\) \(rank 1, tile "
                                      r"\[10, 20\) x \[0, 12\), step 30\); nothing that it reads is \[E376\]")
                self.assertEqual(err.count("error"), 1, err)
                self.assertNotIn("\nsync", out)

    def test_no_alarm(self):
        for mode in MODES + [["--mode", "serial"], ["--mode", "all", "--verify"]]:
            for words in (["nan=3", "--set", "when=-1"], ["inf", "--set", "when=-1"], ["nan", "--set", "value=2.5"],
                          ["nan", "--steps", "30"], ["nan", "--steps", "0"]):
                with self.subTest((mode, words)):
                    code, out, err = self.run_spec(RELAX, *mode, "--watch", *words)
                    self.assertEqual((code, err), (0, ""), out)
                    self.assertIn("Result: no value is NaN", out)

    def test_infinite_values(self):
        for mode, said in [(MODES[2], "`u` is inf at (17, 5), of rank 1: it came in step 30"),
                           (["--mode", "serial"], "task 'relax' computes nan or infinite: 'v' at (17, 5)")]:
            code, out, err = self.run_spec(RELAX, *mode, "--watch", "inf=1", "--set", "value=2.5")
            self.assertEqual(code, 1, out)
            self.assertIn(said, err)

    def test_other_types_and_writers(self):
        """f32; a buffer that `set` divides; what a file brings; what `finish` does; what is updated in place."""
        for body, modes, said in [
                ("repeat: 9\nstep: [{task: root, box: f, update: f, args: step}]\n", MODES, "`f` is nan at (0, 0), of rank 0, and so "
                 "are 479 other points: it came in step 5; it is written by 'root'"),
                ("repeat: 12\nstep: [{set: b, value: \"b * 0 + 1\"}, {task: divide, update: b, args: step}]\n", MODES[:2],
                 "`b` is nan at (0), of rank 0, and so are 3 other points: it came in step 9; it is written by"),
                ("finish: [{load: u, file: nan.npy}]\n", MODES, "`u` is nan at (3, 2), of rank 0: it came in `finish`; it is "
                 "written by 'load u'"),
                ("setup: [{load: u, file: nan.npy}]\nrepeat: 3\nstep: [{task: same, box: u, update: u}]\n", [["--mode", "serial"]],
                 "'u' at (3, 2) is nan before task 'same' updates it (rank 0, tile [0, 10) x [0, 12), step 0)"),
                ("setup: [{load: u, file: nan.npy}]\nrepeat: 3\nstep: [{task: sum, box: u, read: u, reduce: {m: sum}}, "
                 "{print: {m: m}}]\n", [["--mode", "serial"]], "task 'sum' computes nan: its part of 'm' (rank 0, tile [0, 10) x "
                 "[0, 12), step 0); it has read 'u' at (3, 2), which is so, too")]:
            self.save_nan()
            for mode in modes:
                with self.subTest((mode, said)):
                    code, out, err = self.run_spec(body, *mode, "--watch", "nan=1")
                    self.assertEqual(code, 1, out + err)
                    self.assertIn(said, err)

    def save_nan(self):
        """nan.npy: 24 x 20 zeros, and one NaN at x = 3, y = 2."""
        text = "{'descr': '<f8', 'fortran_order': False, 'shape': (24, 20), }".ljust(117) + "\n"
        data = bytearray(8 * 480)
        data[8 * 43 + 6:8 * 43 + 8] = b"\xf8\x7f"
        with open(os.path.join(self.folder, "nan.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data)

    def test_what_is_shown_and_compared_is_warned_of(self):
        rows = RELAX + "  - {task: sum, box: u, read: u, reduce: {m: sum}}\n  - {allreduce: {m: sum}}\n"
        for mode in MODES + [["--mode", "serial"]]:
            with self.subTest(mode):
                code, out, err = self.run_spec(rows + "  - {print: {mass: m}, when: step % 5 == 4}\n", *mode)
                self.assertEqual(code, 0, err)
                self.assertIn("warning: 'mass' of `print` is nan at step 34 [E376]", err)
                self.assertEqual(err.count("E376"), 1)
                self.assertNotIn("-nan", out)
                code, _, err = self.run_spec(rows.replace("repeat: 50", "repeat: 50\nuntil: m < 0.5"), *mode)
                self.assertEqual(code, 0, err)
                self.assertRegex(err, r"spec\.yaml:9:10: warning: `until` compares `m`, which is nan after 50 steps \[E376\]")

    def test_words(self):
        for words, said in [(["--watch", "nam"], "--watch needs nan or inf, with =STEPS between two looks, not 'nam'"),
                            (["--watch", "nan=0"], "not 'nan=0'"), (["--watch", "nan=x"], "not 'nan=x'"),
                            (["--watch", "nan", "--check-footprints"], "run twice, each time with one of them")]:
            with self.subTest(words):
                code, _, err = self.run_spec(RELAX, *words)
                self.assertEqual(code, 2, err)
                self.assertIn(said, err)
        code, data, err = self.run_spec(RELAX, "--mode", "sync", "--watch", "nan", "--json", verb=peal_json)
        self.assertEqual((code, data["status"]), (1, "wrong result"), err)


if __name__ == "__main__":
    main()
