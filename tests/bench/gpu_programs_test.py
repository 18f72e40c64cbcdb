#!/usr/bin/env python3
# peal's own GPU benchmark programs without a GPU: on the host they measure and verify what they would
# on GPUs; on the stand-in of the driver, which computes nothing, they find that the results are wrong;
# and what fails is said, while the rest goes on. No time is judged.
#
#   gpu_programs_test.py HALO JACOBI STANDIN
import json
import os
import subprocess
import sys
import tempfile
import unittest

HALO, JACOBI, STANDIN = (os.path.abspath(word) for word in sys.argv[1:4])
del sys.argv[1:4]
FOLDER = tempfile.TemporaryDirectory()


def run(program, *words, **more):
    """Exit code and the JSON lines."""
    env = {**os.environ, "PEAL_BENCH_BATCH_MS": "0.1", "PEAL_BENCH_PATIENCE_S": "120",
           "XDG_CACHE_HOME": FOLDER.name,
           "STANDIN_RECORD": os.path.join(FOLDER.name, "record"), **more}
    done = subprocess.run([program, *words], env=env, capture_output=True, text=True, check=False, timeout=280)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def on_host(program, *words, **more):
    return run(program, *words, PEAL_BENCH_BACKEND="host", **more)


def on_standin(program, *words, **more):
    return run(program, *words, LD_LIBRARY_PATH=STANDIN, STANDIN_DEVICES="2", **more)


class Host(unittest.TestCase):
    def test_halo(self):
        code, lines, error = on_host(HALO, "4", *"ring 8 20 ring 4096 0 ring 64 alone box 6".split())
        self.assertEqual(code, 0, error)
        self.assertTrue(all(line["verified"] for line in lines))
        self.assertEqual({line["case"] for line in lines},
                         {"ring4/8/20", "ring4/4096/0", "ring4/64/alone", "box4/6"})
        named = [(line["case"], line["variant"], line["kind"]) for line in lines]
        self.assertEqual(len(named), len(set(named)))
        self.assertIn(("ring4/8/20", "graph, no exchange", "floor"), named)
        self.assertIn(("ring4/8/20", "graph, interior", "floor"), named)
        self.assertIn(("ring4/64/alone", "exchange, graph", "peal"), named)

    def test_jacobi(self):
        """The digest does not depend on how many processes there are, nor on the norm."""
        digests = {}
        for ranks in ("1", "3"):
            code, lines, error = on_host(JACOBI, ranks, "66", "300", PEAL_BENCH_WAYS=", graph, lanes=2")
            self.assertEqual(code, 0, error)
            self.assertTrue(all(line["verified"] for line in lines))
            for line in lines:
                digests.setdefault(line["case"].split("/")[0], set()).add(line["digest"])
            self.assertEqual({line["case"] for line in lines},
                             {f"{n}/{ranks}{norm}" for n in (66, 300) for norm in ("", "/norm")})
        self.assertEqual([len(digests["66"]), len(digests["300"])], [1, 1])

    def test_choice(self):
        words = ("2", "ring", "64", "0")
        _, lines, _ = on_host(HALO, *words, PEAL_BENCH_WAYS="tasks, graph, lanes=2;tasks, stream")
        ours = {line["variant"] for line in lines if line["kind"] == "peal"}
        self.assertEqual(ours, {"tasks, graph, lanes=2", "tasks, stream", "tasks, stream, lanes=2",
                                "tasks, stream, engine, memop"})
        _, lines, _ = on_host(HALO, *words, PEAL_BENCH_WAYS="tasks, graph, lanes=2;tasks, stream",
                              PEAL_BENCH_SKIP="other|x;ring2/64/0|tasks, stream")
        left = {line["variant"] for line in lines if line["kind"] == "peal"}
        self.assertEqual(ours - left, {"tasks, stream"})

    def test_not_understood(self):
        for words in (("2", "ring", "7"), ("2", "cube", "7"), ("0", "box", "8"), ("1", "ring", "64", "0")):
            self.assertEqual(on_host(HALO, *words)[0], 2, words)
        self.assertEqual(on_host(JACOBI, "2", "3")[0], 2)


class Standin(unittest.TestCase):
    def setUp(self):
        _, lines, error = on_standin(HALO, "2", "box", "6", PEAL_BENCH_WAYS="exchange, stream, lanes=2")
        if not lines or "failed" in lines[0]:
            self.assertIn("NVRTC", f"{lines}{error}")
            self.skipTest("no NVRTC")

    def test_nothing_was_computed(self):
        for program, words in ((HALO, ("2", "box", "6")), (JACOBI, ("2", "66"))):
            code, lines, error = on_standin(program, *words, PEAL_BENCH_WAYS="exchange, graph;relax, stream, lanes=2")
            self.assertEqual(code, 0, error)
            self.assertTrue(lines)
            self.assertFalse(any(line["verified"] for line in lines))

    def test_others_go_on(self):
        """Replays fail in each new process; streams have none."""
        code, lines, error = on_standin(HALO, "2", "box", "6", STANDIN_FAIL="cuGraphLaunch:1")
        self.assertEqual(code, 0, error)
        failed = {line["failed"] for line in lines if "failed" in line}
        self.assertIn("box2/6|exchange, graph", failed)
        self.assertEqual([line["variant"] for line in lines if "ns" in line], ["exchange, stream"])
        self.assertTrue(all("a replay" in line["why"] for line in lines if "failed" in line), lines)


if __name__ == "__main__":
    unittest.main()
