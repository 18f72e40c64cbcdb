# What README and the guide print as complete runs as it stands there: the first spec with its kernels, and the program
# that embeds peal.
import os
import re
import shutil
import subprocess
import tempfile
import unittest

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
