# Bad input is met with the right number at the right place. Each file of tests/specs/broken says in
# its first lines what is expected: "# expect: E021 12:9" (several such lines: all of them) and
# "# arguments: -n 4", "# verb: run" (check), "# exit: 4" (3); tests/specs/valid must pass, with each
# line of arguments. What is too big to keep is made here.
import glob
import os
import re
import shutil
import tempfile
import unittest

from common import SPECS, environment, main, peal

BROKEN = os.path.join(SPECS, "broken")
GOOD = """peal: 1
params: {n: 16}
kernels: kernels.c
fields: {a: {size: [n, n], halo: 1}, b: {like: a}}
step:
  - {exchange: a}
  - {task: relax, box: {a: {grow: -1}}, read: {a: {star: 1}}, write: b}
"""


def directives(path):
    with open(path, "rb") as spec:
        head = spec.read(2000).decode("utf-8", "replace")
    expected = re.findall(r"^# expect: (E\d+) (\d+):(\d+)", head, re.M)
    arguments = re.search(r"^# arguments: (.*)$", head, re.M)
    verb = re.search(r"^# verb: (.*)$", head, re.M)
    code = re.search(r"^# exit: (\d+)$", head, re.M)
    return (expected, arguments.group(1).split() if arguments else [], verb.group(1) if verb else "check",
            int(code.group(1)) if code else 3)


class Broken(unittest.TestCase):
    def test_every_broken_spec(self):
        paths = sorted(glob.glob(os.path.join(BROKEN, "*.yaml")))
        self.assertGreater(len(paths), 50)
        for path in paths:
            name = os.path.basename(path)
            expected, arguments, verb, status = directives(path)
            with self.subTest(name):
                self.assertTrue(expected, "the file says what it expects")
                code, _, err = peal(verb, name, *arguments, cwd=BROKEN)
                self.assertEqual(code, status, err)
                for number, line, column in expected:
                    place = f"{name}:{line}:{column}:" if line != "0" else name
                    self.assertRegex(err, rf"(?m)^{re.escape(place)}.*\[{number}\]$")
                if status == 0:  # warnings: no others
                    self.assertEqual(err.count(": warning: "), len(expected), err)

    def test_every_message_has_a_place_and_a_number(self):
        for path in sorted(glob.glob(os.path.join(BROKEN, "*.yaml"))):
            _, arguments, verb, _ = directives(path)
            with self.subTest(os.path.basename(path)):
                err = peal(verb, os.path.basename(path), *arguments, cwd=BROKEN)[2]
                for line in err.splitlines():
                    if ": error: " in line:
                        self.assertRegex(line, r"^[^:]+\.(yaml|c|npy):\d+:.* \[E\d+\]$")

    def test_valid_specs(self):
        for path in sorted(glob.glob(os.path.join(SPECS, "valid", "*.yaml"))):
            with open(path, encoding="utf-8") as spec:
                ways = re.findall(r"^# arguments: (.*)$", spec.read(), re.M) or [""]
            for arguments in ways:
                with self.subTest(os.path.basename(path), arguments=arguments):
                    code, _, err = peal("run", path, *arguments.split(), "--mode", "all", "--verify", "--processes", "1")
                    self.assertEqual(code, 0, err)
                    self.assertNotRegex(err, r"\[E(149|162|165)\]")


class Big(unittest.TestCase):
    def check(self, text):
        code, _, err = peal("check", "-", stdin=text)
        self.assertEqual(code, 3, err[:500])
        self.assertRegex(err, r"\[E0\d\d\]")
        self.assertLess(len(err), 5000)

    def test_over_a_mebibyte(self):
        self.check(GOOD + "# padding\n" * 110000)

    def test_nesting(self):
        for opening in ["[", "{a: ", "- "]:
            with self.subTest(opening):
                self.check("peal: 1\nstep: " + opening * 60000)

    def test_many_nodes(self):
        self.check("peal: 1\nstep: [" + "1," * 200000 + "1]")

    def test_bytes_that_are_no_text(self):
        self.check("peal: 1\nname: \"\x01\x02\"\n")


WORDS = ("peal: 1\nkernels: w.c\nfields: {f: {size: [16, 16], components: 3}, u: {size: [16, 16]}}\nrepeat: 1\n"
         "step:\n  - {task: go, box: f, read: u, update: f}\n")
