# --verify-ranks: faults that every mode has, since they depend on how the grid is cut, are found by serial on another
# number of ranks; rounding of sums, and what each rank has its own of, are not taken for faults.
import os
import re
import shutil
import tempfile
import unittest

from common import SPECS, environment, main, peal, peal_json

KERNELS = """
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u)) {
    PEAL_FOR_2D(t, x, y) PEAL_AT(u, x, y) = (double)((x * 7 + y * 13) % 11);
}
/* nine points, declared as a star of five */
PEAL_KERNEL(nine)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v)) {
    PEAL_FOR_2D(t, x, y) {
        double sum = 0;
        for (int j = -1; j <= 1; j++) for (int i = -1; i <= 1; i++) sum += PEAL_AT(u, x + i, y + j);
        PEAL_AT(v, x, y) = sum / 9;
    }
}
PEAL_KERNEL(five)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v)) {
    PEAL_FOR_2D(t, x, y) PEAL_AT(v, x, y) = (PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y) + PEAL_AT(u, x, y - 1) +
                                             PEAL_AT(u, x, y + 1)) / 4;
}
/* takes the ends of its part for those of the domain */
PEAL_KERNEL(ends)(peal_tile t, PEAL_UPDATE(double, v), long x0, long nx, long y0, long ny) {
    PEAL_FOR_2D(t, x, y) if (x == x0 || x == x0 + nx - 1 || y == y0 || y == y0 + ny - 1) PEAL_AT(v, x, y) = 1;
}
PEAL_KERNEL(mass)(peal_tile t, PEAL_READ(double, v), PEAL_REDUCE(double, m)) { PEAL_FOR_2D(t, x, y) *m += PEAL_AT(v, x, y); }
PEAL_KERNEL(scale)(peal_tile t, PEAL_READ(double, m), PEAL_UPDATE(double, v)) {
    PEAL_FOR_2D(t, x, y) PEAL_AT(v, x, y) *= 1 + m[0] * 1e-6;
}
PEAL_KERNEL(spoil)(peal_tile t, PEAL_UPDATE(double, v), double by) { PEAL_FOR_2D(t, x, y) PEAL_AT(v, x, y) *= 1 + by; }
PEAL_KERNEL(fill32)(peal_tile t, PEAL_WRITE(float, w)) { PEAL_FOR_2D(t, x, y) PEAL_AT(w, x, y) = 1.0f / (float)(x + y + 1); }
PEAL_KERNEL(mass32)(peal_tile t, PEAL_READ(float, w), PEAL_REDUCE(float, s)) { PEAL_FOR_2D(t, x, y) *s += PEAL_AT(w, x, y); }
PEAL_KERNEL(number)(peal_tile t, PEAL_WRITE(double, b), long rank) { PEAL_ONE(t) b[0] = rank; }
"""
HEAD = """peal: 1
kernels: k.c
topology: {{dims: [auto, auto], periodic: true}}
fields: {{u: {{size: {size}, halo: 1}}, v: {{like: u}}, w: {{like: u, type: f32}}}}
buffers: {{s: {{type: f32}}, m: {{}}, b: {{{keep}}}, n: {{type: i64}}}}
setup:
  - {{task: start, box: u, write: u}}
repeat: 4
step:
  - exchange: u
"""
SUM = """  - {task: mass, box: u, read: v, reduce: {m: sum}}
  - {allreduce: {m: sum}}
"""
SWAP = "  - {swap: [u, v]}\n"
NINE, FIVE = [f"  - {{task: {name}, box: u, read: {{u: {{star: 1}}}}, write: v}}\n" for name in ("nine", "five")]


def said_besides(err):
    """Without the warnings of tasks that compute the same again, as short specs do."""
    return re.sub(r"^.*\[E161\]\n.*\n", "", err, flags=re.M)


