# An MPI program with peal's exchange by <peal/mpi.h>: right halos for any communicator, and what fails is told once, with
# the place in the program, and ends the job.
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from common import HARD_LIMIT, ROOT, environment, main, mpirun

LIBRARY = os.environ.get("PEAL_LIBRARY", "")
SOURCE = os.path.join(ROOT, "tests", "tools", "mpi_program.c")
INCLUDE = os.path.join(ROOT, "include")


def line_of(text):
    with open(SOURCE, encoding="ascii") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


@unittest.skipUnless(LIBRARY and os.environ.get("PEAL_BUILD"), "no library, or one with sanitizers")
@unittest.skipUnless(shutil.which("mpicc") and shutil.which("mpirun"), "no mpicc, or no mpirun")
class MpiProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.folder.name, "program")
        there = os.path.dirname(LIBRARY)
        subprocess.run(["mpicc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, SOURCE, "-o", cls.program, "-L", there,
                        "-lpeal", f"-Wl,-rpath,{there}"], check=True, timeout=HARD_LIMIT)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, processes, *words):
        done = subprocess.run([*mpirun(processes), self.program, *words], capture_output=True, text=True, check=False,
                              timeout=HARD_LIMIT, env=environment())
        return done.returncode, done.stdout, done.stderr

    def test_right(self):
        for processes, word in ((1, "right"), (4, "right"), (6, "reversed")):
            with self.subTest(f"{processes} {word}"):
                code, out, err = self.run_it(processes, word)
                self.assertEqual(code, 0, err)
                self.assertEqual(out, f"{processes} processes, 0 wrong points\n", err)

    def fails(self, word, place, code, text):
        with self.subTest(word):
            got, out, err = self.run_it(4, word)
            self.assertEqual(got, code, out + err)
            self.assertRegex(err, f"mpi_program.c:{line_of(place)}: error: {text}")
            self.assertEqual(len(re.findall(": error: ", err)), 1, err)
            self.assertNotIn("wrong points", out)

    def test_failures_end_the_job(self):
        self.fails("bytes", "/* here */", 2, r"field 0 of process 1 has \d+ bytes, .* \[E362\]")
        self.fails("part", "/* here */", 2, r"(no process owns the point|processes . and . both own the point) .* \[E362\]")
        self.fails("quiet", "/* here */", 2, r"peal_exchange_wait: the exchange was not started \[E\d+\]")

        self.fails("graph", "/* graph */", 3, r".*`a`.* \[E\d+\]")
        code, out, err = self.run_it(2, "plan")
        self.assertEqual(code, 2, out + err)
        self.assertEqual(len(re.findall("error: .*peal_plan_wait", err)), 1, err)

    @unittest.skipUnless(shutil.which("mpicxx"), "no mpicxx")
    def test_plus(self):
        subprocess.run(["mpicxx", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", "-I", INCLUDE, "-fsyntax-only",
                        "-xc++", "-"],
                       input="#include <peal/mpi.h>\nint main() { peal_session_destroy(peal_session_from_mpi(MPI_COMM_SELF)); }\n",
                       text=True, check=True, timeout=HARD_LIMIT)


if __name__ == "__main__":
    main()
