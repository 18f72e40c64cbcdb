#!/usr/bin/env python3
# `peal plan --resources`: what kernels take of a GPU, by NVRTC alone; and what is said where it is missing.
import os
import shutil
import tempfile
import unittest

import common

SMALL = {"small.yaml": "peal: 1\nname: small\nkernels: small.c\nfields: {u: {size: [64]}}\nrepeat: 1\nstep:\n  - {task: go, box: u, update: u}\n",
         # An array that the compiler cannot keep in registers.
         "small.c": "PEAL_KERNEL(go)(peal_tile t, PEAL_UPDATE(double, u))\n{\n    PEAL_FOR_1D(t, x) {\n"
                    "        double a[200];\n        for (int i = 0; i < 200; i++)\n"
                    "            a[i] = PEAL_AT(u, x) * i;\n        int k = (int)PEAL_AT(u, x);\n"
                    "        for (int i = 0; i < 200; i++)\n            a[(i * k) & 127] += a[i];\n"
                    "        PEAL_AT(u, x) = a[k & 127];\n    }\n}\n"}
# What is read beside tiles of several points a thread is staged in shared memory, where launches have shapes.
NEAR = {"near.yaml": "peal: 1\nname: near\nkernels: near.c\ntopology: {dims: [1, auto], periodic: true}\n"
                     "fields: {u: {type: f32, size: [2048, 2048], halo: [0, 1]}, v: {like: u}}\nrepeat: 9\nstep:\n"
                     "  - {exchange: u}\n  - {task: go, box: v, read: {u: {grow: [0, 1]}}, write: v}\n  - {swap: [u, v]}\n",
        "near.c": "PEAL_KERNEL(go)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v))\n{\n    PEAL_FOR_2D(t, x, y) {\n"
                  "        PEAL_AT(v, x, y) = PEAL_AT(u, x, y - 1) + PEAL_AT(u, x, y + 1);\n    }\n}\n"}
SCRATCH = tempfile.TemporaryDirectory()
FOLDER, STAGED = common.folder_of(SMALL, SCRATCH.name), common.folder_of(NEAR, SCRATCH.name)
ENV = common.environment(XDG_CACHE_HOME=common.kernel_cache(SCRATCH.name))


def why_not():
    """Why nothing can be said here, or None."""
    _, _, err = common.peal("plan", FOLDER, "-n", "2", "--resources", "--mode", "serial", "--arch", "sm_90", env=ENV)
    return err.strip() if "[E640]" in err or "[E409]" in err else None


SKIPPED = why_not()
if SKIPPED:
    print(f"skipped: {SKIPPED}")


def resources(*words, folder=FOLDER):
    code, out, err = common.peal_json("plan", folder, "-n", "2", "--resources", "--json", *words, env=ENV)
    assert code == 0, err
    return out


@unittest.skipIf(SKIPPED, "no NVRTC")
class Resources(unittest.TestCase):
    def check(self, kernel, architecture_blocks):
        self.assertTrue(0 < kernel["registers"] <= kernel["register_budget"] <= 255, kernel)
        self.assertTrue(max(1, kernel["least_blocks"]) <= kernel["blocks_per_sm"] <= architecture_blocks, kernel)
        self.assertLessEqual(kernel["threads"] * kernel["blocks_per_sm"], 2048)
        self.assertIn(kernel["limited_by"], ("registers", "threads", "shared memory", "blocks"))

    @common.share.sometimes(3)
    def test_fused(self):
        """The kernel that stays, of ranks that are alike, and its dispatcher alone, which takes less."""
        out = resources("--mode", "fused", "--arch", "sm_90", folder=STAGED)
        self.assertEqual(out["schema"], "peal.resources/1")
        self.assertEqual([(mode["mode"], mode["architecture"]) for mode in out["modes"]], [("fused", "sm_90")])
        kernels = out["modes"][0]["kernels"]
        for kernel in kernels:
            self.check(kernel, 32)
        found = {unit: [k for k in kernels if k["unit"] == unit and k["kernel"] == "peal_fused_kernel"]
                 for unit in ("fused", "dispatcher")}
        (fused,), (alone,) = found["fused"], found["dispatcher"]
        self.assertEqual((fused["threads"], fused["least_blocks"], fused["register_budget"]), (256, 3, 80))
        self.assertEqual((fused["rank"], alone["rank"]), (0, None))
        self.assertGreater(fused["shared_bytes"], alone["shared_bytes"] + 16 * 1024)
        dynamic = resources("--mode", "fused", "--arch", "sm_90", "--lower", "order=tickets", folder=STAGED)["modes"][0]["kernels"]
        for kernel in dynamic:
            self.check(kernel, 32)
        self.assertNotEqual(dynamic, kernels)
        for key in ("registers", "shared_bytes", "local_bytes", "spill_store_bytes"):
            self.assertLessEqual(alone[key], fused[key], key)
        self.assertIn("go", {kernel["task"] for kernel in kernels if kernel["unit"] == "full"})
        single = resources("--mode", "fused", "--arch", "sm_90", "--lower", "blocks=1", folder=STAGED)["modes"][0]["kernels"]
        for kernel in single:
            if kernel["kernel"] == "peal_fused_kernel":
                self.assertEqual((kernel["least_blocks"], kernel["register_budget"], kernel["spill_store_bytes"]), (1, 255, 0), kernel)

    def test_stack_is_found(self):
        out = resources("--mode", "serial", "--arch", "sm_90")
        task = {kernel["kernel"]: kernel for kernel in out["modes"][0]["kernels"]}["peal_task_0"]
        self.assertGreaterEqual(task["local_bytes"], 8 * 200)
        self.assertEqual((task["task"], task["threads"], task["register_budget"]), ("go", 256, 80))

    def test_text(self):
        code, out, err = common.peal("plan", FOLDER, "-n", "2", "--resources", "--mode", "serial", "--arch", "sm_90", env=ENV)
        self.assertEqual(code, 0, err)
        self.assertIn("mode serial on sm_90, by NVRTC", out)
        self.assertRegex(out, r"peal_task_0 +go +256 +\d+ +80 ")


