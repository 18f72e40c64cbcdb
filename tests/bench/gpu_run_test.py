#!/usr/bin/env python3
# bench/gpu_run.py against programs of ours that stand in for benchmarks: what it asks and in which
# order, and that a program that hangs, ends or fails costs its own rows only. No GPU is needed.
#
#   gpu_run_test.py GPU_RUN
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GPU_RUN = os.path.abspath(sys.argv[1])
del sys.argv[1]

# Answers every case with two rows, unless BAD (a list) says that something goes wrong in it.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time
BAD = {bad!r}
skipped = os.environ.get("PEAL_BENCH_SKIP", "").split(";")
log = open({log!r}, "a", buffering=1)
if "PEAL_BENCH_COMPILE" in os.environ:
    for case in sys.argv[2:]:
        print("compile", case, file=log)
    sys.exit(0)
print("start", {name!r}, file=log)
known = set()
for line in sys.stdin:
    case = line.strip()
    print({name!r}, case, file=log)
    words = case.split()
    test = f"{{words[0]}}{{sys.argv[-1]}}/{{'/'.join(words[1:])}}" if words[0] in ("ring", "box") \\
        else f"{{words[0]}}/{{sys.argv[-1]}}"
    for variant, ns in (("exchange, graph", {ns}), ("exchange, stream", {ns} + 1000)):
        name = f"{{test}}|{{variant}}"
        if name in skipped:
            continue
        if name not in known:
            print(json.dumps({{"trying": name}}), flush=True)
            known.add(name)
        if variant == "exchange, graph" and case in BAD:
            if BAD[case] == "hangs":
                time.sleep(1000)
            sys.exit("no such thing")
        print(json.dumps({{"bench": "x", "case": test, "peer": {peer!r}, "variant": variant,
                          "kind": "peal" if {peer!r} == "peal" else "peer", "ns": {ns} if "graph" in variant else {ns} + 1000,
                          "cpu_ns": 100, "digest": "0", "verified": True}}), flush=True)
    print(json.dumps({{"done": True}}), flush=True)