# The words of u and f, what the kernel does, and what is said of it.
WRONG_WORDS = [
    ("PEAL_READ", "PEAL_UPDATE_C", "PEAL_C(f, 1, x, y) += PEAL_AT(u, x, y)", ""),
    ("PEAL_READ", "PEAL_UPDATE", "PEAL_AT(f, x, y) += PEAL_AT(u, x, y)", r"w\.c:1:1: .*\[E206\]\n.*PEAL_UPDATE_C\(double, f\)"),
    ("PEAL_READ_C", "PEAL_UPDATE_C", "PEAL_C(f, 1, x, y) += PEAL_C(u, 0, x, y)", r"w\.c:1:1: .*\[E206\]\n.*PEAL_READ\(double, u\)"),
    ("PEAL_READ", "PEAL_UPDATE_C", "PEAL_AT(f, x, y) += PEAL_AT(u, x, y)", r"w\.c:4:\d+: .*\[E200\]\n.*is PEAL_C\(f, c, x, y\), not PEAL_AT"),
    ("PEAL_READ", "PEAL_UPDATE_C", "PEAL_AT(f, x) += PEAL_AT(u, x, y)", r"w\.c:4:\d+: .*\[E200\]\n.*is PEAL_C\(f, c, x, y\), not PEAL_AT"),
    ("PEAL_READ", "PEAL_UPDATE_C", "PEAL_C(f, 1, x, y) += PEAL_C(u, 0, x, y)", r"w\.c:4:\d+: .*\[E200\]\n.*of others say PEAL_AT"),
    ("PEAL_READ", "PEAL_UPDATE_C", "PEAL_C(f, 1, x, y, 0, 0) = 0", r"w\.c:4:\d+: .*\n.*one to three coordinates"),
]