class Refused(unittest.TestCase):
    def refused(self, code, words, *arguments, **env):
        found, _, err = common.peal("plan", FOLDER, "--resources", *arguments, env=common.environment(**env))
        self.assertEqual(found, code, err)
        self.assertRegex(err, words)

    def test_words(self):
        for arch in ("90", "sm_", "sm_x"):
            self.refused(2, r"--arch needs an architecture such as sm_90.*\[E402\]", "--arch", arch)
        self.refused(2, r"not with --backend host \[E402\]", "--backend", "host")

    @unittest.skipIf(SKIPPED, "no NVRTC")
    def test_unknown_architecture(self):
        self.refused(2, r"sm_99 is not known", "--arch", "sm_99")
        self.refused(4, r"mode fused cannot run on sm_75: .*8\.0 \[E664\]", "--arch", "sm_75", "--mode", "fused")
        code, out, err = common.peal_json("plan", FOLDER, "-n", "2", "--resources", "--json", "--arch", "sm_75", "--mode", "all", env=ENV)
        self.assertEqual((code, [mode["mode"] for mode in out["modes"]]), (0, ["serial", "sync", "stream", "graph"]), err)
        self.assertRegex(err, r"warning: mode fused cannot run on sm_75")

    @unittest.skipIf(SKIPPED, "no NVRTC")
    def test_words_of_other_fields(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = common.folder_of({"w.yaml": SMALL["small.yaml"].replace("small", "w").replace("[64]}", "[64], components: 2}"),
                                       "w.c": "PEAL_KERNEL(go)(peal_tile t, PEAL_UPDATE_C(double, u))\n{\n"
                                              "    PEAL_FOR_1D(t, x) {\n        PEAL_AT(u, x) = 1.0;\n    }\n}\n"}, scratch)
            code, _, err = common.peal("plan", folder, "-n", "2", "--resources", "--mode", "serial", "--arch", "sm_90", env=ENV)
            self.assertEqual(code, 3, err)
            self.assertRegex(err, r"w\.c:4:\d+: .*\[E200\]\n.*is PEAL_C\(f, c, x, y\), not PEAL_AT")

    @unittest.skipIf(SKIPPED, "no NVRTC")
    def test_no_compiler(self):
        """A library of NVRTC's name that has nothing of it."""
        with open("/proc/self/maps", encoding="utf-8") as maps:
            library = next(line.split()[-1] for line in maps if "/libm.so" in line or "/libm-" in line)
        with tempfile.TemporaryDirectory() as folder:
            for number in (12, 13):
                shutil.copy(library, os.path.join(folder, f"libnvrtc.so.{number}"))
            self.refused(4, r"NVRTC is too old: it has no nvrtc\w+ \[E640\]", LD_LIBRARY_PATH=folder)


if __name__ == "__main__":
    unittest.main()
