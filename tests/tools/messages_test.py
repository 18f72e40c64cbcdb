# What people read: names that are whole, numbers that say of what they are.
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

from common import HARD_LIMIT, PEAL, ROOT, SPECS, descendants, environment, main, peal, peal_json, wait_until

HEAT = os.path.join(SPECS, "run", "heat.yaml")


class Numbers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_names_of_edges_are_whole(self):
        out = peal("explain", os.path.join(ROOT, "samples", "heat3d"), "-n", "4")[1]
        self.assertRegex(out, r"(?m)^allreduce heat hottest, line \d+ +shm +\d+ ")
        self.assertNotRegex(out, r"line [a-z]")
        names = ["a_buffer_with_a_name_of_some_length_%d" % i for i in range(8)]
        spec = "peal: 1\nbuffers: {%s}\nstep:\n- {allreduce: {%s}, name: 'some@5 where'}\n- {allreduce: {%s}}\n" % (
            ", ".join(n + ": {}" for n in names), ", ".join(n + ": sum" for n in names), ", ".join(n + ": max" for n in names))
        out = peal("explain", "-", "-n", "2", stdin=spec)[1]
        self.assertRegex(out, r"(?m)^some@5 where, line 4 +shm +\d+ ")
        self.assertRegex(out, rf"(?m)^allreduce {' '.join(names)}, line 5 +shm +\d+ ")
        rows = [line for line in out.splitlines() if re.search(r" (shm|path) +", line)]
        self.assertEqual(len({re.search(r" (shm|path) +", line).start() for line in rows}), 1, "columns stay in line")
        paths = peal_json("explain", "-", "-n", "2", "--json", stdin=spec)[1]["paths"]
        self.assertEqual({(p["statement"], p["line"]) for p in paths if p["line"]},
                         {("some@5 where", 4), ("allreduce " + " ".join(names), 5)})

    def test_mean_and_median_are_named(self):
        out = peal("run", HEAT, "-n", "2", "--mode", "stream")[1]
        self.assertRegex(out, r"(?m)^60 steps in [\d.e+]+ \w?s: [\d.e+]+ \w?s a step in the mean(, [\d.e+]+ \w?s in the median of \d parts)?$")
        out = peal("run", HEAT, "-n", "2", "--mode", "stream", "--steps", "3")[1]
        self.assertRegex(out, r"(?m)^3 steps in [\d.e+]+ \w?s: [\d.e+]+ \w?s a step in the mean(, .* in the median of \d parts)?$")
        self.assertIn("median/step", peal("run", HEAT, "--mode", "all")[1])

    def test_tasks_of_a_simulation_count_what_the_critical_path_counts(self):
        words = ("simulate", os.path.join(ROOT, "samples", "heat3d"), "-n", "1", "--machine",
                 os.path.join(ROOT, "machines", "h200_cluster.yaml"))
        point = peal_json(*words, "--json")[1]["points"][0]
        shares = {s["what"]: s["seconds"] for s in point["path"]["shares"]}
        tasks = sum(seconds for what, seconds in shares.items() if " " not in what)
        self.assertGreater(point["task_seconds"], point["kernel_seconds"])
        self.assertLessEqual(tasks / point["path"]["steps"], point["task_seconds"] * 1.01)
        out = peal(*words)[1]
        self.assertRegex(out, r"(?m)^  tasks +[\d.]+ \w?s a rank \([\d.]+ %\): [\d.]+ \w?s \([\d.]+ %\) in kernels, else launch, begin, end$")
        self.assertRegex(out, r"(?m)^  critical path, shares of .*, the last \d+ steps \(a task with its launch\):$")


