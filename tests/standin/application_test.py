#!/usr/bin/env python3
# Programs that embed peal, on the stand-in of the driver: which backend they get, and what is done with their streams,
# memory and context.
#
#   application_test.py NEW OLD PLAN_JOB EMBED_JOB RING_JOB EMBED_PAIR: as standin_test.py has them
import re
import shutil
import subprocess
import sys
import unittest

from calls import common, CACHE, GIVES_BACK, OPTIONAL, bad, findings, left, lines_of, only, with_driver

PLAN_JOB, EMBED_JOB, RING_JOB, EMBED_PAIR = sys.argv[3:7]
del sys.argv[1:7]


class Application(unittest.TestCase):
    def test_ranks_that_wait_for_each_other(self):
        """Of one process: nothing is left that could come, which is seen at once."""
        if findings(with_driver()[0])["nvrtc"][0] != "ok":
            self.skipTest("no NVRTC")
        env, path = with_driver(XDG_CACHE_HOME=CACHE)
        done = subprocess.run([RING_JOB], env=env, capture_output=True, text=True, check=False, timeout=common.HARD_LIMIT)
        self.assertEqual(done.returncode, 3, done.stdout)
        for rank in (0, 1):
            self.assertRegex(done.stdout, rf"rank {rank} waits for .*, which is never sent \[E663\]")
        self.assertEqual(left(lines_of(path)), set())

    def test_choice_of_backend(self):
        env, path = with_driver()
        done = subprocess.run([PLAN_JOB], env=env, capture_output=True, text=True, check=False,
                              timeout=common.HARD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)
        out = {}
        for line in done.stdout.splitlines():
            if line.startswith("  "):
                out[name][1].append(line.strip())
            else:
                name, rest = line.split(": ", 1)
                out[name] = (rest.split(", "), [])
        backends = {name: result[:2] for name, (result, _) in out.items()}
        self.assertEqual(backends["auto function"], ["host", "ok"])
        self.assertEqual(backends["auto lent"], ["host", "ok"])
        self.assertEqual(backends["auto plain"], ["cuda", "ok"])
        self.assertEqual(backends["forced serial function"], ["cuda", "ok"])
        self.assertEqual(out["forced serial function"][0][2], out["host"][0][2])
        self.assertEqual(backends["verify lent"], ["host", "ok"])
        self.assertEqual(backends["fused"], ["cuda", "ok"])
        for name, status, message in (
                ("forced sync function", "environment",
                 "task 'add' is a function of the host, which a GPU cannot run [E385]"),
                ("forced lent", "usage", "'u' has lent memory that the cuda backend cannot use: it is ordinary host"),
                ("unknown", "usage", "there is no backend 'gpu'"),
                ("unknown transport", "usage", "there is no transport 'ipc' [E389]")):
            self.assertEqual(backends[name][0], "none", name)
            self.assertIn(status, backends[name][1])
            self.assertIn(message, " ".join(out[name][1]))
        self.assertEqual(left(lines_of(path)), set())


# Calls that peal must not make between the application's marks: they allocate or wait for the device.
NOT_IN_STEADY_STATE = {"cuMemAlloc", "cuMemHostAlloc", "cuMemCreate", "cuMemMap", "cuModuleLoadData", "cuEventCreate",
                       "cuStreamCreateWithPriority", "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize",
                       "cuGraphInstantiateWithParams", "cuStreamBeginCapture", "cuMemcpyHtoD", "cuMemcpyDtoH"}
MARK = "cuCtxGetStreamPriorityRange"


