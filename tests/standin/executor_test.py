#!/usr/bin/env python3
# How the executors of sync, stream and graph drive a GPU, on a stand-in of the driver: which calls, in
# which order, what happens when one fails or nothing ends. What a GPU computes is not shown here.
#
#   executor_test.py STANDIN GPU_TRIALS SPECS
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

for folder in ("tools", "share"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import common  # noqa: E402
import share  # noqa: E402

STANDIN, TRIALS, SPECS = sys.argv[1:4]
ROOT = os.environ["PEAL_ROOT"]
del sys.argv[1:4]
SCRATCH = tempfile.TemporaryDirectory()
CACHE = os.path.join(SCRATCH.name, "cache")  # of a stand-in of NVRTC: not what other tests keep
MODES = ("sync", "stream", "graph")
FEW = 4 if "ASAN_OPTIONS" in os.environ else 1  # of many like cases: a sanitizer makes each start of a job ten times as long
TRANSPORTS = ("p2p:vmm", "p2p:ipc", "shm")
LOWERINGS = ("", "lanes=2", "signal=kernel,copy=engine", "signal=memop,copy=engine,lanes=2", "signal=memop")

# What may be called between start and the end of the run.
RUNNING = {"cuLaunchKernel", "cuGraphLaunch", "cuEventRecord", "cuEventQuery", "cuStreamQuery", "cuStreamWaitEvent",
           "cuStreamWaitValue64", "cuStreamWriteValue64", "cuMemcpyAsync", "cuMemcpy3DAsync", "cuCtxSetCurrent",
           "cuCtxGetCurrent"}
# Calls that give back, and what stays when one of them fails.
GIVES_BACK = {"cuMemUnmap": {"mapping"}, "cuMemAddressFree": {"range"}, "cuMemRelease": {"handle"},
              "cuMemFreeHost": {"pinned"}, "cuMemFree": {"memory"}, "cuDevicePrimaryCtxRelease": {"context"},
              "cuStreamDestroy": {"stream"}, "cuEventDestroy": {"event"}, "cuModuleUnload": {"module"},
              "cuGraphDestroy": {"graph"}, "cuGraphExecDestroy": {"executable"},
              "cuMemHostUnregister": {"registered"}, "cuIpcCloseMemHandle": {"opened"}}
# What peal can do without.
OPTIONAL = {"cuDeviceGetName", "cuDeviceGetPCIBusId", "cuDeviceGetUuid", "cuDeviceGetAttribute", "cuCtxGetCurrent",
            "cuMemGetInfo", "cuCtxSetCurrent", "cuPointerGetAttribute"}


class Run:
    """One trial in a job of its own."""

    def __init__(self, processes=1, env=None, **trial):
        path = tempfile.mkdtemp(dir=SCRATCH.name)
        words = {"name": "t", "spec": os.path.join(SPECS, "ring.yaml"), "ranks": 2, "mode": "stream", "backend": "cuda",
                 "deadline": "5", "set": ["n=4", "steps=200"], **trial}
        lines = [f"{key}={item}" for key, value in words.items() for item in (value if isinstance(value, list) else [value])
                 if item != ""]
        with open(os.path.join(path, "list"), "w", encoding="utf-8") as file:
            file.write("\t".join(lines) + "\n")
        self.record_path = os.path.join(path, "record")
        begin = time.monotonic()
        self.job = subprocess.Popen([TRIALS, str(processes), path, os.path.join(path, "list")], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_RECORD=self.record_path,
                                                           XDG_CACHE_HOME=CACHE,
                                                           **(env or {})))
        try:
            self.out, self.err = self.job.communicate(timeout=common.HARD_LIMIT)
        except subprocess.TimeoutExpired:
            self.job.kill()
            self.job.communicate()
            raise
        self.seconds, self.code = time.monotonic() - begin, self.job.returncode
        self.record = []
        if os.path.exists(self.record_path):  # else it was refused before it had asked the driver anything
            with open(self.record_path, encoding="ascii") as file:
                self.record = [line.strip() for line in file]
        ended = [json.loads(line) for line in self.out.splitlines() if '"status"' in line]
        self.result = ended[-1] if ended else {"status": "none", "messages": []}

    def bad(self):
        return [line for line in self.record if line.startswith("bad")]

    def left(self):
        return {line.split()[1] for line in self.record if line.startswith("left")}

    def running(self):
        """The calls between the last that prepares the run and the first that ends it."""
        first = max(i for i, line in enumerate(self.record) if line == "cuStreamSynchronize") + 1
        if "cuLaunchCooperativeKernel" in self.record:  # when the plan is made, without work
            first = self.record.index("cuLaunchCooperativeKernel") + 1
        ends = ("cuMemcpyDtoH", "cuEventDestroy", "cuGraphExecDestroy")
        last = next(i for i, line in enumerate(self.record) if i > first and line in ends)
        return self.record[first:last]


