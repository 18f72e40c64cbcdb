#!/usr/bin/env python3
# peal's own GPU benchmark programs without a GPU: on the host they measure and verify what they would
# on GPUs; on the stand-in of the driver, which computes nothing, they find that the results are wrong;
# and what fails is said, while the rest goes on. No time is judged.
#
#   gpu_programs_test.py HALO JACOBI HDIFF STANDIN
import json
import os
import subprocess
import sys
import tempfile
import unittest

HALO, JACOBI, HDIFF, STANDIN = (os.path.abspath(word) for word in sys.argv[1:5])
del sys.argv[1:5]
FOLDER = tempfile.TemporaryDirectory()


def run(program, *words, asked="", hidden=("trying", "compiling"), **more):
    """Exit code and the JSON lines, but for those that say what is being set up; `asked` goes to stdin."""
    env = {**os.environ, "PEAL_BENCH_BATCH_MS": "0.1", "PEAL_BENCH_PATIENCE_S": "120",
           "XDG_CACHE_HOME": os.environ.get("PEAL_TEST_CACHE") or FOLDER.name,
           "STANDIN_RECORD": os.path.join(FOLDER.name, "record"), **more}
    done = subprocess.run([program, *words], env=env, input=asked, capture_output=True, text=True, check=False,
                          timeout=280)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [line for line in lines if not set(hidden) & set(line)], done.stderr


def rows(lines):
    return [line for line in lines if "ns" in line]


def on_host(program, *words, **more):
    return run(program, *words, PEAL_BENCH_BACKEND="host", **more)


def on_standin(program, *words, **more):
    """Of a driver that runs no kernels, and an NVRTC that compiles none, whose cache nobody else may use."""
    return run(program, *words, LD_LIBRARY_PATH=STANDIN, STANDIN_DEVICES="2",
               XDG_CACHE_HOME=os.path.join(FOLDER.name, "standin"), **more)