class Embedded(unittest.TestCase):
    """Streams, memory and context of the application (embed_job.c)."""

    def setUp(self):
        if findings(with_driver()[0])["nvrtc"][0] != "ok":
            self.skipTest("no NVRTC")

    def job(self, *words, **more):
        env, path = with_driver(XDG_CACHE_HOME=CACHE, **more)
        done = subprocess.run([EMBED_JOB, *words], env=env, capture_output=True, text=True, check=False,
                              timeout=common.HARD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("context changed", done.stdout)
        record = lines_of(path)
        marks = [i for i, line in enumerate(record) if line == MARK]
        return done.stdout, record, record[marks[-2]:marks[-1]] if len(marks) > 1 else []

    def test_exchange_is_on_the_applications_stream(self):
        for words in (("exchange",), ("exchange", "peal"), ("exchange", "two")):
            out, record, steady = self.job(*words)
            self.assertEqual(out.count("start: ok"), 4, out)
            self.assertEqual(out.count("wait: ok"), 4, out)
            self.assertIn("on Stand-in 0000:01:00.0", out)
            self.assertEqual(only(steady, NOT_IN_STEADY_STATE), [])
            # every launch is on a stream of the application, three rounds on the first, one on the other
            launches = steady.count("cuLaunchKernel")
            first, other = steady.count("app1 cuLaunchKernel"), steady.count("app3 cuLaunchKernel")
            self.assertEqual((first + other, first), (launches, 3 * other))
            self.assertGreater(other, 0)
            # the other stream waits before anything else is put onto it
            others = [line for line in steady if line.startswith("app3")]
            self.assertEqual(others[0], "app3 cuStreamWaitEvent")
            self.assertEqual(others.count("app3 cuStreamWaitEvent"), 1)
            self.assertEqual(left(record), set())

    def test_exchange_by_each_transport(self):
        """Two processes, which a launcher starts."""
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun")
        for lacks, taken in (("none", "p2p:vmm"), ("vmm", "p2p:ipc"), ("peer", "shm")):
            env, path = with_driver(XDG_CACHE_HOME=CACHE, devices=2, STANDIN_LACKS=lacks)
            done = subprocess.run([*common.mpirun(2), EMBED_JOB, "exchange"], env=env, capture_output=True, text=True,
                                  check=False, timeout=common.HARD_LIMIT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stdout.count(f"2 messages, 16 bytes by {taken}, "), 2, done.stdout)
            self.assertEqual(done.stdout.count("destroy: ok"), 2, done.stdout)
            record = lines_of(path)
            self.assertEqual((bad(record), left(record)), ([], set()))

    def pair(self, what, **more):
        env, path = with_driver(XDG_CACHE_HOME=CACHE, **more)
        done = subprocess.run([EMBED_PAIR, what], env=env, capture_output=True, text=True, check=False,
                              timeout=common.HARD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        record = lines_of(path)
        self.assertEqual([line for line in record if line.startswith("bad")], [])
        self.assertEqual(left(record), set(), done.stdout)
        return done.stdout, record

    def test_processes_that_share_a_device(self):
        """The streams' own waits: every one has a mark before and behind it."""
        out, record = self.pair("rounds")
        for process in (0, 1):
            self.assertIn(f"process {process}: ok, ok", out)
        waits = record.count("cuStreamWaitValue64")
        self.assertGreaterEqual(waits, 2 * 8)
        self.assertGreater(record.count("cuStreamWriteValue64"), 2 * waits)

    def test_processes_of_two_hosts(self):
        """What streams store is posted, and what comes lets their waits go, over every round."""
        for what, told in (("rounds", "ok, ok"), ("abort", "(ok|wrong result), wrong result")):
            out, _ = self.pair(what, PEAL_TEST_HOSTS="2", devices=2)
            self.assertRegex(out, f"process 0: {told}")

    def test_neighbour_that_does_not_come(self):
        """The deadline ends the stream's wait and names rank and edge, by memory operation and in a kernel."""
        for more in ({}, {"devices": 2, "STANDIN_RECORDS": "1:1"}):
            out, _ = self.pair("late", **more)
            self.assertRegex(out, r"process 0: (ok|deadline passed), deadline passed")
            self.assertRegex(out, r"rank \d, step \d+: `.*` waits for .*exchange .*(1->0|0->1).*, message \d+ .*\[E661\]")
        self.assertIn("rank 0, step 1:", self.pair("late")[0])

    def test_abort_while_a_stream_waits(self):
        """Long before the deadline: what waits is let go, and the first cause is told."""
        out, _ = self.pair("abort")
        self.assertRegex(out, r"process 0: (ok|wrong result), wrong result")

    def test_memory_decides(self):
        out, record, _ = self.job("memory")
        self.assertIn("ordinary: ok\nexchange of 1 field, 1 process", out)
        self.assertIn("stream on the host: wrong usage", out)
        self.assertRegex(out, r"field 0 has lent memory .* ordinary host memory, unknown to the GPU \[E365\]")
        self.assertIn("there is no backend 'gpu' [E380]", out)
        self.assertEqual(left(record), set())

    def test_misuse_is_told_and_mended(self):
        out, record, _ = self.job("misuse", STANDIN_LACKS="capture")
        words = [line for line in out.splitlines() if re.match(r"\w+: (ok|wrong usage)$", line)]
        self.assertEqual(words, ["create: ok", "captured: wrong usage", "start: ok", "again: wrong usage", "wait: ok",
                                 "destroy: ok"])
        self.assertIn("[E386]", out)
        self.assertEqual(left(record), set())

    def test_plan_follows_stream_and_event(self):
        for mode in ("stream", "graph", "sync"):
            out, record, steady = self.job("plan", mode)
            self.assertEqual([out.count(f"{word}: ok") for word in ("start", "event", "wait")], [2, 2, 2], out)
            self.assertIn("event too early: wrong usage", out)
            # each start: an event on the application's stream; the origin waits for it and for the event given
            first = "cuGraphLaunch" if mode == "graph" else "cuLaunchKernel"
            tied = only(steady, {"app1 cuEventRecord", "cuStreamWaitEvent", first})
            starts = [i for i, line in enumerate(tied) if line == "app1 cuEventRecord"]
            self.assertEqual(len(starts), 2)
            for i in starts:
                self.assertEqual(tied[i + 1:i + 3], ["cuStreamWaitEvent"] * 2)
                self.assertEqual(tied[i + 3], first)
            self.assertNotIn("app1 cuLaunchKernel", steady)
            if mode == "graph":  # the end is recorded before the host looks for the replay's
                ends = only(steady, {"cuGraphLaunch", "cuEventRecord", "cuEventQuery"})
                at = ends.index("cuGraphLaunch")
                # the replay's, the start's, and what other lanes follow
                self.assertEqual(ends[at:at + 5], ["cuGraphLaunch", *["cuEventRecord"] * 3, "cuEventQuery"])
            self.assertEqual(only(steady, NOT_IN_STEADY_STATE), [])
            self.assertEqual(left(record), set())

    def test_serial_waits_first(self):
        out, record, _ = self.job("plan", "serial")
        self.assertIn("event: ok", out)
        calls = only(record, {"cuStreamSynchronize", "cuEventSynchronize", "cuEventRecord"})
        self.assertEqual(calls[-6:], ["cuStreamSynchronize", "cuEventSynchronize", "cuEventRecord"] * 2)
        self.assertEqual(left(record), set())

    def test_a_function_ends_the_thread(self):
        out, record, _ = self.job("own", "ended")
        self.assertIn("ended: cuda, peer lost, calls 0 and 2, wrong 0", out)
        self.assertIn("the thread that drives the device ended in the middle of the run", out)
        self.assertEqual(left(record), set())

    def test_own_work(self):
        """CUDA functions and `enqueue`: where they run, how often they are called, what refuses them."""
        out, record, _ = self.job("own")
        found = dict(re.findall(r"^([\w ]+): (\w+, [\w ]+, calls \d+ and \d+, wrong \d+(?:, threads \d+, deaf \d)?)$", out, re.M))
        # a graph of 4 steps calls while it is captured, all else while it runs
        for name, words in (("auto", "4 and 0"), ("graph", "4 and 0"), ("stream", "0 and 8"), ("sync", "0 and 8"),
                            ("serial", "0 and 8"), ("auto counts", "0 and 8")):
            self.assertEqual(found[name], f"cuda, ok, calls {words}, wrong 0", name)
        # A plan keeps the thread that drives the device; between starts no signal of the application is for it.
        self.assertEqual(found["starts"], "cuda, ok, calls 0 and 6, wrong 0, threads 1, deaf 1")
        self.assertEqual(found["refused"], "cuda, wrong result, calls 0 and 2, wrong 0")
        for name in ("counts", "until", "fused", "host", "both"):
            self.assertEqual(found[name], "none, unsuitable environment, calls 0 and 0, wrong 0", name)
        for name in ("blocks", "reads", "threads"):
            self.assertEqual(found[name], "none, error in the spec, calls 0 and 0, wrong 0", name)
        for message in ("mode graph cannot run: an argument of the application's CUDA function changes [E454] [E355]",
                        "mode graph cannot run: with `until` the application's CUDA functions cannot be skipped [E454] [E355]",
                        "mode fused cannot run: one kernel cannot call the application's CUDA functions",
                        "the graph would run on the host: the host backend was asked for [E387]",
                        "the graph would run on the host: another task is a function of the host [E387]",
                        "its function allows blocks of 32 threads, not of 256 [E666]",
                        "task 'put': an argument reads a buffer [E666]", "a block of 2000 threads [E047]",
                        "rank 0, step 1: `enqueue` of task 'put' returned: wrong result [E667]"):
            self.assertIn(message, out)
        self.assertEqual(left(record), set())

    @common.share.sometimes(3, 1)
    def test_every_failing_call(self):
        """Whatever fails, the context comes back and nothing is left."""
        for words in (("exchange", "two"), ("plan", "stream")):
            self.job(*words)
            seen = {}
            for name in [line for line in self.job(*words)[1] if re.match(r"cu\w+$", line)]:
                seen[name] = seen.get(name, 0) + 1
                if name in ("cuCtxSetCurrent", "cuCtxGetCurrent", MARK, "cuDevicePrimaryCtxRetain", "cuInit",
                            "cuDriverGetVersion", "cuDeviceGetCount") or \
                        seen[name] > (1 if name in OPTIONAL else 2):
                    continue
                with self.subTest(words=words, call=name, number=seen[name]):
                    record = self.job(*words, STANDIN_FAIL=f"{name}:{seen[name]}")[1]
                    self.assertIn(f"{name} fails", record)
                    self.assertLessEqual(left(record), GIVES_BACK.get(name, set()))


if __name__ == "__main__":
    common.main()