class Executor(unittest.TestCase):
    def check_clean(self, run):
        self.assertEqual((run.code, run.result["status"]), (0, "ok"), run.err)
        self.assertEqual(run.bad(), [])
        self.assertEqual(run.left(), set())

    def test_order(self):
        """No event is waited for before it is recorded, captures are joined, and only what launches,
        records and looks is called while a plan runs."""
        for mode in MODES:
            for lower in LOWERINGS:
                with self.subTest(mode=mode, lower=lower):
                    run = Run(mode=mode, lower=lower, set=["n=4", "steps=1000"])
                    self.check_clean(run)
                    self.assertLessEqual(set(run.running()), RUNNING)
                    if mode == "graph":
                        self.check_graphs(run)

    def check_graphs(self, run):
        """All graphs are instantiated before the first is launched: the whole one, and some of few steps."""
        first = run.record.index("cuGraphLaunch")
        self.assertIn(run.record[:first].count("cuGraphInstantiateWithParams"), range(1, 50))
        self.assertNotIn("cuGraphInstantiateWithParams", run.record[first:])
        self.assertGreater(run.record.count("cuGraphLaunch"), 1)

    def test_ranks_in_the_kernel_that_stays(self):
        """All ranks of the process are one launch a run, and no stream waits while it is under way. The kernel is launched
        once before, without work, which nobody waits for."""
        for ranks in (1, 3):
            run = Run(mode="fused", ranks=ranks, lower="steps=8", set=["n=4", "steps=1000"])
            self.check_clean(run)
            self.assertLessEqual(set(run.running()), RUNNING | {"cuLaunchCooperativeKernel"})
            self.assertEqual(run.record.count("cuLaunchCooperativeKernel"), 2)
            # Its stream is not ordered behind the copy of the lists, which returns once it has been staged.
            before = run.record[:run.record.index("cuLaunchCooperativeKernel")]
            copied = len(before) - before[::-1].index("cuMemcpyHtoD")
            self.assertIn("cuCtxSynchronize", before[copied:])

    def test_starts(self):
        """Several starts, of 0 steps and across replays: graphs are instantiated once."""
        for cut in ("0,-1", "1,0,63,64,-1", "65,-1"):
            for lower in ("", "lanes=2"):
                with self.subTest(cut=cut, lower=lower):
                    run = Run(mode="graph", starts=cut, lower=lower)
                    self.check_clean(run)
                    self.check_graphs(run)
                    self.assertEqual(run.result["steps"], 200)

    def test_spare_slots_have_no_memory(self):
        """Rows of 800 KB go in place: with the slots that they could have had 16 MiB would not be enough."""
        trial = {"spec": f"{os.environ['PEAL_ROOT']}/samples/jacobi2d/jacobi2d.yaml", "lower": "signal=memop", "set": ["nx=200000", "ny=8", "steps=3"]}
        for transport in ("p2p:vmm", "p2p:ipc"):
            self.check_clean(Run(2, env={"STANDIN_BYTES": str(16 << 20)}, transport=transport, **trial))

    def test_processes_wait_for_each_other(self):
        """Memory operations are what the stand-in really waits for: two processes, many ranks in each."""
        for ranks in (2, 6):
            for mode in ("sync", "stream"):
                for lower in ("signal=memop", "signal=memop,copy=engine,lanes=2"):
                    with self.subTest(ranks=ranks, mode=mode, lower=lower):
                        self.check_clean(Run(2, ranks=ranks, mode=mode, lower=lower))

    def test_streams_that_share_a_queue(self):
        """More streams than the device has queues: what waits for another process comes behind all that one of
        this process may wait for, whichever rank has sent it."""
        for spec, ranks, lower, queues in (("ring", 24, "signal=memop,lanes=2", 8),
                                           ("chained", 6, "signal=memop,lanes=2", 2)):
            with self.subTest(spec=spec, ranks=ranks, queues=queues):
                self.check_clean(Run(2, spec=os.path.join(SPECS, f"{spec}.yaml"), ranks=ranks, set=["n=4", "steps=20"],
                                     lower=lower, deadline="2", env={"STANDIN_QUEUES": str(queues)}))

    def test_transports(self):
        """Flags, credits and staging are where both processes have them, by whatever address."""
        for transport in TRANSPORTS:
            for spec, sets in (("ring", ["n=4", "steps=200"]), ("chain", ["n=4", "steps=50"]), ("chained", ["steps=20"])):
                for ranks, mode, lower in ((2, "stream", "signal=memop"), (5, "sync", "signal=memop,copy=engine,lanes=2")):
                    with self.subTest(transport=transport, spec=spec, ranks=ranks):
                        run = Run(2, spec=os.path.join(SPECS, f"{spec}.yaml"), ranks=ranks, set=sets, mode=mode,
                                  lower=lower, transport=transport, first=str(2**64 - 4))
                        self.check_clean(run)
                        self.assertEqual(run.result["transport"], transport)

    def test_missing_signal_by_transport(self):
        """All waits are let go wherever their words are."""
        for transport in TRANSPORTS:
            run = Run(2, lower="signal=memop", drop="write.0@1", deadline="0.5", transport=transport)
            self.assertEqual(run.code, 6, run.err)
            self.assertRegex(run.err, r"`exchange u` waits for exchange u@13 .*\[E661\]")
            self.assertEqual((run.bad(), run.left()), ([], set()))

    def test_every_failing_call_of_two_processes(self):
        """Whatever fails in one of them while the path is tried out, or in both later: both end, and everything
        else is given back."""
        of_handles = ("cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemExportToShareableHandle", "cuMemUnmap",
                      "cuMemImportFromShareableHandle", "cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree")
        for transport, calls in (("p2p:vmm", of_handles),
                                 ("p2p:ipc", ("cuMemAlloc", "cuMemsetD8", "cuIpcGetMemHandle", "cuIpcOpenMemHandle",
                                              "cuIpcCloseMemHandle", "cuMemFree")),
                                 ("shm", ("cuMemHostRegister", "cuMemHostGetDevicePointer", "cuMemHostUnregister",
                                          "cuStreamWaitValue64", "cuStreamWriteValue64"))):
            words = {"mode": "stream", "lower": "signal=memop", "transport": transport, "set": ["n=4", "steps=20"]}
            for name in share.taken(calls, FEW):
                for where in (f"{name}:1@1", f"{name}:2"):
                    with self.subTest(transport=transport, fails=where):
                        run = Run(2, env={"STANDIN_FAIL": where}, **words)
                        self.assertIn(f"{name} fails", run.record)
                        self.assertLessEqual(run.left(), GIVES_BACK.get(name, set()))
                        if name not in GIVES_BACK:
                            self.assertIn(run.result["status"], ("device error", "unsuitable environment"), run.err)

    def test_chained_exchanges(self):
        """Two exchanges a step: the host must not wait in one rank's turn for what depends on another's."""
        for mode in ("sync", "stream"):
            for lower in ("signal=memop", "signal=memop,lanes=2"):
                with self.subTest(mode=mode, lower=lower):
                    self.check_clean(Run(2, spec=os.path.join(SPECS, "chained.yaml"), ranks=4, set=["steps=20"],
                                         mode=mode, lower=lower))

    def test_rows_keep_their_order(self):
        """Rows of single steps and of replays, one a step."""
        for cut in ("1,-1", "3,70,-1", "65,1,-1"):
            with self.subTest(cut=cut):
                run = Run(spec=os.path.join(SPECS, "chained.yaml"), mode="graph", set=["steps=500"], starts=cut, rows=1)
                self.check_clean(run)
                self.assertGreater(run.record.count("cuGraphLaunch"), 1)
                self.assertEqual([row["step"] for row in run.result["rows"]], list(range(500)))

    def test_flags_after_readers(self):
        """A message tells its receiver that a halo has been read: its flag comes after all tiles that do so,
        and not only after those that it consists of."""
        for mode in ("stream", "graph"):
            with self.subTest(mode=mode):
                run = Run(4, spec=os.path.join(SPECS, "around.yaml"), ranks=4, mode=mode, set=["steps=4"],
                          env={"STANDIN_FLAGS": "1", "STANDIN_DEVICES": "4"})
                self.check_clean(run)
                # to the corner, along y, along x: all in place
                flags = {line for line in run.record if line.startswith("flags boxes=4")}
                self.assertEqual(flags, {"flags boxes=4 mirrors=8 writes=f,f,f peal_task_1"})

    def test_who_sends(self):
        """Blocks that send all themselves have a kernel of their own where they are more than one wave."""
        for rows, kernel in ((16, "peal_task_1_no_reduction"), (400, "peal_task_1_self_sending_no_reduction")):
            with self.subTest(rows=rows):
                run = Run(2, spec=os.path.join(common.ROOT, "samples/jacobi2d/jacobi2d.yaml"),
                          set=["nx=512", f"ny={2 * rows + 2}", "steps=4", "report=100"],
                          env={"STANDIN_FLAGS": "1", "STANDIN_DEVICES": "2", "STANDIN_SMS": "4"})
                self.check_clean(run)
                kernels = {line.split()[-1] for line in run.record if line.startswith("flags")} - {"peal_signal", "peal_copy"}
                self.assertIn(kernel, kernels)
                self.assertEqual(any("own" in name for name in kernels), "own" in kernel)

    def test_links_are_woken(self):
        """A plan's last act is to read memory of other GPUs, if it stores there."""
        for processes, transport, waits in ((2, "p2p:vmm", 2), (2, "p2p:ipc", 2), (2, "shm", 1), (1, "", 1)):
            with self.subTest(processes=processes, transport=transport):
                run = Run(processes, transport=transport, env={"STANDIN_DEVICES": "2"})
                self.check_clean(run)
                self.assertEqual(run.record.count("cuStreamSynchronize"), processes * waits)
        for number, doing in ((1, "launch kernels for the first time"), (2, "launch from the thread that drives the device, or read the memory of other GPUs")):
            with self.subTest(doing):
                run = Run(2, transport="p2p:vmm", env={"STANDIN_DEVICES": "2", "STANDIN_FAIL": f"cuStreamSynchronize:{number}"})
                self.assertIn(f"cannot {doing}: ", run.err + str(run.result["messages"]))
                self.assertEqual(run.left(), set())
        # What a segment has beyond what is used is mapped by nobody, and here begins a page of its own.
        sizes = ["nx=5000", "ny=5000", "steps=4", "report=100"]
        self.check_clean(Run(2, spec=os.path.join(common.ROOT, "samples/jacobi2d/jacobi2d.yaml"), set=sizes,
                             env={"STANDIN_DEVICES": "2"}))

    def test_flags_of_slices(self):
        """Tiles that are cut along the fourth axis don't send themselves: they would be taken for each other."""
        run = Run(2, spec=os.path.join(SPECS, "slices.yaml"), set=[], env={"STANDIN_FLAGS": "1", "STANDIN_DEVICES": "2"})
        self.check_clean(run)
        flags = {line for line in run.record if line.startswith("flags")}
        self.assertIn("flags boxes=2 mirrors=0 writes=0,0 peal_task_0", flags)  # one of them for the fold
        self.assertFalse([line for line in flags if "mirrors=0" not in line])

    def test_sweeps_in_place(self):
        """Border and rest of a sweep are one launch, and its blocks send what they have stored. Where the kernel does not
        show that, the launch sends if one of its blocks does, or if the message leaves before the rest; else one more a
        sweep does, where border and rest by themselves would be two more."""
        launches = {}
        for cut, behind, plain in ((1, 0, 0), (2, 0, 0), (2, 1, 0), (1, 0, 1), (2, 0, 1), (2, 1, 1)):
            with self.subTest(cut=cut, behind=behind, plain=plain):
                run = Run(2, spec=os.path.join(SPECS, "sweeps.yaml"), mode="graph", set=[f"cut={cut}", f"behind={behind}", f"plain={plain}", "steps=9"],
                          env={"STANDIN_FLAGS": "1", "STANDIN_DEVICES": "2"})
                self.check_clean(run)
                sends = (cut, behind, plain) != (2, 0, 0)
                flags = [line for line in run.record
                         if line.startswith("flags") and line.split()[-1] in ("peal_task_1", "peal_task_2")]
                self.assertEqual(bool(flags), sends)
                self.assertEqual({line.split()[2] for line in flags}, {f"mirrors={plain}"} if sends else set())
                launches[cut, behind, plain] = run.record.count("cuLaunchKernelEx")
        self.assertTrue(launches[1, 0, 0] < launches[2, 0, 0] < 1.5 * launches[1, 0, 0], launches)
        self.assertTrue(launches[1, 0, 1] == launches[2, 0, 1] == launches[1, 0, 0], launches)

    def test_rows_before_replays(self):
        """Rows of single steps have been taken before a replay's rows come to the same memory."""
        run = Run(spec=os.path.join(SPECS, "chained.yaml"), mode="graph", set=["steps=500"], starts="3,-1", rows=1)
        self.check_clean(run)
        before = run.record[:run.record.index("cuGraphLaunch")]
        last = max(i for i, line in enumerate(before) if line == "cuLaunchKernel")
        self.assertGreater(before[last:].count("cuEventQuery"), 1)

    def test_decisions(self):
        """Conditions of the run: no call that others do not make, and no verdict is awaited."""
        for spec, sets, lower in (("when", [], "steps=5"), ("inner", [], ""), ("nested", [], "steps=5"),
                                  ("until", ["late=3", "every=2"], "")):
            with self.subTest(spec=spec, lower=lower):
                run = Run(spec=os.path.join(SPECS, spec + ".yaml"), mode="graph", lower=lower, set=sets)
                self.check_clean(run)
                self.assertLessEqual(set(run.running()), RUNNING)
                self.assertGreater(run.record.count("cuGraphLaunch"), 1)

    def test_while(self):
        """The steps are the body of a conditional node, launched once; what the driver refuses is unrolled."""
        spec = os.path.join(SPECS, "until.yaml")
        run = Run(spec=spec, mode="graph", lower="until=while", set=[])
        self.check_clean(run)
        self.assertEqual(run.result["messages"], [])
        self.assertEqual([run.record.count(name) for name in ("cuGraphConditionalHandleCreate", "cuGraphAddNode",
                                                              "cuStreamBeginCaptureToGraph", "cuStreamBeginCapture",
                                                              "cuGraphLaunch")], [1, 1, 1, 0, 1])
        whole = Run(spec=spec, mode="graph", set=[])
        self.assertEqual(whole.record.count("cuStreamBeginCapture"), 1)
        self.assertGreater(whole.record.count("cuGraphLaunch"), 1)
        for call in ("cuGraphConditionalHandleCreate:1", "cuStreamEndCapture:1", "cuGraphInstantiateWithParams:1",
                     "cuModuleLoadData:3"):
            with self.subTest(call=call):
                run = Run(spec=spec, mode="graph", lower="until=while", set=[], env={"STANDIN_FAIL": call})
                self.check_clean(run)
                self.assertIn("`until` is not a WHILE node here", run.result["messages"][0])
                self.assertEqual(run.record.count("cuGraphLaunch"), whole.record.count("cuGraphLaunch"))
        # `print`, and what the command says
        found, _, err = common.peal("run", os.path.join(SPECS, "nested.yaml"), "--backend", "cuda", "--mode", "graph",
                                    "--lower", "until=while", env=common.environment(LD_LIBRARY_PATH=STANDIN))
        self.assertEqual(found, 0, err)
        self.assertRegex(err, r"`print` in the loop, whose rows the host takes between replays.*\[E668\]")

    @share.sometimes(2, 1)
    def test_rare_conditions_leave_the_period(self):
        """Most steps are replayed, whatever the period of what few steps have; a condition of any form is as good."""
        spec = ("peal: 1\nname: rare\nbuffers: {d: {}, e: {keep: true}, n: {type: i64}, m: {type: i64, keep: true}}\nrepeat: %d\nstep:\n"
                "  - {set: n, value: step}\n  - {set: d, value: step + rank}\n"
                "  - {send: n, to: 1, when: rank == 0}\n  - {recv: m, from: 0, when: rank == 1}\n"
                "  - {allreduce: {d: sum}, when: %s}\n  - {set: e, value: d, when: %s}\n")
        for steps, when, least in share.taken((
                *((20000, f"step % {report} == 0", least) for report, least in (
                    (100, 0.85), (129, 0.92), (200, 0.95), (256, 0.91), (300, 0.95), (1000, 0.98))),
                (1000, "(step + 1) % 100 == 0", 0.8), (1000, "step == 0", 0.9), (1000, "step >= 10", 0.9), (1000, "step < 2.5", 0.9),
                (1000, "step == 999", 0.9), (1000, "step % 900 == 800", 0.85), (200000, "step >= 40000", 0.19), (10000, "step >= 4500", 0.5), (20, "step == 30", 0),
                (1000, "step % 10 < 3", 0.8), (1000, "step % 128 == 5 or step % 128 == 77", 0.6),
                (1000, "step == 3 or not (step < 900 or step % 50 != 0)", 0.7), (1000, "step % 250 == 0 and rank < 9", 0.8)), FEW):
            for mode in ("graph", "fused"):
                with self.subTest(when=when, mode=mode):
                    found, data, err = common.peal_json("run", "-", "-n", "2", "--processes", "1", "--backend", "cuda", "--mode", mode, "--json",
                                                        stdin=spec % (steps, when, when),
                                                        env=common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_SMS="3"))
                    self.assertEqual(found, 0, err)
                    self.assertEqual(data["modes"][0]["steps"], steps)
                    # A launch of the persistent kernel begins and ends at any step, and there are graphs of few steps: only the
                    # rare ones are single, and here and there one beside them.
                    fewest = 0.97 if least >= (0.8 if mode == "fused" else 0.85) else least
                    self.assertGreaterEqual(data["modes"][0]["steps_replayed"], fewest * steps)

    def test_few_steps_of_many_launches(self):
        """A run that ends before its steps come round is replayed all the same, if its steps have many launches."""
        hpgmg, beyond = f"{common.ROOT}/samples/hpgmg", f"{SPECS}/beyond.yaml"
        sets = ("--set", "n=16", "--set", "vcycles=0", "--set")
        for spec, more, steps, replayed in ((hpgmg, (*sets, "solves=1"), 1, 1), (hpgmg, (*sets, "solves=3"), 3, 3),
                                            (beyond, (), 3, 3), (beyond, ("--set", "n=1"), 1, 0)):
            for mode in ("graph", "fused"):
                with self.subTest(spec=spec, steps=steps, mode=mode):
                    found, data, err = common.peal_json("run", spec, "-n", "2", "--backend", "cuda", "--mode", mode, "--json", *more,
                                                        env=common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_SMS="3", STANDIN_DEVICES="2"))
                    self.assertEqual(found, 0, err)
                    self.assertEqual((data["modes"][0]["steps"], data["modes"][0]["steps_replayed"]), (steps, replayed))

    def test_rare_steps_are_in_the_launch(self):
        """Rare steps are a part of the persistent kernel's launch, with one rank a process, or a graph, and each prints its row once, in its turn."""
        spec = ("peal: 1\nname: rare\nbuffers: {d: {}, n: {type: i64, keep: true}}\nrepeat: 3000\nstep:\n  - {set: n, value: n + step}\n"
                "  - {set: d, value: step + rank}\n  - {allreduce: {d: sum}, when: %s}\n  - {print: {n: n}, when: %s}\n"
                "  - {print: {d: d}, when: step %% 700 == 5}\n")
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_DEVICES="2", STANDIN_SMS="3")
        for when in share.taken(("step % 129 == 0", "step % 300 == 7 or step % 500 == 2", "step == 1 or step >= 2990"), 2):
            for ranks in (1, 2):
                for mode, least in (("fused", 2980), ("graph", 2900)):
                    with self.subTest(when=when, ranks=ranks, mode=mode):
                        found, data, err = common.peal_json("run", "-", "-n", str(ranks), "--backend", "cuda", "--mode", mode, "--json",
                                                            stdin=spec % (when, when), env=env)
                        self.assertEqual(found, 0, err)
                        holds = [step for step in range(3000) for each in (when, "step % 700 == 5") if eval(each, {"step": step})]
                        self.assertEqual([row["step"] for row in data["rows"]], holds)
                        self.assertGreaterEqual(data["modes"][0]["steps_replayed"], least)

    def test_rare_steps_without_room_are_run_singly(self):
        """A step of more kinds of launches than the kernel can have beside those as usual."""
        names = [f"q{i}" for i in range(1100)]
        spec = ("peal: 1\nname: wide\nbuffers: {n: {type: i64, keep: true}, %s}\nrepeat: 400\nstep:\n  - {set: n, value: n + step}\n" %
                ", ".join(name + ": {type: i64, keep: true}" for name in names) +
                "".join(f"  - {{set: {name}, value: {name} + step, when: step == 300}}\n" for name in names) +
                "  - {print: {n: n}, when: step == 300}\n")
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_SMS="3")
        found, data, err = common.peal_json("run", "-", "-n", "1", "--backend", "cuda", "--mode", "fused", "--json", stdin=spec, env=env)
        self.assertEqual(found, 0, err)
        self.assertEqual(([row["step"] for row in data["rows"]], data["modes"][0]["steps_replayed"]), ([300], 399))

    def test_graphs_of_rare_steps_are_bounded(self):
        """A step of many operations, or of more rows than there is room for, is run singly; those behind it are not."""
        spec = ("peal: 1\nname: heavy\nbuffers: {n: {type: i64, keep: true}, m: {type: i64, keep: true}}\nrepeat: 451\nstep:\n"
                "  - {set: n, value: n + step}\n  - {repeat: 20000, when: step == 256, step: [{set: m, value: m + 1}]}\n"
                "  - {repeat: 140, as: k, when: step == 321, step: [{print: {k: k}}]}\n  - {print: {n: n}, when: step == 386}\n")
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_SMS="3")
        found, data, err = common.peal_json("run", "-", "-n", "1", "--backend", "cuda", "--mode", "graph", "--json", stdin=spec, env=env)
        self.assertEqual(found, 0, err)
        self.assertEqual([row["step"] for row in data["rows"]], [321] * 140 + [386])
        self.assertEqual(data["modes"][0]["steps_replayed"], 449)

    def test_samples_as_typed_are_replayed(self):
        """Reports, short runs and odd sizes leave no fast path."""
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_DEVICES="2", XDG_CACHE_HOME=CACHE)
        for sample, graph, fused in (("jacobi2d", 1, 1), ("heat3d", 1, 1), ("hdiff", 0.87, 1), ("halo", 0.97, 0.98), ("denoise", 0, 1)):
            for mode, least in (("graph", graph), ("fused", fused)):
                with self.subTest(sample=sample, mode=mode):
                    found, data, err = common.peal_json("run", os.path.join(common.ROOT, "samples", sample), "-n", "2", "--backend", "cuda",
                                                        "--mode", mode, "--json", env=env)
                    self.assertEqual(found, 0, err)
                    self.assertGreaterEqual(data["modes"][0]["steps_replayed"], least * data["modes"][0]["steps"])

    def test_modes_that_do_not_fit_are_passed_over(self):
        """--mode all says what the device cannot hold in its row, and goes on; alone it is an error."""
        spec = ("peal: 1\nname: long\nfields: {u: {size: [64], halo: 1}}\nbuffers: {n: {type: i64, keep: true}}\nrepeat: 3\nstep:\n"
                "  - repeat: 3000\n    as: k\n    step:\n      - {exchange: u}\n      - {set: n, value: n + k}\n")
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_SMS="3", STANDIN_DEVICES="2")
        for processes in ("1", "2"):
            _, out, err = common.peal("run", "-", "-n", "2", "--processes", processes, "--backend", "cuda", "--mode", "all", stdin=spec, env=env)
            self.assertRegex(out, r"(?m)^fused    cannot run: a period has \d{4,} launches, 4096 fit$")
            self.assertNotIn("E664", err)
        found, _, err = common.peal("run", "-", "-n", "2", "--backend", "cuda", "--mode", "fused", stdin=spec, env=env)
        self.assertEqual(found, 4, err)
        self.assertRegex(err, r"a period has \d{4,} launches, 4096 fit \[E664\]")

    def test_rows_that_do_not_fit(self):
        """Known before the plan is made, by each process; auto goes on."""
        spec = ("peal: 1\nname: rows\nbuffers: {s: {}}\nrepeat: 45\nstep:\n  - {set: s, value: step}\n  - {allreduce: {s: sum}}\n" +
                "".join(f"  - {{print: {{s: s}}, when: step % {n} == 0}}\n" for n in (1, 1, 2, 3, 7)))
        env = common.environment(LD_LIBRARY_PATH=STANDIN, STANDIN_DEVICES="2", XDG_CACHE_HOME=CACHE)
        for mode, expected in (("graph", 4), ("fused", 4), ("auto", 0)):
            found, _, err = common.peal("run", "-", "-n", "2", "--backend", "cuda", "--mode", mode, stdin=spec, env=env)
            self.assertEqual(found, expected, err)
            self.assertEqual("print more than 128 rows: print less often [E664]" in err, expected == 4, err)

    def test_decisions_that_cannot_be(self):
        """What a graph still cannot hold, each with its reason."""
        head = ("peal: 1\nname: step\nparams: {steps: 40}\nkernels: control.c\n"
                "fields: {u: {size: [64], halo: 1}, v: {like: u}}\nbuffers: {k: {type: i64}, j: {type: i64}}\n"
                "topology: {dims: auto, periodic: true}\nsetup: [{task: start, box: u, write: u}]\nrepeat: steps\nstep:\n"
                "  - {set: k, value: (k + 3) % 7}\n")
        damp = ("{exchange: u}, {task: relax, box: u, read: {u: {star: 1}}, write: v}, {swap: [u, v]}, "
                "{set: j, value: (j + 5) % 11}")
        with open(os.path.join(SPECS, "control.c"), encoding="utf-8") as file:
            kernels = file.read()
        cases = (
                (f"  - {{repeat: 1, when: k > 3, step: [{damp}]}}\n", "", "swaps under a `when` that reads a buffer"),
                (f"  - {{repeat: 4, until: j > 3, step: [{damp}]}}\n", "", "may end where its `swap` has not come round"),
                (f"  - {{repeat: 5, until: j > 3, every: 2, step: [{damp}]}}\n", "", "may end where a `swap` has not come"),
                (f"  - {{repeat: 4, as: i, until: j > 3, every: 2, lag: step, step: [{damp}]}}\n", "",
                 "a loop whose length depends on the step"),
                (f"  - {{repeat: 4, as: i, until: j > 3, every: 2, lag: step % 2, step: [{damp}]}}\n", "", "a `lag` that changes"),
                (f"  - {{repeat: 4, until: j > 3, every: 2, lag: 300, step: [{damp}]}}\n", "", "a `lag` that changes"),
                (f"  - {{repeat: 400000, until: j > 3, every: 2, step: [{damp}]}}\n", "", "more than 262144 operations"),
                ("  - {exchange: u}\n  - {set: j, value: 1, when: step % 3001 % 2 == 0}\n", "", "conditions on the step are met too often"),
                ("  - {set: j, value: 1, when: (step * 0.5) % 3 == 0}\n", "", "a condition on the step without a period"),
                ("  - {repeat: 2, as: i, step: [{set: j, value: 1, when: (step + i) % 3001 == 0}]}\n", "", "compares the step and an inner counter"),
                ("  - {exchange: u, when: k > 3}\n  - {task: relax, box: u, read: {u: {star: 1, stale: ok}}, write: v}\n"
                 "  - {task: accept, box: u, read: v, update: u, args: 0.5}\n", "copy=engine", "needs copy kernels"))
        folder = common.folder_of({"control.c": kernels, **{f"step{i}.yaml": head + text for i, (text, _, _) in enumerate(cases)}},
                                  SCRATCH.name)
        for i, (_, lower, words) in enumerate(cases):
            with self.subTest(words=words, lower=lower):
                run = Run(spec=os.path.join(folder, f"step{i}.yaml"), mode="graph", lower=lower, set=[])
                self.assertEqual(run.result["status"], "unsuitable environment", run.err)
                self.assertIn(words, run.result["messages"][-1])
                self.assertEqual((run.bad(), run.left()), ([], set()))

    def test_missing_signal(self):
        """A WRITE is left out: the message names rank, step and edge, and all waits are let go."""
        for lower in ("signal=memop", "signal=memop,lanes=2"):
            run = Run(2, lower=lower, drop="write.0@1", deadline="0.5")
            self.assertEqual(run.code, 6, run.err)
            self.assertRegex(run.err, r"rank \d, step [01]: `exchange u` waits for exchange u@13 \d->\d, message [12].*\[E661\]")
            self.assertEqual(run.bad(), [])
            self.assertEqual(run.left(), set())

    def test_blocks_of_the_kernel_that_stays(self):
        """One a tile and one a service, or one an SM: borders as thick as the schedule's tiles, and a rare measurement, ask for no more."""
        for sample, sizes, blocks in (("jacobi2d", ["nx=256", "ny=256"], {131, 132}), ("jacobi2d", ["nx=1024", "ny=1024"], {132}),
                                      ("hdiff", ["steps=100"], {132}), ("jacobi2d", ["nx=2048", "ny=2048"], {396})):
            with self.subTest(sample=sample, sizes=sizes):
                run = Run(2, mode="fused", spec=os.path.join(ROOT, "samples", sample, f"{sample}.yaml"), set=sizes,
                          env={"STANDIN_DEVICES": "2", "STANDIN_GRIDS": "1"})
                self.check_clean(run)
                self.assertEqual({int(line.split()[1]) for line in run.record if line.startswith("grid ")}, blocks)

    def test_nothing_ends(self):
        """A launch that never ends: the deadline passes, and no call is made that would not return."""
        for mode, number, words in (("serial", 4, "task 'relax' of rank"), ("sync", 40, "no progress for 0.5 s in what"),
                                    ("stream", 60, "no progress for 0.5 s in what"),
                                    ("graph", 0, "in the replay of steps 0 to")):
            with self.subTest(mode=mode):
                if mode == "graph":  # its first replay
                    whole = Run(mode=mode).record
                    number = whole[:whole.index("cuGraphLaunch")].count("cuLaunchKernel") + 1
                leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # what the device holds is left
                run = Run(mode=mode, deadline="0.5", env={"STANDIN_STUCK": str(number), "ASAN_OPTIONS": leaks})
                self.assertEqual(run.code, 6, run.err)
                self.assertIn(words, run.err)
                self.assertEqual(run.bad(), [])
                self.assertLess(run.seconds, 30)

    def refused(self, spec, code, number, words, *more, **env):
        found, _, err = common.peal("run", spec, "--backend", "cuda", "--mode", "stream", *more,
                                    env=common.environment(**{"LD_LIBRARY_PATH": STANDIN, "XDG_CACHE_HOME": CACHE, **env}))
        self.assertEqual(found, code, err)
        self.assertRegex(err, f"(?s)({words}).*\\[{number}\\]")

    def test_what_the_device_records(self):
        """An expression without a value, a wait that took too long: told once, with rank, step and place."""
        for mode in ("sync", "stream"):
            run = Run(mode=mode, env={"STANDIN_RECORDS": "2:20"})
            self.assertEqual(run.result["status"], "error in the spec", run.err)
            self.assertRegex(run.err, r"rank \d, step \d+: an expression of `.*` overflowed or divided by zero.*\[E662\]")
            self.assertEqual(run.left(), set())
            run = Run(2, mode=mode, env={"STANDIN_DEVICES": "2", "STANDIN_RECORDS": "1:22"})
            self.assertEqual(run.code, 6, run.err)
            self.assertRegex(run.err, r"rank \d, step \d+: `exchange u` waits for exchange u@13 \d->\d, message \d.*\[E661\]")
            self.assertEqual(run.left(), set())

    def test_refusals(self):
        """What cannot be, with its number."""
        run = Run(lower="signal=smoke")
        self.assertEqual((run.code, run.result["status"]), (0, "wrong usage"), run.err)
        self.assertIn("'signal=smoke' is no lowering", run.result["messages"][0])
        cg = os.path.join(SPECS, "../../../samples/cg/cg.yaml")
        env = common.environment(LD_LIBRARY_PATH=STANDIN, XDG_CACHE_HOME=CACHE)
        for words, code, number in ((("--lower", "signal=smoke", "--mode", "stream"), 2, "E665"),
                                    (("--lower", "signal=memop", "--mode", "graph"), 4, "E664")):
            found, _, err = common.peal("run", cg, "--backend", "cuda", "--set", "n=16", *words, env=env)
            self.assertEqual(found, code, err)
            self.assertIn(f"[{number}]", err)
        ring = os.path.join(SPECS, "ring.yaml")
        self.refused(ring, 4, "E640", "NVRTC is too old: it has no nvrtc",
                     LD_LIBRARY_PATH=os.path.join(STANDIN, "..", "nvrtc") + ":" + STANDIN)
        self.refused(ring, 7, "E642", "cannot load the compiled kernels: CUDA_ERROR_OUT_OF_MEMORY",
                     STANDIN_FAIL="cuModuleLoadData:1+")
        self.refused(os.path.join(SPECS, "many.yaml"), 3, "E644", "task `mark` has 4900000000 tiles on rank 0")
        for processes, words, why in ((2, {}, "processes share a GPU, and the persistent kernel"),
                                      (1, {"ranks": 27, "set": ["n=4", "steps=1"]}, "27 ranks of a process share a GPU, its kernel has room for 26"),
                                      (1, {"ranks": 3, "lower": "order=paper"}, "with order=paper a kernel has one rank, and 3 ranks of a process"),
                                      (1, {"ranks": 3, "lower": "blocks=1"}, "3 ranks of a process share a GPU, which has room for 2 of its kernel's blocks")):
            run = Run(processes, mode="fused", env={"STANDIN_DEVICES": "1", "STANDIN_SMS": "2"}, **words)
            self.assertEqual(run.result["status"], "unsuitable environment", run.err)
            self.assertIn(f"mode fused cannot run this: {why}", " ".join(run.result["messages"]))
            self.assertEqual(run.left(), set())
        run = Run(env={"STANDIN_FAIL": "cuEventRecord:5"})
        self.assertEqual(run.code, 7)
        self.assertIn("[E660]", run.err)

    def test_bundles_that_cannot_be_had(self):
        """Without their kernel, or memory for more of them, launches are nodes of their own, and it is said (E671)."""
        words = {"mode": "graph", "spec": os.path.join(SPECS, "inner.yaml"), "ranks": 1, "lower": "bundle=64",
                 "set": ["n=1", "steps=200"]}

        def launches(run):
            return run.record.count("cuLaunchKernel") + run.record.count("cuLaunchKernelEx")
        Run(**words)  # the kernels are compiled now
        whole = Run(**words)
        alone = Run(**{**words, "lower": "bundle=0"})
        for run in (whole, alone):
            self.check_clean(run)
            self.assertEqual(run.result["messages"], [])
        units, pieces = (whole.record.count(name) for name in ("cuModuleLoadData", "cuMemAlloc"))
        first = alone.record.count("cuMemAlloc") + 1
        self.assertEqual(alone.record.count("cuModuleLoadData"), units - 1)
        self.assertLess(first, pieces)
        self.assertLess(launches(whole), launches(alone))
        for failing, why in ((f"cuModuleLoadData:{units}+", "their kernel cannot be had (cannot load the compiled kernels: CUDA_ERROR"),
                             (f"cuMemAlloc:{first}+", "the device has no memory for more of them"),
                             (f"cuMemAlloc:{pieces}+", "the device has no memory for more of them")):
            with self.subTest(failing):
                run = Run(**words, env={"STANDIN_FAIL": failing})
                self.check_clean(run)
                self.assertIn(f"small launches are not bundled: {why}", " ".join(run.result["messages"]))
                self.assertEqual(len(run.result["messages"]), 1)
                self.assertEqual(launches(run) < launches(alone), failing.startswith(f"cuMemAlloc:{pieces}"))

    def test_abort_while_running(self):
        """Another plan of the job cannot be had any more; everything is given back."""
        for mode in ("stream", "graph"):
            run = Run(mode=mode, leaves=1, set=["n=4", "steps=100000"])
            self.assertEqual(run.bad(), [])
            self.assertEqual(run.left(), set())

    @share.sometimes(2)
    def test_every_failing_call(self):
        """Whatever fails, everything else is given back, and the message has the driver's words."""
        for mode in (*MODES, "fused"):
            words = {"mode": mode, "starts": "3,-1", "set": ["n=4", "steps=70"],
                     "lower": {"sync": "", "fused": "steps=3"}.get(mode, "copy=engine,lanes=2"),
                     "ranks": 2}
            Run(**words)  # the kernels are compiled now
            whole = Run(**words)
            self.check_clean(whole)
            counts = {name: whole.record.count(name) for name in whole.record if not name.startswith("left")}
            for name, count in share.taken(sorted(counts.items()), FEW):
                # An image that is not taken is compiled anew, by what no mode has of its own; fused has units of its own.
                if name in OPTIONAL or (name == "cuModuleLoadData" and mode in ("sync", "graph")):
                    continue
                for number in sorted({1, count}):
                    with self.subTest(mode=mode, call=name, number=number):
                        run = Run(**words, env={"STANDIN_FAIL": f"{name}:{number}"})
                        self.assertIn(f"{name} fails", run.record)
                        self.assertLessEqual(run.left(), GIVES_BACK.get(name, set()))
                        self.assertEqual(run.bad(), [])
                        # Images are compiled anew once; flags of a device that cannot be found out are no sums; and a
                        # graph of few steps can be done without.
                        spared = name == "cuModuleLoadData" or (name == "cuDeviceGet" and number > 1) or (
                            mode == "graph" and number > 1 and name in ("cuGraphInstantiateWithParams", "cuStreamSynchronize"))
                        if mode == "graph" and number > 1 and name == "cuGraphInstantiateWithParams":
                            self.assertEqual(run.result["status"], "ok", run.err)
                        if name not in GIVES_BACK and not spared:
                            self.assertIn(run.result["status"], ("device error", "unsuitable environment"), run.err)


if __name__ == "__main__":
    common.main()
