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

    def test_sample(self):
        """Halos by peal and by MPI: the same bits on any number of processes, in C and C++; and how many lines each takes."""
        folder = os.path.join(ROOT, "samples", "exchange_mpi")
        there, digests = os.path.dirname(LIBRARY), set()
        link = ["-I", INCLUDE, "-L", there, "-lpeal", f"-Wl,-rpath,{there}"]
        programs = [(["mpicc", "-std=c11"], "with_mpi.c"), (["mpicc", "-std=c11"], "with_peal.c")]
        if shutil.which("mpicxx"):
            programs.append((["mpicxx", "-std=c++17", "-DOMPI_SKIP_MPICXX"], "with_peal.cpp"))
        with open(os.path.join(folder, "README.md"), encoding="ascii") as file:
            promised = dict(re.findall(r"\[(with_[a-z.]+)\]\(.*?\) \| (\d+) \|", file.read()))
        for compiler, name in programs:
            program, source = os.path.join(self.folder.name, name.replace(".", "_")), os.path.join(folder, name)
            subprocess.run([*compiler, "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", source, "-o", program, *link], check=True,
                           timeout=HARD_LIMIT)
            for processes in (1, 2, 4, 6) if name == "with_peal.c" else (4,):
                with self.subTest(f"{name} {processes}"):
                    done = subprocess.run([*mpirun(processes), program, "53", "37", "60"], capture_output=True, text=True, check=False,
                                          timeout=HARD_LIMIT, env=environment())
                    self.assertEqual(done.returncode, 0, done.stderr)
                    digests.add(re.match(r"53 x 37 points, 60 steps: digest (\w+)\n[0-9.]+ us a step\n$", done.stdout).group(1))
            self.assertEqual(str(self.lines_for_halo(source)), promised[name])
        self.assertEqual(len(digests), 1)

    @staticmethod
    def lines_for_halo(source):
        count, inside = 0, False
        with open(source, encoding="ascii") as file:
            for line in file:
                if "halo: " in line:
                    inside = "halo: begin" in line
                elif inside or re.search(r"(/\* halo \*/|// halo)$", line):
                    count += bool(line.strip())
        return count

    @unittest.skipUnless(shutil.which("mpicxx"), "no mpicxx")
    def test_plus(self):
        subprocess.run(["mpicxx", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", "-I", INCLUDE, "-fsyntax-only",
                        "-xc++", "-"],
                       input="#include <peal/mpi.h>\nint main() { peal_session_destroy(peal_session_from_mpi(MPI_COMM_SELF)); }\n",
                       text=True, check=True, timeout=HARD_LIMIT)


if __name__ == "__main__":
    main()
