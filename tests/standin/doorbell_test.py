#!/usr/bin/env python3
# Streams that ring for messages to other hosts: on the driver's stand-in whose kernels run, and an RDMA adapter of software that
# says so if it sees what it must not see (tests/softhca).
#
#   doorbell_test.py EMULATING INCLUDE FREEZE PAIR: the folder with that stand-in, that of the emulated device's headers, the
#   programs of the freeze test and of two processes that exchange on streams of their own (embed_pair)
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.argv[1:1] = sys.argv[1:2]  # one driver in the place of a new and of an old one
from calls import FOLDER, NEW, bad, common, left, lines_of  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

INCLUDE, FREEZE, PAIR = sys.argv[3:6]
del sys.argv[1:6]
SAMPLES = {"jacobi2d/jacobi2d": ["nx=64", "ny=66"], "jacobi_until/jacobi_until": ["nx=64", "ny=66"], "heat3d/heat3d": [],
           "cg/cg": ["n=64"], "halo/halo": [], "halo/short": [], "particles/particles": [], "bfs/bfs": [],
           "hdiff/hdiff": ["nx=32", "ny=32", "levels=2"], "hdiff/pair": [], "vcycle/vcycle": [], "denoise/denoise": [],
           "cavity/cavity": []}
# Their kernels are compiled for the host in seconds, on a busy machine, too.
QUICK = ["cg/cg", "halo/halo", "halo/short", "heat3d/heat3d", "jacobi2d/jacobi2d", "jacobi_until/jacobi_until"]
JACOBI = os.path.join(common.ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
SMALL = ("--set", "nx=64", "--set", "ny=66")
FAILING = """peal: 1
kernels: k.c
fields: {u: {type: i32, size: [16], halo: 1}, v: {like: u}}
buffers: {small: {type: u8, keep: true}, most: {type: i32, keep: true}}
repeat: 3000
step:
  - {exchange: u}
  - {task: add, box: v, read: {u: {star: 1}}, write: v, args: [step]}
  - {swap: [u, v]}
  - {set: most, value: step}
  - {set: small, value: most * 10, when: rank == 0}
"""
ADD = """PEAL_KERNEL(add)(peal_tile t, PEAL_READ(int, u), PEAL_WRITE(int, v), long step)
{
    PEAL_FOR_1D(t, x) PEAL_AT(v, x) = PEAL_AT(u, x) + (int)step;
}
"""
STREAM = ("--backend", "cuda", "--mode", "stream", "--transport", "mlx5", "--deadline", "20s")


@unittest.skipIf(common.why_no_verbs(), common.why_no_verbs())
class Doorbells(unittest.TestCase):
    def environment(self, path, devices, **more):
        return common.environment(LD_LIBRARY_PATH=NEW + ":" + os.environ.get("LD_LIBRARY_PATH", ""), STANDIN_DEVICES=str(devices),
                                  STANDIN_RECORD=path, STANDIN_SMS="3", EMULATE_INCLUDE=INCLUDE, EMULATE_UNITS=FOLDER.name,
                                  XDG_CACHE_HOME=FOLDER.name + "/cache", PEAL_TEST_HOSTS="2", **more)

    def run_with(self, *words, devices=2, forms=(), verb="run", **more):
        """Exit code, what was printed, the calls of the driver."""
        path = os.path.join(tempfile.mkdtemp(dir=FOLDER.name), "record")
        env = self.environment(path, devices, **more)
        code, out, err = common.peal(verb, *words, prefix=common.adapter(*forms), env=env)
        return code, out + err, lines_of(path) if os.path.exists(path) else []

    def agrees(self, spec, ranks, *words, **more):
        name = os.path.join(common.ROOT, "samples", spec + ".yaml")
        sets = [word for each in SAMPLES[spec] for word in ("--set", each)]
        code, text, record = self.run_with(name, "-n", str(ranks), *STREAM, "--verify", "--steps", "12", *sets, *words, devices=ranks, **more)
        self.assertEqual(code, 0, f"{spec} -n {ranks} {more}: {text}")
        self.assertIn("stream equal to serial, bit for bit", text)
        self.assertIn("mlx5 (rung for by streams)", text)
        self.assertEqual((bad(record), left(record)), ([], set()), spec)

    def test_samples(self):
        names = sorted(SAMPLES) if share.ALL else QUICK
        for turn, (ranks, every) in enumerate(((2, 3), (4, 6))):
            for spec in share.taken(names, every, turn):
                with self.subTest(spec, ranks=ranks):
                    self.agrees(spec, ranks)

    def test_several_ranks_in_a_process(self):
        for spec in share.taken(["jacobi2d/jacobi2d", "cg/cg", "vcycle/vcycle"], 3):
            with self.subTest(spec):
                self.agrees(spec, 4, "--processes", "2")

    def test_every_store_is_seen(self):
        for forms in share.taken([("--steps",), ("--steps", "--late"), ("--shuffle", "--late"), ("--slow",)], 4):
            with self.subTest(forms):
                self.agrees("jacobi2d/jacobi2d", 2, forms=forms)

    def test_a_point_is_one_batch(self):
        counts = []
        for steps in (40, 80):
            code, text, record = self.run_with(JACOBI, "-n", "2", *STREAM, *SMALL, "--set", "report=1000", "--steps", str(steps))
            self.assertEqual(code, 0, text)
            counts.append([record.count(call) for call in ("cuStreamBatchMemOp", "cuStreamWriteValue64", "cuStreamWaitValue64", "cuLaunchKernel")])
        batches, writes, waits, launches = (after - before for before, after in zip(*counts))
        # Of 40 steps of two ranks: what rings follows the border's kernel, the wait for the neighbour the interior's.
        self.assertEqual((writes, waits), (0, 0))
        self.assertEqual(batches, 2 * 40 * 2)
        self.assertLessEqual(launches, 2 * 40 * 3)

    def test_a_thread_posts_what_is_not_rung_for(self):
        cases = ((("--lower", "network=word"), {}), ((), {"STANDIN_LACKS": "memops"}), ((), {"STANDIN_FAIL": "cuMemHostRegister:3+"}))
        for words, more in share.taken(cases, 3):
            with self.subTest(words, **more):
                code, text, record = self.run_with(JACOBI, "-n", "2", *STREAM, *SMALL, "--steps", "12", "--verify", *words, **more)
                self.assertEqual(code, 0, text)
                self.assertIn("mlx5 (posted by a thread)", text)
                self.assertIn("stream equal to serial, bit for bit", text)
                self.assertEqual(record.count("cuStreamBatchMemOp"), 0)
                self.assertEqual(left(record), set())

    @share.sometimes(12)  # half a minute
    def test_tune_tries_both(self):
        words = (JACOBI, "-n", "2", "--backend", "cuda", "--mode", "stream", *SMALL, "--steps", "5")
        for transport, tried in (("mlx5", True), ("verbs", False)):
            code, text, _ = self.run_with(*words, "--transport", transport, verb="tune")
            self.assertEqual(code, 0, text)
            self.assertEqual("network=word" in text, tried, text)

    def test_why_it_cannot(self):
        asked = (JACOBI, "-n", "2", "--backend", "cuda", "--mode", "stream", *SMALL, "--steps", "12", "--lower", "network=doorbell")
        cases = (
            (("--transport", "tcp"), {}, r"only messages by mlx5 can be rung for \(--transport mlx5\)"),
            (("--processes", "1"), {}, "no message goes to another host"),
            (("--transport", "mlx5"), {"STANDIN_LACKS": "memops"}, "this GPU lacks memory operations: of 64 bits, or waits for a bit that is clear"),
            (("--transport", "mlx5"), {"STANDIN_FAIL": "cuMemHostRegister:3+"}, "the driver does not map r[a-z]+s of the adapter: .*"))
        for words, more, why in share.taken(cases, 3):
            with self.subTest(words, **more):
                code, text, _ = self.run_with(*asked, *words, **more)
                self.assertEqual(code, 4, text)
                self.assertRegex(text, rf"the stream cannot ring for messages to other hosts: {why} \[E670\]")

    def test_nothing_is_rung_for_behind_a_failure(self):
        """A kernel finds it at step 26, and the walk is some hundred steps ahead."""
        name = os.path.join(common.folder_of({"s.yaml": FAILING, "k.c": ADD}, FOLDER.name), "s.yaml")
        code, text, _ = self.run_with(name, "-n", "2", *STREAM, SOFTHCA_SAY="1")
        self.assertEqual(code, 3, text)
        self.assertRegex(text, r"rank 0, step 26: `small` is set to 260, but its type u8 holds 0 to 255 \[E371\]")
        self.assertLess(int(re.search(r"softhca: \d+ doorbells, (\d+) entries", text)[1]), 2 * 2 * 35)

    def test_failures_are_told(self):
        for words, forms, expected in (((), ("--fail=300",), (5, r"the RDMA connection with process \d has ended: .*\[E320\]")),
                                       (("--deadline", "2s"), ("--die=300",), (6, r"waits for .* \[E661\]"))):
            with self.subTest(forms):
                code, text, _ = self.run_with(JACOBI, "-n", "2", *STREAM, *SMALL, "--steps", "2000", *words, forms=forms)
                self.assertEqual(code, expected[0], text)
                self.assertRegex(text, expected[1])

    def test_an_exchange_on_a_stream_of_the_application(self):
        for forms in share.taken([(), ("--steps", "--late")], 2):
            path = os.path.join(tempfile.mkdtemp(dir=FOLDER.name), "record")
            done = subprocess.run([*common.adapter(*forms), PAIR, "rounds", "mlx5"], env=self.environment(path, 2), capture_output=True,
                                  text=True, check=False, timeout=common.HARD_LIMIT)
            self.assertEqual(sorted(done.stdout.splitlines()), ["process 0: ok, ok", "process 1: ok, ok"], done.stdout + done.stderr)
            record = lines_of(path)
            self.assertEqual((bad(record), left(record)), ([], set()))
            self.assertGreaterEqual(record.count("cuStreamBatchMemOp"), 2 * 8)
            self.assertEqual(record.count("cuStreamWaitValue64"), 0)

    def test_the_program_of_the_freeze_test(self):
        """On GPUs it stops the ranks. Here their threads are the device: they run, or the control stalls as it must."""
        for form, steps, what, told in (("doorbell", 90, "running", "all done"), ("word", 20, "stopped", "not done in 2"), ("word", 20, "running", "all done")):
            with self.subTest(form, what=what):
                words = [*common.adapter(), FREEZE, JACOBI, str(steps), form, what, "nx=64", "ny=66", "report=1000"]
                done = subprocess.run(words, env=self.environment(os.devnull, 2), capture_output=True, text=True, check=False, timeout=common.HARD_LIMIT)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, rf"{form}, {steps} steps, .*: {told}(.*\n)*.*equal to serial bit for bit: as it must be")

    def test_the_freeze_test_of_a_loop_of_its_own(self):
        for form, steps, what, told in share.taken([("doorbell", 60, "running", "all done"), ("word", 20, "stopped", "not done in 2")], 2):
            with self.subTest(form):
                words = [*common.adapter(), FREEZE, "pingpong", str(steps), form, what]
                done = subprocess.run(words, env=self.environment(os.devnull, 2), capture_output=True, text=True, check=False, timeout=common.HARD_LIMIT)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, rf"{form}, {steps} steps, .*: {told}(.*\n)*.*equal to serial bit for bit: as it must be")


if __name__ == "__main__":
    unittest.main()
