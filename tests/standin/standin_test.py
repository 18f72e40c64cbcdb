#!/usr/bin/env python3
# What peal does with a driver, on a stand-in that records calls: doctor, opening, memory between
# processes, clean-up after any call that fails. It shows call order and error paths, no results.
#
#   standin_test.py NEW OLD DEVICE_JOB: folders with the stand-in of a new and of an old driver, a program
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from calls import common, CACHE, FOLDER, GIVES_BACK, NEW, OLD, OPTIONAL, bad, findings, left, lines_of, only, with_driver

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

JOB = sys.argv[3]
del sys.argv[1:4]

SPEC = """
peal: 1
name: sums
topology: {dims: auto, periodic: true}
buffers:
  x: {type: i64, keep: true}
  total: {type: i64, keep: true}
repeat: 4
step:
  - {set: x, value: rank + 10 * step}
  - {set: total, value: x}
  - {allreduce: {total: sum}}
  - {print: {total: total}}
"""


def job(processes=1, process=0, how="p2p:vmm", **more):
    env, path = with_driver(**more)
    done = subprocess.run([JOB, str(processes), str(process), how], env=env, capture_output=True, text=True, check=False,
                          timeout=common.HARD_LIMIT)
    return done.returncode, done.stdout, lines_of(path)


class Device(unittest.TestCase):
    def test_order(self):
        code, out, record = job()
        self.assertEqual(code, 0, out)
        self.assertIn("open: Stand-in 0000:01:00.0, driver 13.0", out)
        self.assertIn("descriptors: 0", out)
        self.assertEqual(left(record), set())
        shared = ["cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemsetD8", "cuCtxSynchronize",
                  "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemcpyHtoD", "cuMemcpyDtoH",
                  "cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]
        own, give_back = shared[:6], shared[-3:]
        expected = [*own, "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", *own[1:4], "cuMemcpyHtoD",
                    "cuCtxSynchronize", "cuMemcpyDtoH", *give_back, *give_back,  # shared
                    *own, "cuMemcpyDtoH", *give_back,  # its own
                    "cuMemHostAlloc", "cuMemcpyDtoH", "cuMemFreeHost"]  # serial
        self.assertEqual(only(record, {*shared, "cuMemHostAlloc", "cuMemFreeHost"}), expected)
        self.assertEqual(record[0], "cuInit")
        self.assertEqual(only(record, {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"}),
                         ["cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"])

    def test_processes_are_dealt_out_in_blocks(self):
        buses = []
        for process in range(4):
            code, out, _ = job(4, process, devices=2)
            self.assertEqual(code, 0, out)
            buses.append(re.search(r"0000:(\d\d)", out).group(1))
        self.assertEqual(buses, ["01", "01", "02", "02"])

    def test_every_failing_call(self):
        calls = [line for line in job()[2] if not line.startswith("left") and line != "cuCtxSetCurrent"]
        seen = {}
        for name in calls:
            seen[name] = seen.get(name, 0) + 1
            with self.subTest(call=name, number=seen[name]):
                code, out, record = job(STANDIN_FAIL=f"{name}:{seen[name]}")
                self.assertIn(f"{name} fails", record)
                self.assertLessEqual(left(record), GIVES_BACK.get(name, set()))
                if "open: Stand-in" in out or "open: GPU" in out:
                    self.assertIn(f"descriptors: {int(name == 'cuMemRelease')}", out)
                if name in GIVES_BACK:
                    self.assertEqual(code, 0, out)
                elif name not in OPTIONAL:
                    self.assertIn(code, (4, 7), out)
                    self.assertIn(name if code == 7 else "open: ", out)
        self.assertGreater(len(seen), 20)

    def test_other_paths(self):
        """Ordinary memory with an IPC handle, and the host's memory; whatever fails, all is given back."""
        orders = {"p2p:ipc": ["cuMemAlloc", "cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuMemFree"],
                  "shm": ["cuMemHostRegister", "cuMemHostGetDevicePointer", "cuMemHostUnregister"]}
        for path, order in orders.items():
            code, out, record = job(1, 0, path)
            self.assertEqual(code, 0, out)
            self.assertIn("descriptors: 0", out)
            begin = record.index(order[0])
            self.assertEqual(only(record[begin:record.index(order[-1]) + 1], set(order)), order)
            self.assertEqual((left(record), bad(record)), (set(), []))
            for name in (*order, "cuMemsetD8", "cuCtxSynchronize", "cuMemcpyHtoD"):
                if name not in record:
                    continue
                with self.subTest(path=path, call=name):
                    code, out, record = job(1, 0, path, STANDIN_FAIL=f"{name}:1")
                    self.assertIn(f"{name} fails", record)
                    self.assertLessEqual(left(record), GIVES_BACK.get(name, set()))
                    self.assertIn("descriptors: 0", out)
                    if name not in GIVES_BACK and name != "cuIpcOpenMemHandle":  # which fails in the process itself
                        self.assertEqual(code, 7, out)

    def test_out_of_memory(self):
        code, out, record = job(STANDIN_BYTES=str(3 << 20))
        self.assertEqual(code, 7)
        self.assertIn("a rank needs 3000000 bytes, Stand-in 0000:01:00.0 has 3145728 free of 3145728", out)
        self.assertIn("[E382]", out)
        self.assertEqual(left(record), set())

    def test_nothing_to_share_with(self):
        code, out, record = job(STANDIN_LACKS="vmm")
        self.assertEqual(code, 7)
        self.assertIn("cannot share memory between processes", out)
        self.assertEqual(left(record), set())

    def test_no_driver_to_use(self):
        self.assertIn("open: the NVIDIA driver sees no GPU", job(devices=0)[1])
        self.assertIn("too old: it has no cuStreamEndCapture", job(folder=OLD)[1])
        self.assertIn("does not start", job(STANDIN_FAIL="cuInit:1")[1])


class Doctor(unittest.TestCase):
    def test_devices(self):
        found = findings(with_driver(devices=2)[0])
        self.assertEqual(found["gpu"], ("ok", "2 devices, driver for CUDA 13.0"))
        self.assertIn("Stand-in 0000:02:00.0, sm_90, 132 SMs, 16.0 GiB", found["gpu 1"][1])
        self.assertIn("1056 blocks of 256 threads (8 an SM)", found["gpu 0 launches"][1])
        self.assertEqual(found["link 0-1"], ("ok", "peer access, NVLink (native atomics yes), performance rank 0"))
        self.assertEqual(found["path p2p by VMM"], ("ok", "usable between all pairs of GPUs (--transport p2p:vmm)"))
        self.assertEqual(found["path p2p by IPC"][0], "ok")
        self.assertEqual(found["path shm staging"][0], "ok")

    def test_one_device_has_no_link(self):
        found = findings(with_driver(devices=1)[0])
        self.assertFalse([name for name in found if name.startswith("link")])
        self.assertIn("share the GPU", found["path p2p by VMM"][1])

    def test_what_is_missing(self):
        rungs = ("p2p by VMM", "p2p by IPC", "shm staging")
        no_access = "GPU 0 and GPU 1: the GPUs cannot access each other's memory (no peer access)"
        for lacks, reasons in (("peer", (no_access, no_access, None)),
                               ("vmm", ("GPU 0: the GPU has no virtual memory management", None, None)),
                               ("handles", ("cuMemExportToShareableHandle", None, None)),
                               ("ipc", (None, "cuIpcGetMemHandle", None)),
                               ("register", (None, None, "GPU 0: the GPU cannot register host memory"))):
            env, path = with_driver(devices=2, STANDIN_LACKS=lacks)
            found = findings(env)
            self.assertEqual(found["link 0-1"][0], "off" if lacks == "peer" else "ok")
            for rung, reason in zip(rungs, reasons):
                state, text = found[f"path {rung}"]
                self.assertEqual(state, "off" if reason else "ok", text)
                self.assertIn(reason or "usable", text)
            self.assertEqual(left(lines_of(path)), set())

    def test_no_device(self):
        self.assertEqual(findings(with_driver(devices=0)[0])["gpu"], ("off", "the NVIDIA driver sees no GPU"))
        state, text = findings(with_driver(folder=OLD)[0])["gpu"]
        self.assertEqual(state, "off")
        self.assertIn("too old: it has no cuStreamEndCapture", text)


def run(*words, spec=SPEC, **more):
    """Runs the spec; exit code, JSON or None, messages, record."""
    env, path = with_driver(**more)
    code, out, err = common.peal_json("run", "-", "--json", *words, stdin=spec, env=env)
    return code, out, err, lines_of(path) if os.path.exists(path) else []


HEAT = os.path.join(common.SPECS, "run", "heat.yaml")


class Kernels(unittest.TestCase):
    """serial, whose tiles are launched: NVRTC compiles them, the stand-in records the launches."""

    def setUp(self):
        if findings(with_driver()[0])["nvrtc"][0] != "ok":
            self.skipTest("no NVRTC")

    def heat(self, **more):
        env, path = with_driver(XDG_CACHE_HOME=CACHE, **more)
        code, _, err = common.peal("run", HEAT, "-n", "2", "--steps", "2", "--mode", "serial", "--backend", "cuda",
                                   env=env)
        return code, err, lines_of(path)

    def test_every_launch_is_waited_for(self):
        code, err, record = self.heat()
        self.assertEqual(code, 0, err)
        calls = only(record, {"cuModuleLoadData", "cuLaunchKernel", "cuStreamQuery", "cuModuleUnload"})
        self.assertEqual(calls[:2] + calls[-2:], ["cuModuleLoadData"] * 2 + ["cuModuleUnload"] * 2)  # its tiles have partials
        launches = calls[2:-2]
        self.assertEqual(launches, ["cuLaunchKernel", "cuStreamQuery"] * (len(launches) // 2))
        self.assertGreaterEqual(len(launches), 2 * 2 * 3)  # two ranks: start, then relax twice
        self.assertEqual(left(record), set())

    def test_one_launch_an_op(self):
        """All tiles of an op are launched at once, those of a reduction and of two borders and an inside, too."""
        folder = common.folder_of({"sum.yaml": "peal: 1\nname: sum\nkernels: sum.c\nrepeat: 3\nbuffers: {total: {}}\n"
                                               "topology: {dims: [auto, 1], periodic: [true, true]}\nfields: {u: {size: [32, 32], halo: 1}}\n"
                                               "setup: [{task: fill, box: u, write: u, tile: [8, 8]}]\nstep:\n"
                                               "  - {exchange: u}\n"
                                               "  - {task: add, box: u, read: {u: {star: 1}}, reduce: {total: sum}, tile: [8, 4]}\n"
                                               "  - {allreduce: {total: sum}}\n",
                                   "sum.c": "PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u))\n{\n"
                                            "    PEAL_FOR_2D (t, x, y)\n        PEAL_AT(u, x, y) = x + 32 * y;\n}\n"
                                            "PEAL_KERNEL(add)(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(double, total))\n{\n"
                                            "    double sum = 0;\n    PEAL_FOR_2D (t, x, y)\n        sum += PEAL_AT(u, x + 1, y);\n"
                                            "    PEAL_PARTIAL(total, sum);\n}\n"}, FOLDER.name)
        env, path = with_driver(XDG_CACHE_HOME=CACHE)
        code, _, err = common.peal("run", folder, "-n", "2", "--backend", "cuda", "--mode", "serial", env=env)
        self.assertEqual(code, 0, err)
        self.assertEqual(lines_of(path).count("cuLaunchKernel"), 2 * (1 + 3))

    @share.sometimes(4)
    def test_errors_name_the_task(self):
        for call in ("cuLaunchKernel", "cuStreamQuery"):
            for number, task in ((1, "start"), (3, "relax")):
                code, err, record = self.heat(STANDIN_FAIL=f"{call}:{number}")
                self.assertEqual(code, 7, err)
                self.assertRegex(err, rf"task '{task}' of rank \d: {call}: .*\[E383\]")
                self.assertEqual(record.count("cuLaunchKernel"), number - (call == "cuLaunchKernel"))
                self.assertEqual(left(record), set())

    def test_no_compiler(self):
        """A library of NVRTC's name that has nothing of it."""
        folder = tempfile.mkdtemp(dir=FOLDER.name)
        shutil.copy(os.path.join(NEW, "libcuda.so.1"), os.path.join(folder, "libnvrtc.so.13"))
        code, err, record = self.heat(folder=f"{folder}:{NEW}")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"NVRTC is too old: it has no nvrtc\w+ \[E640\]")
        self.assertEqual(left(record), set())

    @share.sometimes(2, 1)
    def test_kernels_that_the_driver_refuses(self):
        """Those of the cache are compiled anew first."""
        self.heat()
        code, err, record = self.heat(STANDIN_FAIL="cuModuleLoadData:-1")
        self.assertEqual(code, 7)
        self.assertRegex(err, r"cannot load .*\[E642\]")
        self.assertEqual(record.count("cuModuleLoadData fails"), 3)  # the unit of its partials, which is loaded beside, once
        self.assertEqual(left(record), set())

    def test_more_tiles_than_a_grid_has_blocks(self):
        folder = common.folder_of({"many.yaml": "peal: 1\nname: many\nkernels: many.c\nrepeat: 1\nstep:\n"
                                                "  - {task: look, box: [[0, 65536], [0, 65536]], tile: [1, 1]}\n",
                                   "many.c": "PEAL_KERNEL(look)(peal_tile t)\n{\n    (void)t;\n}\n"}, FOLDER.name)
        env, path = with_driver(XDG_CACHE_HOME=CACHE)
        code, _, err = common.peal("run", folder, "--backend", "cuda", "--mode", "stream", env=env)
        self.assertEqual(code, 3)
        self.assertRegex(err, r"many.yaml:6:5: .*`look` has 4294967296 tiles on rank 0, a grid at most \d+ \[E644\]")
        self.assertEqual(left(lines_of(path)), set())

    @share.sometimes(2, 1)
    def test_every_failing_call(self):
        """Whatever fails while a plan is made or run, everything else is given back."""
        seen = {}
        self.heat()  # from now on kernels come from the cache: NVRTC asks the driver, too
        for name in [line for line in self.heat()[2] if not line.startswith("left")]:
            seen[name] = seen.get(name, 0) + 1
            once = name in OPTIONAL or name in ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount")  # a process
            if name == "cuCtxSetCurrent" or seen[name] > (1 if once else 2):
                continue
            with self.subTest(call=name, number=seen[name]):
                record = self.heat(STANDIN_FAIL=f"{name}:{seen[name]}")[2]
                self.assertIn(f"{name} fails", record)
                self.assertLessEqual(left(record), GIVES_BACK.get(name, set()))


class Run(unittest.TestCase):
    def test_serial(self):
        """No kernels: the host's executor does all, in memory that both sides have mapped."""
        code, out, err, record = run("-n", "3", "--mode", "serial", "--backend", "cuda")
        self.assertEqual(code, 0, err)
        self.assertEqual((out["backend"], out["device"]), ("cuda", "Stand-in 0000:01:00.0, driver 13.0"))
        self.assertEqual([row["total"] for row in out["rows"]], [3, 33, 63, 93])
        self.assertEqual(left(record), set())
        self.assertEqual(record.count("cuMemHostAlloc"), 4)  # a segment a rank, a page of the plan
        self.assertNotIn("cuMemCreate", record)
        order = only(record, {"cuDevicePrimaryCtxRetain", "cuMemHostAlloc", "cuStreamCreateWithPriority",
                              "cuStreamDestroy", "cuMemFreeHost", "cuDevicePrimaryCtxRelease"})
        self.assertEqual(order, ["cuDevicePrimaryCtxRetain", *["cuMemHostAlloc"] * 4, "cuStreamCreateWithPriority",
                                 "cuStreamDestroy", *["cuMemFreeHost"] * 4, "cuDevicePrimaryCtxRelease"])

    def test_serial_in_processes(self):
        """Process 0 hosts all ranks; the digest is the host's."""
        words = ("-n", "2", "--mode", "serial")
        code, out, err, _ = run(*words, "--backend", "cuda", devices=2)
        self.assertEqual((code, out["processes"]), (0, 2), err)
        host = run(*words, "--backend", "host")[1]
        self.assertEqual(out["modes"][0]["digest"], host["modes"][0]["digest"])

    def test_host_is_asked_for(self):
        code, out, err, record = run("-n", "2", "--mode", "stream", "--backend", "host", devices=2)
        self.assertEqual((code, out["backend"]), (0, "host"), err)
        self.assertEqual(record, [])

    def test_time_of_the_cpu(self):
        """What driving the device took is told, in all and a step; the host has no such thing."""
        mode = run("--mode", "stream", "--backend", "cuda")[1]["modes"][0]
        self.assertGreater(mode["cpu_seconds"], 0)
        self.assertAlmostEqual(mode["cpu_seconds_per_step"] * mode["steps"] / mode["cpu_seconds"], 1)
        self.assertNotIn("cpu_seconds", run("--mode", "stream", "--backend", "host")[1]["modes"][0])

    def test_exposed_communication(self):
        """The run without messages launches as the other does, but writes and awaits no word."""
        words = ("-n", "2", "--processes", "2", "--mode", "stream", "--backend", "cuda", "--lower", "signal=memop")
        more = {}
        for steps in (2, 4):
            code, out, err, whole = run(*words, "--steps", str(steps), devices=2)
            self.assertEqual(code, 0, err)
            self.assertNotIn("exposed_seconds_per_step", out["modes"][0])
            code, out, err, both = run(*words, "--steps", str(steps), "--exposed", devices=2)
            self.assertEqual(code, 0, err)
            self.assertIn("exposed_seconds_per_step", out["modes"][0])
            self.assertEqual(left(both), set())
            self.assertGreater(whole.count("cuStreamWriteValue64"), steps)
            more[steps] = {name: both.count(name) - whole.count(name)
                           for name in ("cuStreamWriteValue64", "cuStreamWaitValue64", "cuLaunchKernel")}
        self.assertGreater(more[4].pop("cuLaunchKernel"), more[2].pop("cuLaunchKernel"))
        self.assertEqual(more[4], more[2])  # what tries them out before a run

    def test_no_device(self):
        for more, why in (({"devices": 0}, "sees no GPU"), ({"folder": OLD}, "too old"),
                          ({"folder": "/nonexistent"}, "no NVIDIA driver")):
            code, _, err, _ = run("--mode", "stream", "--backend", "cuda", **more)
            self.assertEqual(code, 4)
            self.assertRegex(err, why + r".*\[E381\]")
            code, out, err, _ = run("--mode", "stream", **more)
            self.assertEqual((code, out["backend"]), (0, "host"), err)

    def test_processes_by_devices(self):
        """As many as there are GPUs, no more than ranks."""
        for devices, ranks, processes in ((2, 4, 2), (4, 3, 3), (1, 2, 1)):
            code, out, err, _ = run("-n", str(ranks), "--mode", "serial", devices=devices)
            self.assertEqual((code, out["processes"], out["backend"]), (0, processes, "cuda"), err)

    def test_different_devices(self):
        code, _, err, record = run("-n", "2", "--mode", "serial", "--backend", "cuda", devices=2,
                                   STANDIN_MODELS="1")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"process 1 has Stand-in B, sm_90, process 0 has Stand-in A, sm_90 \[E384\]")
        self.assertEqual(left(record), set())

    def test_segments_are_passed_on(self):
        """Each of two processes makes a segment known and maps the other's, and a small one to try it."""
        for transport, calls in (("auto", ("cuMemExportToShareableHandle", "cuMemImportFromShareableHandle")),
                                 ("p2p:ipc", ("cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuIpcCloseMemHandle")),
                                 ("shm", ("cuMemHostRegister", "cuMemHostUnregister"))):
            code, out, err, record = run(*self.IN_TWO, "--transport", transport, devices=2)
            self.assertEqual((code, out["transport"]), (0, {"auto": "p2p:vmm"}.get(transport, transport)), err)
            for name in calls:
                self.assertEqual(record.count(name), 8 if transport == "shm" else 4, name)
            self.assertEqual(bad(record), [])
            self.assertEqual(left(record), set())

    # every message is a memory operation, which is what the stand-in waits for
    IN_TWO = ("-n", "2", "--mode", "stream", "--backend", "cuda", "--lower", "signal=memop")

    def test_first_transport_that_works(self):
        """All processes take the same rung; what was passed over is told with its reason."""
        for lacks, taken, why in (
                ("vmm", "p2p:ipc", "not p2p:vmm: process 0: the GPU has no virtual memory management"),
                ("handles", "p2p:ipc", "not p2p:vmm: process 0: memory of .* cuMemExportToShareableHandle"),
                ("peer", "shm", "not p2p:vmm: process 0: .*no peer access.*; not p2p:ipc: process 0: .*no peer access"),
                ("vmm ipc", "shm", "not p2p:ipc: process 0: memory of .* cuIpcGetMemHandle")):
            code, out, err, record = run(*self.IN_TWO, devices=2, STANDIN_LACKS=lacks)
            self.assertEqual((code, out["transport"]), (0, taken), err)
            self.assertEqual(bad(record), [])
            self.assertEqual(left(record), set())
            env, _ = with_driver(devices=2, STANDIN_LACKS=lacks)
            code, out, err = common.peal("run", "-", *self.IN_TWO, stdin=SPEC, env=env)
            self.assertRegex(out, rf"messages by {taken}, .*\(.*{why}")

    def test_one_process_cannot(self):
        """What fails in one of the two is known to both, and nothing is left."""
        for call, taken in (("cuMemImportFromShareableHandle", "p2p:ipc"), ("cuMemCreate", "p2p:ipc")):
            code, out, err, record = run(*self.IN_TWO, devices=2, STANDIN_FAIL=f"{call}:1")
            self.assertEqual((code, out["transport"]), (0, taken), err)
            self.assertEqual(left(record), set())
        code, out, err, record = run(*self.IN_TWO, devices=2, STANDIN_LACKS="vmm", STANDIN_FAIL="cuIpcOpenMemHandle:1")
        self.assertEqual((code, out["transport"]), (0, "shm"), err)
        self.assertEqual(left(record), set())

    def test_no_transport_is_left(self):
        code, _, err, record = run(*self.IN_TWO, devices=2, STANDIN_LACKS="peer register")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"there is no transport between the GPUs of 2 processes: not p2p:vmm: .*no peer access.*"
                              r"not p2p:ipc: .*no peer access.*not shm: .*cannot register host memory \[E388\]")
        self.assertIn("--processes 1", err)
        self.assertEqual(err.count("E388"), 1)
        self.assertEqual(left(record), set())

    def test_device_without_memory_operations(self):
        """Kernels that wait do without; processes that share the device cannot."""
        words = ("-n", "2", "--mode", "stream", "--backend", "cuda")
        code, _, err, record = run(*words, "--processes", "2", STANDIN_LACKS="memops")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"Stand-in cannot do 64-bit memory operations .* processes that share a GPU .*\[E669\]")
        self.assertEqual(left(record), set())
        code, _, err, _ = run(*words, "--lower", "signal=memop", STANDIN_LACKS="memops")
        self.assertEqual(code, 4)
        self.assertRegex(err, r"which signal=memop asks for \[E669\]")
        self.assertEqual(run(*words, STANDIN_LACKS="memops")[0], 0)

    def test_device_without_what_mode_fused_needs(self):
        """Older than Ampere, or without cooperative launch: refused by name, auto and all take the other modes."""
        words = ("-n", "1", "--backend", "cuda")
        for lacks, what in (("ampere", "needs compute capability 8.0"), ("cooperative", "no cooperative launch")):
            code, _, err, record = run(*words, "--mode", "fused", STANDIN_LACKS=lacks)
            self.assertEqual(code, 4)
            self.assertRegex(err, rf"mode fused cannot run this: .*{what}.*\[E664\]")
            self.assertEqual(left(record), set())
            code, out, err, _ = run(*words, STANDIN_LACKS=lacks)
            self.assertEqual(code, 0, err)
            self.assertNotEqual(out["modes"][0]["mode"], "fused")

    def test_graph_with_until_on_a_shared_device(self):
        """Memory operations cannot be skipped once `until` has ended the loop: refused, auto takes another mode."""
        words = ("-n", "2", "--processes", "2", "--backend", "cuda")
        spec = SPEC.replace("repeat: 4", "repeat: 4\nuntil: total > 1000")
        code, _, err, _ = run(*words, "--mode", "graph", spec=spec)
        self.assertEqual(code, 4)
        self.assertRegex(err, r"`until` needs kernel signals: .*\[E664\]")
        code, out, err, _ = run(*words, "--steps", "0", spec=spec)
        self.assertEqual((code, out["modes"][0]["mode"]), (0, "stream"), err)
        code, out, err, _ = run(*words, "--steps", "0", spec=spec, devices=2)
        self.assertEqual(code, 0, err)
        self.assertIn(out["modes"][0]["mode"], ("graph", "fused"))

    def test_auto_passes_over_what_cannot_be_made_ready(self):
        """Mode fused is predicted to be the fastest, but a GPU of one SM has no blocks for so many ranks of a process."""
        words = ("-n", "26", "--processes", "1", "--backend", "cuda", "--steps", "0")
        code, _, err, _ = run(*words, "--mode", "fused", STANDIN_SMS="1")
        self.assertEqual(code, 4)
        self.assertIn("[E664]", err)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("machine: 1\naccelerator: true\nkernels: {default: {}}\nlinks: {device: {bytes_per_s: 1e12}}\nmodes: "
                       "{graph: {kernel_s: 2e-6}, stream: {kernel_s: 3e-6}, fused: {kernel_s: 1e-6}, sync: {kernel_s: 9e-6}}\n")
            file.flush()
            code, out, err, _ = run(*words, "--machine", file.name, STANDIN_SMS="1")
        self.assertEqual((code, err, out["modes"][0]["mode"]), (0, "", "graph"))
        self.assertRegex(out["auto"], "^graph, predicted [^f]*times of ")

    @share.sometimes(4, 2)
    def test_folder_of_images_that_cannot_be_made(self):
        """Kernels are compiled all the same; a warning tells why they are not kept."""
        if findings(with_driver()[0])["nvrtc"][0] != "ok":
            self.skipTest("no NVRTC")
        env, _ = with_driver(XDG_CACHE_HOME="/dev/null/nowhere")
        code, _, err = common.peal("run", HEAT, "-n", "2", "--steps", "2", "--mode", "stream", "--backend", "cuda", env=env)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"warning: .*/dev/null/nowhere.*\[E207\]")

    def test_transport_that_was_asked_for(self):
        for transport, lacks, why in (("p2p", "peer", "not p2p:ipc: .*no peer access"),
                                      ("p2p:ipc", "ipc", "not p2p:ipc: .*cuIpcGetMemHandle"),
                                      ("p2p:vmm", "vmm", "not p2p:vmm: .*no virtual memory management"),
                                      ("shm", "register", "not shm: .*cannot register host memory")):
            code, _, err, record = run(*self.IN_TWO, "--transport", transport, devices=2, STANDIN_LACKS=lacks)
            self.assertEqual(code, 4)
            self.assertRegex(err, rf"the transport that was asked for cannot be used .*{why}.*\[E388\]")
            self.assertEqual(left(record), set())
        code, _, err, _ = run("-n", "2", "--mode", "stream", "--backend", "host", "--transport", "p2p", devices=2)
        self.assertEqual(code, 4)
        self.assertIn("transport p2p was asked for, but the ranks run on the CPU [E388]", err)
        code, out, err, _ = run("-n", "2", "--mode", "stream", "--backend", "host", "--transport", "shm", devices=2)
        self.assertEqual((code, out["transport"]), (0, "shm"), err)
        code, _, err = common.peal("run", "-", "--transport", "p2p:smoke", stdin=SPEC)
        self.assertEqual(code, 2)
        self.assertIn("--transport needs auto, p2p, p2p:vmm, p2p:ipc or shm, perhaps with +tcp, +ucx, +verbs or +mlx5, or tcp, ucx, verbs or mlx5 alone, not 'p2p:smoke'", err)

    def test_several_hosts(self):
        """Mailboxes and shadows are host memory that the GPU has mapped, with every transport of a host."""
        for words, hosts, transport in ((("-n", "2", "--transport", "tcp"), "0", "tcp"), (("-n", "2"), "2", "tcp"),
                                        (("-n", "4"), "2", "p2p:vmm+tcp")):
            with self.subTest(transport, hosts=hosts):
                code, out, err, record = run(*words, "--mode", "stream", "--backend", "cuda", devices=4, PEAL_TEST_HOSTS=hosts)
                self.assertEqual((code, out["transport"]), (0, transport), err)
                self.assertEqual(left(record), set())
        code, _, err, record = run("-n", "2", "--transport", "tcp", "--backend", "cuda", devices=2, STANDIN_LACKS="register")
        self.assertEqual(code, 4)
        self.assertIn("messages of GPUs cannot go to other hosts: process 0: the GPU cannot register host memory [E388]", err)
        self.assertEqual(left(record), set())

    def test_required_transport(self):
        spec = SPEC.replace("repeat: 4", "require: [p2p]\nrepeat: 4")
        for lacks, code in (("none", 0), ("peer", 4)):
            env, _ = with_driver(devices=2, STANDIN_LACKS=lacks)
            found, _, err = common.peal("run", "-", *self.IN_TWO, stdin=spec, env=env)
            self.assertEqual(found, code, err)
            if code:
                self.assertIn("the spec requires p2p", err)

    def test_plan_shows_the_transport(self):
        spec = os.path.join(os.environ["PEAL_ROOT"], "samples", "jacobi2d")
        for transport in ("p2p:vmm", "p2p:ipc", "shm"):
            words = (spec, "-n", "2", "--backend", "cuda", "--rank", "0", "--transport", transport)
            code, out, err = common.peal("plan", *words)
            self.assertEqual(code, 0, err)
            self.assertRegex(out, rf" 0->1 +{transport}, ")
            found = common.peal_json("plan", *words, "--json")[1]["schedules"][0]
            self.assertEqual(found["path"], transport)
            direct = [piece["direct"] for channel in found["channels"] for piece in channel["pieces"]]
            self.assertEqual(any(direct), transport != "shm")

    def test_out_of_memory(self):
        code, _, err, record = run("--mode", "stream", "--backend", "cuda", STANDIN_BYTES="4096")
        self.assertEqual(code, 7)
        self.assertRegex(err, r"a rank needs \d+ bytes, .* has 4096 free of 4096 .*\[E382\]")
        self.assertEqual(left(record), set())


if __name__ == "__main__":
    common.main()