def on_terminal(*words, cwd, **changes):
    """What the command prints where standard error is a terminal."""
    ours, theirs = pty.openpty()
    job = subprocess.Popen([PEAL, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, cwd=cwd,
                           env=environment(**changes))
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    job.wait(timeout=HARD_LIMIT)
    return text.decode().replace("\r\n", "\n")


class Terminal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "wb") as out:
            out.write(text.encode() if isinstance(text, str) else text)

    def shown(self, text, **changes):
        self.write("spec.yaml", text)
        return on_terminal("check", "spec.yaml", cwd=self.folder, **changes)

    def test_line_and_caret(self):
        text = "peal: 1\nparams: {count: 8}\nbuffers: {b: {count: 2 * cuont}}\nstep:\n- {set: b, value: 1}\n"
        out = self.shown(text, NO_COLOR="1")
        self.assertIn("     3 | buffers: {b: {count: 2 * cuont}}\n       |                          ^\n", out)
        self.assertNotIn("\033", out)
        self.assertNotIn("\033", self.shown(text, TERM="dumb", NO_COLOR=None))
        colored = self.shown(text, TERM="xterm", NO_COLOR=None)
        self.assertIn("\033[1;31merror:\033[0m", colored)
        self.assertEqual(re.sub(r"\033\[[0-9;]*m", "", colored), out)
        self.assertNotIn(" | ", peal("check", "spec.yaml", cwd=self.folder)[2])

    def test_lines_of_any_kind(self):
        before = "\u00e4" * 3
        out = self.shown(f"peal: 1\nname: {{'{before}': {before}}}\nbuffers: {{b: {{}}}}\nstep: [{{set: b, value: foo}}]\n", NO_COLOR="1")
        self.assertIn("^", out)
        long = "x + " * 300
        out = self.shown(f"peal: 1\nbuffers: {{b: {{}}}}\nstep: [{{set: b, value: {'1 + ' * 300}foo}}]\n", NO_COLOR="1")
        self.assertLess(max(map(len, out.splitlines())), 130)
        line, caret = [part for part in out.splitlines() if " | " in part][:2]
        self.assertEqual(line[caret.index("^"):][:3], "foo")
        self.assertTrue(long)

    def test_a_tab(self):
        out = self.shown("peal: 1\nbuffers: {b: {}}\nstep: [{set:\tb,\tvalue:\tfoo}]\n", NO_COLOR="1")
        line, caret = [part for part in out.splitlines() if " | " in part][:2]
        self.assertEqual(line[caret.index("^"):][:3], "foo")

    def test_what_cannot_be_shown(self):
        self.assertNotIn(" | ", on_terminal("check", "nowhere.yaml", cwd=self.folder))

    def test_control_characters_are_quoted(self):
        for name in ("a\x1b[31mb.yaml", "a\nb.yaml", "a\u202eb.yaml", "a\x07b.yaml", "a\u009b31mb.yaml"):
            err = peal("check", name, cwd=self.folder)[2]
            self.assertNotRegex(err, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", repr(name))
            self.assertRegex(err, r"a(\\x1b\[31m|\n    |\\u202e|\\x07|\\u009b31m)b")
            self.write(name, "peal: 1\nbuffers: {b: {}}\nstep: [{set: \"\\e[31mb\\u0085\", value: 1}]\n")
            err = peal("check", name, cwd=self.folder)[2]
            self.assertIn("[E", err)
            self.assertNotRegex(err, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", repr(name))
        err = peal("ch\x1b[2Jeck")[2]
        self.assertIn("\\x1b[2J", err)
        err = peal("run", HEAT, "--verf\x1by")[2] + peal("run", HEAT, "--mode", "\x1b[2J")[2]
        self.assertNotIn("\x1b", err)


COUNTED = """peal: 1
kernels: c.c
buffers: {n: {type: i64}, p: {count: 8, keep: true}}
repeat: 3
step:
  - {set: n, value: "VALUE"}
  - {task: move, box: {count: n, max: 8}, tile: whole, write: {p: whole}}
"""


class OneErrorOnce(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def expect(self, path, words, status, place):
        code, _, err = peal("run", path, *words)
        self.assertEqual(code, status, err)
        self.assertEqual(err.count("error: "), 1, err)
        self.assertNotIn("warning: ", err)
        self.assertRegex(err, place)

    def test_a_rank_twice_in_a_list(self):
        spec = ("peal: 1\nbuffers: {p: {count: 4, keep: true}, q: {count: 4, keep: true}}\nstep:\n"
                "  - {send: p, to: %s, when: rank == 0}\n%s  - {recv: q, from: 0, when: rank == 1}\n")
        twice = "it names this rank more than once: write two statements"
        for send, more, said in [("{ranks: [1, 1]}", "", twice), ("1", "  - {send: p, to: 1, when: rank == 0}\n", "give each its own `tag`")]:
            code, _, err = peal("check", "-", "-n", "2", stdin=spec % (send, more))
            self.assertEqual(code, 3)
            self.assertRegex(err, r"\[E140\]\n +" + said)

    def test_a_file_that_is_not_there(self):
        """A spec's and a machine's are read alike."""
        for words, expected, number in ((["check", "nowhere.yaml"], 4, "E411"), (["explain", HEAT, "--machine", "nowhere.yaml"], 2, "E001")):
            code, _, err = peal(*words)
            self.assertEqual(code, expected, err)
            self.assertRegex(err, rf"nowhere.yaml.*: No such file or directory \[{number}\]")
            self.assertNotIn("spec", err)

    def test_a_count_of_any_rank(self):
        self.write("c.c", "PEAL_KERNEL(move)(peal_tile t, PEAL_WRITE(double, p)) { PEAL_FOR_1D(t, x) PEAL_AT(p, x) = 1; }\n")
        for value, rank in (("rank * 3", "3"), ("9 * max(0, 1 - abs(rank - 1))", "1"), ("9", r"\d"), ("8 + step", r"\d")):
            path = self.write("c.yaml", COUNTED.replace("VALUE", value))
            for mode in ("serial", "sync", "stream", "fused"):
                with self.subTest((value, mode)):
                    self.expect(path, ("-n", "4", "--mode", mode), 3,
                                rf"c.yaml:7:31: error: rank {rank}, step \d: `move` has 9 points, of at most 8 \[E370\]\n    raise")

    def test_arithmetic_without_a_result(self):
        path = self.write("v.yaml", "peal: 1\nparams: {case: 0}\nbuffers: {x: {type: i64}, s: {type: i64}}\nrepeat: 8\n"
                                    "setup: [{set: x, value: 3000000000 + rank}]\nstep:\n"
                                    "  - {set: x, value: x * x, when: case == 0 and rank == 1}\n"
                                    "  - {set: s, value: 7 / (x - 3000000001), when: case == 1 and rank == 1}\n"
                                    "  - {set: s, value: floor(sqrt(0.0 - x)), when: case == 2 and rank == 1}\n"
                                    "  - {allreduce: {s: sum}}\n")
        squared = "9000000006000000001"
        for case, said in enumerate([rf"7:23: error: rank 1, step 1: `\*` overflows: {squared} \* {squared} \[E043\]",
                                     r"8:23: error: rank 1, step 0: `/` by zero: 7 / 0 \[E044\]",
                                     r"9:21: error: rank 1, step 0: `floor` of nan is not an integer of 64 bits \[E047\]"]):
            for mode in ("serial", "sync", "stream", "fused"):
                with self.subTest((case, mode)):
                    self.expect(path, ("-n", "2", "--set", f"case={case}", "--mode", mode), 3, r"v.yaml:" + said)

    def test_files_of_several_ranks(self):
        os.mkdir(os.path.join(self.folder, "b0"))
        path = self.write("s.yaml", "peal: 1\nfields: {a: {size: [16, 16]}}\nrepeat: 2\nstep:\n"
                                    "  - {save: a, file: 'b{step}/b-{rank}.npy'}\n")
        self.expect(path, ("-n", "4"), 4, r"s.yaml:5:5: error: cannot create `.*b1/b-\d.npy` in step 1: .*\[E210\]\n    ")
        path = self.write("l.yaml", "peal: 1\nfields: {a: {size: [16, 16]}}\nstep:\n  - {load: a, file: 'b{rank}/b.npy'}\n")
        self.expect(path, ("-n", "4"), 4, r"l.yaml:4:5: error: cannot open `.*b\d/b.npy` in step 0: .*\[E210\]\n    ")

    def test_a_process_that_is_killed(self):
        self.write("c.c", "#include <signal.h>\n#include <unistd.h>\nPEAL_KERNEL(move)(peal_tile t, PEAL_WRITE(double, p), long r)"
                          "\n{\n    PEAL_FOR_1D(t, x) PEAL_AT(p, x) = 1;\n    if (r == 2) kill(getpid(), SIGKILL);\n}\n")
        spec = ("peal: 1\nkernels: c.c\nbuffers: {p: {count: 8, keep: true}, s: {}}\nrepeat: 3\nstep:\n"
                "  - {task: move, box: [[0, 8]], tile: whole, write: {p: whole}, args: rank + 0 * step}\n  - {allreduce: {s: sum}}\n")
        path = self.write("c.yaml", spec)
        for mode in ("sync", "stream", "fused"):
            self.expect(path, ("-n", "4", "--mode", mode), 5, r"process 2 \(pid \d+\) was killed by signal 9")

    def test_nobody_reads(self):
        for words in (["-n", "1"], ["-n", "2"], ["-n", "2", "--processes", "1"]):
            for mode in ("serial", "sync", "stream", "fused"):
                job = subprocess.Popen([PEAL, "run", HEAT, *words, "--mode", mode, "--set", "steps=1000000000", "--set", "report=1"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
                job.stdout.readline()
                job.stdout.close()
                err = job.stderr.read()
                self.assertEqual((job.wait(timeout=HARD_LIMIT), err), (141, ""))
                job.stderr.close()
                wait_until(lambda pid=job.pid: not descendants(pid), "nothing is left")

    def test_few_open_files(self):
        for count in (5, 7, 16):
            for words in (["-n", "1"], ["-n", "2"], ["-n", "8"]):
                code, _, err = peal("run", HEAT, *words, prefix=("prlimit", f"--nofile={count}"))
                if code == 0:
                    self.assertEqual((count, words), (16, ["-n", "1"]))
                    continue
                self.assertEqual(code, 4, err)
                self.assertRegex(err, r"may have \d+ files open, of which \d+ are left: it needs \d+ \[E423\]\n    .*ulimit -n \d+")
                self.assertEqual(err.count("error: "), 1)
        self.assertEqual(peal("run", HEAT, "-n", "2", prefix=("prlimit", "--nofile=8:4096"))[0], 0)


if __name__ == "__main__":
    main()
