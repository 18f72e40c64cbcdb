# What README and the guide print as complete runs as it stands there: the first spec with its kernels, and the program
# that embeds peal.
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy

from common import HARD_LIMIT, PEAL, ROOT, environment, main, mpirun, peal

LIBRARY = os.path.join(os.path.dirname(os.path.dirname(PEAL)), "runtime")


def blocks(name, language):
    """The code blocks of a page, in order."""
    with open(os.path.join(ROOT, name), encoding="utf-8") as page:
        return re.findall(rf"^```{language}\n(.*?)^```$", page.read(), re.M | re.S)


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
            out.write(text)

    def run_spec(self, page):
        spec = blocks(page, "yaml")[0]
        kernels = re.search(r"^kernels: (\S+)$", spec, re.M).group(1)
        self.write("heat.yaml", spec)
        self.write(kernels, blocks(page, "c")[0])
        code, _, err = peal("check", "heat.yaml", "-n", "4", cwd=self.folder)
        self.assertEqual((code, err), (0, ""))
        code, out, err = peal("run", "heat.yaml", "-n", "4", "--mode", "all", "--verify", cwd=self.folder)
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("4 ranks (2 x 2 x 1)", out)
        self.assertIn("every mode equal to serial", out)
        rows = [float(row) for row in re.findall(r"(?m)^ +\d+ +(\S+)$", out)]
        self.assertGreater(len(rows), 2)
        self.assertGreater(rows[0], rows[-1], "the change gets smaller")
        self.assertGreater(rows[-1], 0)
        code, _, err = peal("run", "heat.yaml", "-n", "4", "--processes", "1", "--steps", "2", "--check-footprints",
                            cwd=self.folder)
        self.assertEqual(code, 0, err)

    def test_the_words_of_lower(self):
        """Those that the command takes are those of the guide's table."""
        _, _, err = peal("run", "heat.yaml", "--lower")
        words = [word.split("=") for word in re.search(r"--lower needs (\S+)", err).group(1).split(",")]
        with open(os.path.join(ROOT, "docs", "guide.md"), encoding="utf-8") as page:
            rows = [row.split("|")[1] for row in page if row.startswith("| `")]
        found = re.findall(r"`(\w+)=(\w+)`", " ".join(rows))
        self.assertEqual(sorted(found), sorted((key, value) for key, values in words for value in values.split("|")))

    def test_the_first_spec_of_the_guide(self):
        self.run_spec("docs/guide.md")

    def test_the_spec_of_the_readme(self):
        self.run_spec("README.md")

    def rows(self, spec, *words):
        """The table that a spec prints."""
        self.write("heat.yaml", spec)
        code, out, err = peal("run", "heat.yaml", *words, cwd=self.folder)
        self.assertEqual(code, 0, out + err)
        return [(int(step), float(value)) for step, value in re.findall(r"(?m)^ +(\d+) +(\S+)$", out)]

    def test_the_tutorial(self):
        with open(os.path.join(ROOT, "docs", "tutorial.md"), encoding="utf-8") as file:
            page = file.read()
        serial, kernels = blocks("docs/tutorial.md", "c")
        spec, finish, until = blocks("docs/tutorial.md", "yaml")
        self.write("serial.c", serial)
        self.write("heat.c", kernels)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "serial.c", "-lm", "-o", "serial"], cwd=self.folder, check=True, timeout=HARD_LIMIT)
        out = subprocess.run(["./serial"], cwd=self.folder, capture_output=True, text=True, check=True, timeout=HARD_LIMIT).stdout
        self.assertEqual(out, "".join(f"{row}\n" for row in re.findall(r"^    (\d+ [\d.]+)$", page, re.M)))
        wanted = [(int(row.split()[0]), float(row.split()[1])) for row in out.splitlines()]
        for ranks in ("1", "4"):
            for (step, value), (number, norm) in zip(self.rows(spec, "-n", ranks), wanted, strict=True):
                self.assertEqual(step, number)
                self.assertAlmostEqual(value, norm, 5)
        # without its exchange, its footprint, its swap
        self.write("heat.yaml", spec.replace("  - {exchange: a}\n", ""))
        code, _, err = peal("check", "heat.yaml", "-n", "4", cwd=self.folder)
        self.assertEqual(code, 3)
        self.assertEqual(err.splitlines()[0], re.search(r"^    (heat.yaml:.*\[E148\])$", page, re.M).group(1))
        self.write("heat.yaml", spec.replace("{a: {star: 1}}", "{a: tile}"))
        _, _, err = peal("run", "heat.yaml", "-n", "4", "--steps", "2", "--check-footprints", cwd=self.folder)
        self.assertIn("[E363]", err)
        self.write("heat.yaml", spec.replace("  - {swap: [a, b]}\n", ""))
        self.assertIn("[E161]", peal("check", "heat.yaml", "-n", "4", cwd=self.folder)[2])
        # what is added
        self.rows(spec + finish, "-n", "4")
        self.assertGreater(os.path.getsize(os.path.join(self.folder, "heat.npy")), 256 * 256 * 8)
        statement, buffers = re.search(r"`- (\{set: .*?\})` .*?`(buffers: .*?)`", page, re.S).groups()
        stops = spec.replace("buffers: {sum: {}}", buffers).replace("repeat: steps\n", until).replace(
            "{print: {change: sqrt(sum)}, when: step % report == 0}", statement)
        self.write("heat.yaml", stops)
        code, out, err = peal("run", "heat.yaml", "-n", "4", cwd=self.folder)
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"(?m)^201 steps")

    def test_the_page_of_kernels(self):
        """Its kernel runs as its task, its buffers are sound, and no word of the header is missing."""
        with open(os.path.join(ROOT, "docs", "kernels.md"), encoding="utf-8") as file:
            page = file.read()
        with open(os.path.join(ROOT, "include", "peal", "kernel.h"), encoding="ascii") as file:
            words = set(re.findall(r"^#define (PEAL_\w+[A-Z])\b", file.read(), re.M)) - {"PEAL_KERNEL_H"}
        self.assertGreater(len(words), 12)
        self.assertEqual([word for word in sorted(words) if not re.search(rf"`{word}[(`]", page)], [])
        task, buffers = blocks("docs/kernels.md", "yaml")
        self.write("k.c", blocks("docs/kernels.md", "c")[0])
        spec = ("peal: 1\nparams: {n: 12, weight: 0.5}\nkernels: k.c\nfields:\n  u: {size: [n, n], halo: 1}\n  v: {like: u}\n  w: {like: u}\n"
                f"buffers:\n  s: {{}}\nrepeat: 3\nstep:\n  - {{exchange: u}}\n  {task}  - {{allreduce: {{s: sum}}}}\n  - {{print: {{s: s}}}}\n"
                "  - {swap: [u, v]}\n")
        self.write("k.yaml", spec)
        code, out, err = peal("run", "k.yaml", "-n", "4", "--mode", "all", "--verify", cwd=self.folder)
        self.assertEqual((code, err), (0, ""), out)
        files = buffers.replace('"peers-{rank}.npy"', "peers.npy")
        numpy.save(os.path.join(self.folder, "peers.npy"), numpy.arange(3, dtype="i4"))
        self.write("b.yaml", f"peal: 1\n{files}step:\n  - {{set: s, value: 1}}\n  - {{print: {{s: s}}}}\n")
        self.assertEqual(peal("check", "b.yaml", "-n", "3", cwd=self.folder)[0], 0)

    @staticmethod
    def under(heading):
        """The first block of a section of the guide that is set off by four spaces."""
        with open(os.path.join(ROOT, "docs", "guide.md"), encoding="utf-8") as file:
            section = file.read().split(f"### {heading}\n", 1)[1]
        return re.sub("(?m)^    ", "", re.search(r"(?m)((?:^    .*\n|^\n)+)", section[section.index("\n    "):]).group(1))

    def test_the_exchanges(self):
        """Those of an own loop and of an MPI program compile."""
        self.write("loop.c", "#include <peal/exchange.h>\nvoid interior(double *u);\nvoid f(peal_session *session, int x0, int x1, int y0, "
                   f"int y1, double *u);\nvoid f(peal_session *session, int x0, int x1, int y0, int y1, double *u)\n{{\n{self.under('An exchange for your own loop')}}}\n")
        words = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I" + os.path.join(ROOT, "include")]
        subprocess.run([os.environ.get("CC", "cc"), *words, "loop.c"], cwd=self.folder, check=True, timeout=HARD_LIMIT)
        if not shutil.which("mpicc"):
            self.skipTest("no mpicc")
        text = self.under("In an MPI program")
        includes, body = text[:text.rindex("#include")], text[text.rindex("#include"):]
        include, body = body.split("\n", 1)
        self.write("mpi.c", f"{includes}{include}\ntypedef struct part {{ int x0, x1, y0, y1; double *u[2]; int64_t bytes; }} part;\n"
                   "void interior(part *, int);\nvoid border(part *, int);\nvoid f(MPI_Comm cart, part p, int steps, int now);\n"
                   f"void f(MPI_Comm cart, part p, int steps, int now)\n{{\n{body}}}\n")
        subprocess.run(["mpicc", *words, "mpi.c"], cwd=self.folder, check=True, timeout=HARD_LIMIT)

    def test_the_python_script(self):
        package = os.path.join(os.path.dirname(LIBRARY), "python")
        if importlib.util.find_spec("cffi") is None or not os.path.exists(package):
            self.skipTest("no cffi, or no package")
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("Python cannot load a library with the address sanitizer")
        self.write("heat.yaml", blocks("README.md", "yaml")[0].replace("n: 1024", "n: 256"))
        self.write("heat.c", blocks("README.md", "c")[0])
        self.write("script.py", self.under("From Python"))
        done = subprocess.run([sys.executable, "script.py"], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=HARD_LIMIT, env={**environment(), "PYTHONPATH": package})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^\[[\d. ]+\] 0\.\d+\n$")

    def test_the_embedding_program(self):
        if 'ASAN_OPTIONS' in os.environ:
            self.skipTest('a plain program cannot load a library with the address sanitizer')
        programs = [text for text in blocks("docs/guide.md", "c") if "int main(" in text]
        self.assertEqual(len(programs), 1)
        self.write("heat.c", programs[0])
        program = os.path.join(self.folder, "heat")
        include = os.path.join(ROOT, "include")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "heat.c", "-o", program,
                        "-I" + include, "-L" + LIBRARY, "-lpeal", "-Wl,-rpath," + LIBRARY], cwd=self.folder,
                       check=True, timeout=HARD_LIMIT)
        for prefix, ranks in [((), 1), (mpirun(3), 3)]:
            if prefix and not shutil.which("mpirun"):
                continue
            done = subprocess.run([*prefix, program], capture_output=True, text=True, check=False, env=environment(),
                                  timeout=HARD_LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(f"done: {ranks} ranks"), ranks)


if __name__ == "__main__":
    main()