class OtherRanks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        with open(os.path.join(self.folder, "k.c"), "w", encoding="ascii") as file:
            file.write(KERNELS)
        self.env = environment(TMPDIR=self.folder)

    def spec(self, step, size="[20, 24]", keep=""):
        path = os.path.join(self.folder, "spec.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(HEAD.format(size=size, keep=keep) + step)
        return path

    def run_on(self, ranks, other, step, *words, **kind):
        return peal("run", self.spec(step, **kind), "-n", str(ranks), "--verify-ranks", str(other), *words, env=self.env)

    def test_corners_that_a_star_lacks(self):
        """The nine-point kernel: every mode is equal to serial, and wrong where four parts meet."""
        step = NINE + SUM + SWAP + "  - {print: {mass: m}}\n"
        code, out, err = peal("run", self.spec(step), "-n", "4", "--mode", "all", "--verify", env=self.env)
        self.assertEqual((code, err), (0, ""), out)
        for words in [["--mode", "all"], ["--mode", "fused", "--processes", "2"], ["--mode", "sync", "--verify"]]:
            with self.subTest(words):
                code, out, err = self.run_on(4, 1, step, *words)
                self.assertEqual(code, 1, out)
                self.assertRegex(err, r"spec\.yaml:4:\d+: error: `[uv]` depends on the number of ranks: at \(\d+, \d+\), of "
                                      r"rank \d of 4, it is \S+, serial on 1 rank has \S+; \d+ of 480 points differ \[E374\]")
                self.assertIn("--check-footprints", err)
                self.assertEqual(out.count("Result: WRONG, 4 ranks and 1 compute something else."), 1, out)
        code, out, err = self.run_on(2, 1, step.replace("star", "grow"), "--mode", "fused")
        self.assertEqual((code, err), (0, ""), out)

    def test_other_faults_of_the_cut(self):
        for task in ["{task: ends, box: u, update: v, args: [u.x0, u.nx, u.y0, u.ny]}", "{task: spoil, box: u, update: v, args: 1.0 * rank}",
                     "{task: spoil, box: u, update: v, args: 1.0 / ranks}"]:
            with self.subTest(task):
                for ranks, other in [(1, 3), (3, 1), (4, 2), (3, 5)]:
                    code, _, err = self.run_on(ranks, other, f"{FIVE}  - {task}\n{SWAP}", "--mode", "fused")
                    self.assertEqual(code, 1, err)
                    self.assertIn("[E374]", err)

    def test_equal_bits(self):
        for ranks, other in [(4, 1), (1, 6), (6, 4), (2, 2)]:
            for words in [["--mode", "sync"], ["--mode", "stream", "--processes", "1"], ["--mode", "all", "--verify"]]:
                with self.subTest((ranks, other, words)):
                    code, out, err = self.run_on(ranks, other, FIVE + SWAP, *words)
                    self.assertEqual((code, err), (0, ""), out)
                    mode = "serial" if "all" in words else words[1]
                    several = "" if ranks == 1 else "s"
                    self.assertIn(f"Result: {mode} on {ranks} rank{several} equal to serial on {other}, bit for bit.\n", out)

    def test_sums_may_be_rounded_but_not_wrong(self):
        print_mass = "  - {print: {mass: m}}\n"
        step = FIVE + SUM + "  - {task: scale, box: u, read: {m: whole}, update: v}\n" + SWAP + print_mass
        code, out, err = self.run_on(6, 1, step, "--mode", "fused")
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("but for the rounding of sums over ranks", out)
        for by, wanted in [("0.0", 0), ("1e-11 * rank", 1), ("1e-15 * rank", 0)]:
            with self.subTest(by):
                spoiled = step.replace(SWAP, f"  - {{task: spoil, box: u, update: v, args: {by}}}\n{SWAP}")
                code, out, err = self.run_on(6, 1, spoiled, "--mode", "fused")
                self.assertEqual(code, wanted, out + err)
                self.assertEqual("of the largest value, rounding of sums explains 9.1e-13 [E374]" in err, wanted == 1, err)

    def test_small_values_beside_large_ones(self):
        """What is wrong by a factor is no rounding, however large other arrays are; of an f32 sum the last digits are."""
        step = FIVE + SUM + ("  - {task: scale, box: u, read: {m: whole}, update: v}\n"
                             "  - {task: spoil, box: u, update: u, args: 1e-9 - 1}\n"
                             "  - {task: scale, box: u, read: {m: whole}, update: u}\n")
        for by, wanted in [("0.0 * rank", 0), ("1.0 * rank", 1)]:
            code, out, err = self.run_on(3, 1, f"{step}  - {{task: spoil, box: u, update: u, args: {by}}}\n", "--mode", "sync",
                                         "--steps", "1")
            self.assertEqual(code, wanted, out + err)
        single = ("  - {task: fill32, box: w, write: w}\n  - {task: mass32, box: w, read: w, reduce: {s: sum}}\n"
                  "  - {allreduce: {s: sum}}\n  - {print: {s: s}}\n")
        code, out, err = self.run_on(3, 1, FIVE + single, "--mode", "sync")
        self.assertEqual((code, said_besides(err)), (0, ""), out)

    def test_rows_alone(self):
        """Of a column that is exact, of one that is rounded, of another number of rows."""
        for more, said in [("  - {print: {n: \"ranks * 0 + step + m * 0\"}}\n", None),
                           ("  - {set: n, value: step * 3}\n  - {print: {n: n, r: rank}}\n", None),
                           ("  - {print: {n: step}, when: step < ranks}\n", "`print` has made 1 rows, serial on other ranks 2"),
                           ("  - {task: mass, box: u, read: u, reduce: {m: sum}}\n  - {set: n, value: step}\n  - {allreduce: {m: max}}\n"
                            "  - {print: {m: m}}\n", "depends on the number of ranks")]:
            with self.subTest(more):
                code, out, err = self.run_on(1, 2, FIVE + more, "--mode", "sync")
                self.assertEqual(code, 1 if said else 0, out + err)
                self.assertIn(said or "", err)

    def test_what_each_rank_has_its_own_of(self):
        own = "  - {task: number, write: b, args: rank}\n"
        code, out, err = self.run_on(3, 2, FIVE + own, "--mode", "sync", keep="keep: true")
        self.assertEqual((code, said_besides(err)), (0, ""), out)
        self.assertIn("bit for bit (not compared, each rank's own: b).", out)
        ranks = "  - repeat: ranks\n    step: [{set: b, value: b + 1}]\n"
        code, out, err = self.run_on(3, 2, FIVE + ranks, "--mode", "sync", keep="keep: true")
        self.assertEqual((code, said_besides(err)), (0, ""), out)
        self.assertIn("each rank's own: b)", out)
        counted = "  - {set: b, value: 1}\n  - {allreduce: {b: sum}}\n"  # the number of ranks
        code, out, err = self.run_on(3, 2, FIVE + counted, "--mode", "sync", keep="keep: true")
        self.assertEqual((code, said_besides(err)), (0, ""), out)
        alike = "  - {set: b, value: step + 1}\n"
        code, out, err = self.run_on(3, 2, FIVE + alike, "--mode", "sync", keep="keep: true")
        self.assertEqual((code, said_besides(err)), (0, ""), out)
        self.assertNotIn("not compared", out)

    def test_files(self):
        for more, wanted in [("  - {save: v, file: \"v-{step}.npy\"}\n", 0), ("  - {save: b, file: \"b-{rank}.npy\"}\n", 0),
                             ("  - {task: spoil, box: u, update: v, args: 1.0 * rank}\n  - {save: v, file: v.npy}\n"
                              "  - {task: five, box: u, read: {u: {star: 1}}, write: v}\n", 1)]:
            with self.subTest(more):
                code, out, err = self.run_on(3, 2, FIVE + more, "--mode", "sync")
                self.assertEqual(code, wanted, out + err)
                if wanted:
                    self.assertIn("the file `v.npy` differs", err)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("peal-verify")], [])

    def test_refused_before_the_run(self):
        told = "  - {print: {n: step}}\n"
        for ranks, other, step, kind, said in [
                (4, 1, FIVE + told, {"size": '["8 * ranks", 24]'},
                 "field `u` has 32 points along x on 4 ranks, 8 on 1 [E375]"),
                (4, 1000, FIVE + told, {}, "the spec is not sound on 1000 ranks, with which the run on 4 was to be compared [E375]"),
                (2, 1, FIVE + told + "  - {send: b, to: 1, when: rank == 0}\n  - {recv: b, from: 0, when: rank == 1}\n", {},
                 "the spec is not sound on 1 rank")]:
            with self.subTest(said):
                code, out, err = self.run_on(ranks, other, step, "--mode", "sync", **kind)
                self.assertEqual(code, 3, out + err)
                self.assertIn(said, err)
                self.assertNotIn("step", out)  # no row was printed

    def test_replicated_fields(self):
        spec = os.path.join(SPECS, "valid", "replicated.yaml")
        for other in ("1", "2"):
            code, out, err = peal("run", spec, "-n", "4", "--mode", "sync", "--verify-ranks", other, env=self.env)
            self.assertEqual(code, 0, out + err)

    def test_words(self):
        for words, said in [(["--verify-ranks", "0"], "--verify-ranks needs a number of ranks, 1 to 1048576, not '0'"),
                            (["--verify-ranks", "1", "--check-footprints"], "run twice, each time with one of them")]:
            code, _, err = peal("run", self.spec(FIVE), *words, env=self.env)
            self.assertEqual(code, 2)
            self.assertIn(said, err)

    def test_json(self):
        code, data, err = peal_json("run", self.spec(FIVE + SUM), "-n", "4", "--mode", "all", "--verify-ranks", "1", "--json",
                                    env=self.env)
        self.assertEqual(code, 0, err)
        told = data["modes"][0]["other_ranks"]
        self.assertEqual({key: told[key] for key in ("ranks", "equal", "not_compared")},
                         {"ranks": 1, "equal": True, "not_compared": ""})
        self.assertNotIn("other_ranks", data["modes"][1])


if __name__ == "__main__":
    main()