print("end", {name!r}, file=log)
"""


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = Path(self.folder.name) / "build"
        self.log = Path(self.folder.name) / "log"
        (self.build / "bench" / "gpu").mkdir(parents=True)

    def program(self, name, peer, ns, bad=None):
        path = self.build / "bench" / "gpu" / name
        path.write_text(PROGRAM.format(name=name, peer=peer, ns=ns, bad=bad or {}, log=str(self.log)))
        path.chmod(0o755)

    def run_it(self, *words):
        done = subprocess.run([sys.executable, GPU_RUN, *words, "--build", self.build, "--results",
                               Path(self.folder.name) / "results"], capture_output=True, text=True, check=False,
                              timeout=200)
        return done.returncode, done.stdout, done.stderr

    def asked(self):
        return self.log.read_text().splitlines()

    def test_rounds(self):
        """Every program once for every case, in turns; started once; the result is kept."""
        self.program("peal_gpu_halo", "peal", 5000)
        self.program("gpu_halo_memcpy", "memcpy", 10000)
        code, out, error = self.run_it("halo", "--gpus", "2", "--case", "ring 8 0", "--case", "box 8", "--peer", "memcpy")
        self.assertEqual(code, 0, error)
        asked = self.asked()
        a_round = ["peal_gpu_halo ring 8 0", "gpu_halo_memcpy ring 8 0", "peal_gpu_halo box 8", "gpu_halo_memcpy box 8"]
        self.assertEqual([line for line in asked if line.startswith(("peal", "gpu"))], a_round * 9)
        self.assertEqual(sorted(line for line in asked if line.startswith(("start", "end"))),
                         [f"{what} {name}" for what in ("end", "start") for name in ("gpu_halo_memcpy", "peal_gpu_halo")])
        compiled = [line for line in asked if line.startswith("compile")]
        self.assertEqual(sorted(compiled), ["compile box 8", "compile ring 8 0"])
        self.assertLess(asked.index(compiled[-1]), asked.index(a_round[0]))
        self.assertRegex(out, r"peal exchange, graph +5\.00")
        self.assertIn("at most 0.8 of memcpy (memcpy exchange, graph): 0.50: met", out)
        self.assertIn("left out: gpu_floor was not built", out)
        kept = list((Path(self.folder.name) / "results").iterdir())
        self.assertEqual(len(kept), 1)
        text = kept[0].read_text()
        for what in (r"halo, \d{4}-\d\d-\d\d, 9 rounds", r"command: bench/gpu_run.py halo", "GPUs: ", "commit: "):
            self.assertRegex(text, what)

    def test_longer_interior(self):
        """Without cases of the caller's: three times what peal's best exchange takes."""
        self.program("peal_gpu_halo", "peal", 5000)
        code, out, error = self.run_it("halo", "--gpus", "2", "--rounds", "1", "--peer", "")
        self.assertEqual(code, 0, error)
        self.assertIn("peal_gpu_halo ring 4096 15.0", self.asked())
        self.assertRegex(out, r"ring2/4096/15\.0 .*3 times as long")

    def test_hdiff(self):
        """Against NCCL's graph, by the size of a part; one GPU has no target."""
        self.program("peal_gpu_hdiff", "peal", 6000)
        self.program("gpu_hdiff_nccl", "nccl", 10000)
        code, out, error = self.run_it("hdiff", "--gpus", "1,2", "--rounds", "1", "--case", "128", "--case", "256")
        self.assertEqual(code, 0, error)
        found = re.findall(r"hdiff (\d+/\d)|at most ([\d.]+) of nccl, mode graph \(nccl exchange, graph\): 0.60: (\w+)", out)
        self.assertEqual(found, [("128/1", "", ""), ("256/1", "", ""), ("128/2", "", ""), ("", "0.5", "MISSED"),
                                 ("256/2", "", ""), ("", "0.75", "met")])

    def test_one_dies(self):
        """What a program was trying when it ended is left out, and the others go on."""
        self.program("peal_gpu_jacobi", "peal", 5000, {"512": "dies"})
        self.program("gpu_jacobi_nccl", "nccl", 10000)
        code, out, error = self.run_it("jacobi", "--gpus", "1", "--rounds", "2", "--case", "256", "--case", "512",
                                       "--peer", "nccl")
        self.assertEqual(code, 0, error)
        self.assertEqual(self.asked().count("start peal_gpu_jacobi"), 2)
        self.assertIn("no such thing", out)
        case = out.split("jacobi 512/1")[1]
        self.assertRegex(case, "peal exchange, stream .*in 1 rounds")
        self.assertNotRegex(case, "peal: peal exchange, graph")
        self.assertRegex(case, "nccl exchange, graph")

    def test_one_hangs(self):
        self.program("peal_gpu_jacobi", "peal", 5000)
        self.program("gpu_jacobi_nccl", "nccl", 10000, {"256": "hangs"})
        code, out, error = self.run_it("jacobi", "--gpus", "1", "--rounds", "3", "--case", "256", "--case", "512",
                                       "--peer", "nccl", "--timeout", "1")
        self.assertEqual(code, 0, error)
        self.assertTrue(re.search(r"gpu_jacobi_nccl 1: 256: printed nothing", out), out)
        self.assertRegex(out.split("jacobi 256/1")[1].split("jacobi 512/1")[0], "nccl exchange, stream")
        self.assertRegex(out.split("jacobi 512/1")[1], "nccl exchange, graph")

    def test_nothing_there(self):
        code, out, _ = self.run_it("halo", "--gpus", "2", "--rounds", "1")
        self.assertEqual(code, 4)
        self.assertIn("peal_gpu_halo was not built", out)


if __name__ == "__main__":
    unittest.main()