class Host(unittest.TestCase):
    def test_halo(self):
        code, lines, error = on_host(HALO, "2", "ring 8 20", "ring 4096 0", "ring 64 alone")
        self.assertEqual(code, 0, error)
        self.assertEqual(lines.count({"done": True}), 3)
        lines = rows(lines)
        self.assertTrue(all(line["verified"] for line in lines))
        self.assertEqual({line["case"] for line in lines},
                         {"ring2/8/20", "ring2/4096/0", "ring2/64/alone"})
        named = [(line["case"], line["variant"], line["kind"]) for line in lines]
        self.assertEqual(len(named), len(set(named)))
        self.assertIn(("ring2/8/20", "graph, no exchange", "floor"), named)
        self.assertIn(("ring2/8/20", "graph, interior", "floor"), named)
        self.assertIn(("ring2/64/alone", "exchange, graph", "peal"), named)
        small = {variant for case, variant, _ in named if case == "ring2/4096/0"}
        others = {variant for case, variant, _ in named if case == "ring2/8/20"}
        self.assertIn("exchange, graph, signal=memop", small)
        self.assertNotIn("exchange, graph, signal=memop", others)

    def test_box(self):
        code, lines, error = on_host(HALO, "4", "box 6", PEAL_BENCH_WAYS="exchange, graph, lanes=2;stream")
        self.assertEqual(code, 0, error)
        self.assertTrue(rows(lines) and all(line["verified"] for line in rows(lines)))
        self.assertEqual({line["case"] for line in rows(lines)}, {"box4/6"})

    def test_jacobi(self):
        """The digest does not depend on how many processes there are, nor on the norm."""
        digests = {}
        for ranks in ("1", "3"):
            code, lines, error = on_host(JACOBI, ranks, "66", "300", PEAL_BENCH_WAYS=", graph, lanes=2")
            self.assertEqual(code, 0, error)
            lines = rows(lines)
            self.assertTrue(all(line["verified"] for line in lines))
            for line in lines:
                digests.setdefault(line["case"].split("/")[0], set()).add(line["digest"])
            self.assertEqual({line["case"] for line in lines},
                             {f"{n}/{ranks}{norm}" for n in (66, 300) for norm in ("", "/norm")})
        self.assertEqual([len(digests["66"]), len(digests["300"])], [1, 1])

    def test_hdiff(self):
        """Right on the levels that the CPU computes, and the same digest with both fluxes in one task."""
        for ranks in ("1", "2", "4"):
            code, lines, error = on_host(HDIFF, ranks, "6", PEAL_BENCH_WAYS=" tasks, graph, lanes=2")
            self.assertEqual(code, 0, error)
            lines = rows(lines)
            self.assertEqual([line["variant"] for line in lines],
                             ["four tasks, graph, lanes=2", "three tasks, graph, lanes=2"])
            self.assertTrue(all(line["verified"] for line in lines))
            self.assertEqual(len({line["digest"] for line in lines}), 1)

    def test_rounds(self):
        """Cases come one a line, again and again: the same rows each time, checked once."""
        code, lines, error = on_host(HALO, "2", asked="ring 64 0\nbox 6\nring 64 0\nbox 6\n")
        self.assertEqual(code, 0, error)
        ends = [i for i, line in enumerate(lines) if "done" in line]
        self.assertEqual((len(ends), ends[-1]), (4, len(lines) - 1))
        named = [(line["case"], line["variant"], line["verified"]) for line in rows(lines)]
        self.assertEqual(named[:len(named) // 2], named[len(named) // 2:])
        self.assertEqual(ends[1] + 1, len(lines) // 2)

    def test_fresh(self):
        words = {"asked": "66\n66\n", "PEAL_BENCH_FRESH": "1", "PEAL_BENCH_WAYS": "relax, stream, lanes=2"}
        code, lines, error = on_host(JACOBI, "2", **words)
        self.assertEqual(code, 0, error)
        self.assertEqual([line["verified"] for line in rows(lines)], [True] * 4)

    def test_choice(self):
        words = ("2", "ring 64 0")
        _, lines, _ = on_host(HALO, *words, PEAL_BENCH_WAYS="tasks, graph, lanes=2;tasks, stream")
        ours = {line["variant"] for line in rows(lines) if line["kind"] == "peal"}
        self.assertEqual(ours, {"tasks, graph, lanes=2", "tasks, stream", "tasks, stream, lanes=2",
                                "tasks, stream, engine, memop"})
        _, lines, _ = on_host(HALO, *words, PEAL_BENCH_WAYS="tasks, graph, lanes=2;tasks, stream",
                              PEAL_BENCH_SKIP="other|x;ring2/64/0|tasks, stream")
        left = {line["variant"] for line in rows(lines) if line["kind"] == "peal"}
        self.assertEqual(ours - left, {"tasks, stream"})

    def compiler(self, does):
        """A folder whose cc does that first: kernels that are in no cache take as long."""
        folder = tempfile.mkdtemp(dir=FOLDER.name)
        path = os.path.join(folder, "cc")
        with open(path, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\n{does}\nexec /usr/bin/cc \"$@\"\n")
        os.chmod(path, 0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "XDG_CACHE_HOME": folder,
                "PEAL_BENCH_WAYS": "four tasks, graph, lanes=2"}

    def test_slow_compiler(self):
        """Compilers may take longer than anything else: nothing is ended meanwhile."""
        code, lines, error = on_host(HDIFF, "2", "6", hidden=["trying"], PEAL_BENCH_PATIENCE_S="2",
                                     **self.compiler("sleep 3"))
        self.assertEqual(code, 0, error)
        self.assertEqual([line["verified"] for line in rows(lines)], [True], lines)
        self.assertIn("compiling", {key for line in lines for key in line})

    def test_stuck_compiler(self):
        """One that never ends is ended, and the row says what all were doing."""
        _, lines, _ = on_host(HDIFF, "2", "6", PEAL_BENCH_PATIENCE_S="0.25", **self.compiler("sleep 100"))
        why = [line["why"] for line in lines if "failed" in line]
        self.assertEqual(len(why), 1, lines)
        self.assertRegex(why[0], r"nothing moved for 2 s: .*rank [01] compiles a plan")

    def test_not_understood(self):
        for words in (("2", "ring 7"), ("2", "cube 7"), ("0", "box 8"), ("1", "ring 64 0")):
            self.assertEqual(on_host(HALO, *words)[0], 2, words)
        self.assertEqual(on_host(JACOBI, "2", "3")[0], 2)
        self.assertEqual(on_host(HDIFF, "2", "3")[0], 2)
        self.assertEqual(on_host(HALO, "2", asked="cube 7\n")[0], 2)


class Standin(unittest.TestCase):
    def test_nothing_was_computed(self):
        for program, words in ((HALO, ("2", "box 6")), (JACOBI, ("2", "66"))):
            code, lines, error = on_standin(program, *words, PEAL_BENCH_WAYS="exchange, graph, lanes=2;relax, stream, lanes=2")
            self.assertEqual(code, 0, error)
            self.assertTrue(rows(lines))
            self.assertFalse(any(line["verified"] for line in rows(lines)))

    def test_others_go_on(self):
        """Replays fail in each new process; streams and kernels that stay have none."""
        code, lines, error = on_standin(HALO, "2", asked="box 6\nbox 6\n", STANDIN_FAIL="cuGraphLaunch:1")
        self.assertEqual(code, 0, error)
        failed = {line["failed"] for line in lines if "failed" in line}
        self.assertIn("box2/6|exchange, graph", failed)
        others = ["exchange, stream", "exchange, sync", "exchange, fused"]
        self.assertTrue(all("a replay" in line["why"] for line in lines if "failed" in line), lines)
        # What has failed is not tried again: in the second round there are others only.
        self.assertEqual(lines.count({"done": True}), 2)
        again = lines[lines.index({"done": True}) + 1:]
        self.assertEqual([line["variant"] for line in rows(again)], others)
        self.assertEqual(len(again), 4)


if __name__ == "__main__":
    unittest.main()