class Surroundings(unittest.TestCase):
    """Right specs in an environment that lacks something."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        shutil.copy(os.path.join(BROKEN, "kernels.c"), self.folder)
        self.spec = os.path.join(self.folder, "good.yaml")
        with open(self.spec, "w", encoding="utf-8") as spec:
            spec.write(GOOD)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
            out.write(text)

    def run_good(self, *arguments, **changes):
        return peal("run", self.spec, *arguments, env=environment(**changes))

    def test_it_is_good(self):
        code, _, err = self.run_good()
        self.assertEqual(code, 0, err)

    def test_no_compiler(self):
        code, _, err = self.run_good(CC="/nonexistent/cc", PEAL_CACHE=os.path.join(self.folder, "cache"))
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"\[E2\d\d\]")

    def test_hints_that_name_the_way_out(self):
        for name, ranks, hint in [
                ("wrong-neighbour", 4, r"rank 3 waits for `d` from rank 0 \(line 10\), which nobody sends: is one of these meant for it"),
                ("ghosts-after-exchange", 4, "fill ghost points before the exchange of `a`"),
                ("ghosts-by-update", 2, r"box: \{a: \{ghost: \[-1, 0\]\}\}, read: \{a: inside\}, write: a"),
                ("ghosts-of-ring", 2, "has no ghost points there .*periodic"),
                ("ghosts-without-halo", 2, "has no ghost points there .*`halo` there is 0"),
                ("swap-forgotten", 2, r"is `swap: \[a, b\]` missing"),
                ("never-read", 2, r"is `swap: \[a, c\]` missing\? Else save it, or leave it out"),
                ("name-twice-in-task", 1, "points that a tile both reads and writes are listed once, under `update`")]:
            with self.subTest(name):
                _, _, err = peal("check", os.path.join(BROKEN, f"{name}.yaml"), "-n", str(ranks))
                self.assertRegex(err, hint)

    def test_words_of_components_and_of_other_fields(self):
        spec = os.path.join(self.folder, "w.yaml")
        self.write("w.yaml", WORDS)
        for first, second, statement, said in WRONG_WORDS:
            with self.subTest(statement, first=first, second=second):
                self.write("w.c", f"PEAL_KERNEL(go)(peal_tile t, {first}(double, u), {second}(double, f))\n"
                                  f"{{\n    PEAL_FOR_2D(t, x, y)\n        {statement};\n}}\n")
                code, _, err = peal("run", spec, env=environment())
                self.assertEqual(code, 3 if said else 0, err)
                self.assertTrue(re.search(said, err), err)

    def test_a_kernel_that_does_not_compile(self):
        self.write("kernels.c", "PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))\n"
                                "{\n    nonsense;\n}\n")
        code, _, err = self.run_good()
        self.assertEqual(code, 3, err)
        self.assertIn("kernels.c:3:", err)

    def test_a_missing_semicolon(self):
        self.write("kernels.c", "PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))\n"
                                "{\n    double c = 1\n    PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x, y) + c;\n}\n")
        for compiler in ("gcc", "clang"):
            if shutil.which(compiler):
                code, _, err = self.run_good(CC=compiler)
                self.assertEqual((code, err.count("error: ")), (3, 1), err)
                self.assertRegex(err, r"kernels.c:[34]:\d+: error: expected .*';'.* \[E200\]\n    is a `;` missing")

    def test_what_compilers_say_is_sifted(self):
        head = "PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))\n"
        loop = "    PEAL_FOR_2D(t, x, y) {\n"
        for text, said in [
                (head + "{ /* } */\n" + loop + "}\n", r"kernels.c:2:1: error: this `\{` is never closed \[E200\]\n    is a `\}` missing"),
                (head.replace("relax", "first") + "{\n" + loop + "}\n" + head + "{\n}\n", r"kernels.c:2:1: error: this `\{` is never closed"),
                (head + "{\n" + loop + "        PEAL_AT(c, x, y) = 1;\n    }\n}\n", r"kernels.c:4:\d+: error: .*'c'.* \[E200\]"),
                (head + "{\n    (void)((t.lo[0] + 1);\n}\n", r"kernels.c:3:\d+: error: expected '\)'.* \[E200\]\n(?!.*`;`)"),
                (head.replace("double", "float", 1) + "{\n}\n", r"kernels.c:1:1: error: kernel `relax` does not fit task `relax`: its parameters are others \[E206\]\n    the task needs PEAL_KERNEL"),
                ('#include "mine.h"\n' + head + "{\n}\n", r"kernels.c:1:\d+: error: .*mine.h.* \[E200\]\n    it is looked for beside")]:
            self.write("kernels.c", text)
            for compiler in ("gcc", "clang"):
                if shutil.which(compiler):
                    with self.subTest((text, compiler)):
                        code, _, err = self.run_good(CC=compiler)
                        self.assertEqual((code, err.count("error: ")), (3, 1), err)
                        self.assertRegex(err + "\n", said)

    def test_helpers_of_one_name_in_two_files(self):
        helper = "static double helper(double x) { return x + 1; }\n"
        self.write("a.c", helper + "PEAL_KERNEL(one)(peal_tile t, PEAL_WRITE(double, u)) { PEAL_FOR_1D(t, x) PEAL_AT(u, x) = helper(x); }\n")
        self.write("b.c", helper)
        self.write("two.yaml", "peal: 1\nkernels: [a.c, b.c]\nfields: {u: {size: 8}}\nstep:\n  - {task: one, box: u, write: u}\n")
        for compiler in ("gcc", "clang"):
            if shutil.which(compiler):
                code, _, err = peal("run", os.path.join(self.folder, "two.yaml"), env=environment(CC=compiler))
                self.assertEqual(code, 3, err)
                self.assertRegex(err, r"b.c:1:\d+: error: .*helper.*\[E200\]\n    all files of `kernels` are compiled as one text")

    def test_a_kernel_that_is_not_there(self):
        self.write("kernels.c", "PEAL_KERNEL(other)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b)) {}\n")
        code, _, err = self.run_good()
        self.assertEqual(code, 3, err)
        self.assertIn("relax", err)

    def test_kernels_outside_the_folder(self):
        inner = os.path.join(self.folder, "inner")
        os.mkdir(inner)
        self.spec = os.path.join(inner, "good.yaml")
        with open(self.spec, "w", encoding="utf-8") as spec:
            spec.write(GOOD.replace("kernels.c", "../kernels.c"))
        code, _, err = self.run_good()
        self.assertEqual(code, 3, err)
        self.assertIn("--allow-outside", err)
        self.assertEqual(self.run_good("--allow-outside")[0], 0)

    def test_a_link_to_the_outside(self):
        inner = os.path.join(self.folder, "inner")
        os.mkdir(inner)
        os.symlink("../kernels.c", os.path.join(inner, "kernels.c"))
        self.spec = os.path.join(inner, "good.yaml")
        with open(self.spec, "w", encoding="utf-8") as spec:
            spec.write(GOOD)
        code, _, err = self.run_good()
        self.assertEqual(code, 3, err)
        self.assertIn("--allow-outside", err)

    def test_unwritable_cache_is_a_warning(self):
        blocked = os.path.join(self.folder, "file")
        self.write("file", "")
        code, _, err = self.run_good(PEAL_CACHE=os.path.join(blocked, "cache"))
        self.assertEqual(code, 0, err)

    def test_unwritable_result(self):
        with open(self.spec, "a", encoding="utf-8") as spec:
            spec.write("finish: [{save: b, file: nowhere/b.npy}]\n")
        with open(self.spec, "a", encoding="utf-8") as spec:
            spec.write("setup: [{print: {begun: 1}}]\n")
        for words in [[], ["-n", "2"]]:
            code, out, err = self.run_good(*words)
            self.assertEqual(code, 4, err)
            self.assertRegex(err, r"good.yaml:8:\d+: error: cannot create `nowhere/b.npy`: .*\[E210\]")
            self.assertEqual(err.count("error: "), 1, err)
            self.assertNotIn("begun", out, "told before the first step")

    def test_results_that_cannot_be_written(self):
        os.mkdir(os.path.join(self.folder, "taken.npy"))
        os.mkdir(os.path.join(self.folder, "out"))
        for name, code in [("kernels.c/b.npy", 4), ("taken.npy", 4), ("nowhere/{step}.npy", 4), ("out/{step}.npy", 0),
                           ("out/{{b}}.npy", 0)]:
            with self.subTest(name):
                with open(self.spec, "w", encoding="utf-8") as spec:
                    spec.write(GOOD + f'finish: [{{save: b, file: "{name}"}}]\n')
                got, _, err = self.run_good()
                self.assertEqual(got, code, err)
                self.assertEqual("[E210]" in err, code == 4, err)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "out"))), ["1.npy", "{b}.npy"])

    def test_a_save_that_never_happens(self):
        with open(self.spec, "a", encoding="utf-8") as spec:
            spec.write("finish: [{save: b, file: nowhere/b.npy, when: n > 16}]\n")
        self.assertEqual(self.run_good()[0], 0)
        self.assertEqual(self.run_good("--set", "n=17")[0], 4)

    def test_a_negative_repeat(self):
        with open(self.spec, "a", encoding="utf-8") as spec:
            spec.write("repeat: ranks - 3\n")
        code, _, err = self.run_good("-n", "2")
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"good.yaml:8:\d+: error: `repeat` is -1 on 2 ranks \[E047\]")
        code, _, err = peal("check", self.spec, "-n", "2")
        self.assertEqual(code, 3, err)
        self.assertIn("`repeat` is -1 on 2 ranks [E047]", err)
        self.assertEqual(self.run_good("-n", "3")[0], 0)

    def test_a_compiler_that_dies(self):
        self.write("cc", "#!/bin/sh\nkill -SEGV $$\n")
        os.chmod(os.path.join(self.folder, "cc"), 0o755)
        code, _, err = self.run_good(CC=os.path.join(self.folder, "cc"))
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"the compiler was ended by signal 11 \[E208\]")

    def test_a_compiler_that_makes_nonsense(self):
        self.write("cc", "#!/bin/sh\nfor word; do [ \"$last\" = -o ] && echo nonsense >\"$word\"; last=$word; done\n")
        os.chmod(os.path.join(self.folder, "cc"), 0o755)
        code, _, err = self.run_good(CC=os.path.join(self.folder, "cc"))
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"cannot load the compiled kernels: .*\[E208\]")

    def test_no_room_for_the_source(self):
        code, _, err = self.run_good(PEAL_CACHE="/dev/null/cache", TMPDIR="/dev/null/tmp")
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"cannot write the generated source: .*\[E209\]")

    def test_no_more_threads(self):
        # No address space has room for stacks of 64 TiB, so the system refuses the first thread.
        code, _, err = peal("run", self.spec, "--mode", "fused", "--threads", "2", env=environment(),
                            prefix=("prlimit", f"--stack={1 << 46}:"))
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"cannot create thread 1 of 2 \[E212\]")

    def test_too_little_memory(self):
        code, _, err = self.run_good("--set", "n=2000000", "-n", "2")
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"need \d+ bytes of memory together, they can have \d+")

    def test_a_spec_error_is_printed_once(self):
        path = os.path.join(BROKEN, "unknown-key.yaml")
        for words in [["-n", "3"], []]:
            prefix = () if words else ("mpirun", "--oversubscribe", "-n", "3")
            if prefix and not shutil.which("mpirun"):
                continue
            code, _, err = peal("run", path, *words, prefix=prefix)
            self.assertEqual(code, 3, err)
            self.assertEqual(err.count("error: "), 1, err)


if __name__ == "__main__":
    main()
