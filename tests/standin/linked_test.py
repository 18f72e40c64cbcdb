#!/usr/bin/env python3
# Block functions that nvcc has compiled are linked with peal's own code, by NVRTC and nvJitLink as they are; the
# driver is the stand-in. What the kernels compute only a GPU shows: peal run FOLDER --verify.
#
#   linked_test.py STANDIN FOLDER (of linked.yaml, linked.c and linked.fatbin)
import glob
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import common  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

STANDIN, FOLDER = (os.path.abspath(word) for word in sys.argv[1:3])
del sys.argv[1:3]
# LeakSanitizer's tracer crashes once in some runs, perhaps on threads of NVIDIA's linker that are ending.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
SCRATCH = tempfile.TemporaryDirectory()
CACHE = common.kernel_cache(SCRATCH.name)


def run(folder, *words, cache=CACHE, libraries=STANDIN):
    env = common.environment(LD_LIBRARY_PATH=libraries, STANDIN_RECORD=os.devnull, XDG_CACHE_HOME=cache)
    code, out, err = common.peal("run", folder, "--backend", "cuda", *words, env=env)
    return code, out, err


# As little as has a function with a reduction, and a kernel in C.
TINY = """peal: 1
name: tiny
kernels: [linked.c, linked.fatbin]
fields: {v: {type: f32, size: [20, 20], halo: 1}, vn: {like: v}, u: {like: v}, un: {like: v}}
buffers: {most: {type: f32}, sum: {type: f64}}
setup:
  - {task: begin, box: v, write: [u, v, un, vn]}
repeat: 1
step:
  - {task: relax_linked, box: {v: {grow: -1}}, read: {v: {star: 1}}, write: vn, reduce: {most: max, sum: sum}, args: [0.25, 3]}
"""


def bytes_of(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return file.read()


def tiny(code=None, spec=TINY):
    return common.folder_of({"tiny.yaml": spec, "linked.c": bytes_of("linked.c"),
                             "linked.fatbin": bytes_of("linked.fatbin") if code is None else code}, SCRATCH.name)


def line_of(path, words):
    with open(path, encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if words in line)


SPEC = tiny()
WHY_NOT = next((number for number in ("[E640]", "[E646]") if number in run(SPEC, "--mode", "serial")[2]), None)
if WHY_NOT:
    print(f"skipped: no NVRTC or no nvJitLink {WHY_NOT}")


@unittest.skipIf(WHY_NOT, "no NVRTC or no nvJitLink")
class Linked(unittest.TestCase):
    def test_modes(self):
        for mode in share.taken(("serial", "fused"), 2):
            with self.subTest(mode=mode):
                code, _, err = run(SPEC, "--mode", mode)
                self.assertEqual(code, 0, err)

    @share.sometimes(4)
    def test_image_is_kept(self):
        """With peal's kernels, and the function in them, in the unit of partials, too; other device code is other images."""
        cache = tempfile.mkdtemp(dir=SCRATCH.name)
        for count, folder in ((2, SPEC), (2, SPEC), (4, tiny(bytes_of("linked.fatbin") + bytes(8)))):
            self.assertEqual(run(folder, "--mode", "serial", cache=cache)[0], 0)
            images = glob.glob(os.path.join(cache, "peal", "*.cubin"))
            self.assertEqual(len(images), count)
        for path in images:
            with open(path, "rb") as file:
                image = file.read()
            self.assertIn(b"\x7fELF", image)
            self.assertIn(b".text.peal_task_", image)
            self.assertNotIn(b".text.relax_linked", image)  # inlined

    def test_missing_function(self):
        folder = tiny(spec=TINY.replace("relax_linked", "relax_further"))
        line = TINY[:TINY.index("relax_linked")].count("\n") + 1
        code, _, err = run(folder, "--mode", "serial")
        self.assertEqual(code, 3, err)
        self.assertRegex(err, rf"tiny.yaml:{line}:\d+: .*task `relax_further`: neither a kernel file defines "
                              r"PEAL_KERNEL\(relax_further\), nor the device code a function `relax_further` \[E202\]")

    def test_no_device_code(self):
        code, _, err = run(tiny(b"nothing"), "--mode", "serial")
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"tiny.yaml:3:\d+: .*nvJitLink .* cannot link `.*linked.fatbin` for sm_\d+: .*\[E647\]")

    @share.sometimes(4, 2)
    def test_resources(self):
        """Of kernels with the function in them, as they are linked."""
        code, out, err = common.peal_json("plan", SPEC, "--resources", "--json", "--mode", "serial", "--arch", "sm_90",
                                          env=common.environment(XDG_CACHE_HOME=CACHE))
        self.assertEqual(code, 0, err)
        calls = [kernel for kernel in out["modes"][0]["kernels"] if kernel["task"] == "relax_linked"]
        self.assertTrue(calls)
        for kernel in calls:
            blocks = kernel["least_blocks"]
            self.assertIn(blocks, (3,) if kernel["unit"] == "full" else (4, 6))  # light ones have more
            self.assertEqual((kernel["threads"], kernel["register_budget"]), (256, 65536 // (256 * blocks) // 8 * 8))
            self.assertTrue(0 < kernel["registers"] <= kernel["register_budget"], kernel)

    def test_no_linker(self):
        """A library of nvJitLink's name that has nothing of it."""
        folder = tempfile.mkdtemp(dir=SCRATCH.name)
        for number in (12, 13):
            shutil.copy(os.path.join(STANDIN, "libcuda.so.1"), os.path.join(folder, f"libnvJitLink.so.{number}"))
        code, _, err = run(SPEC, "--mode", "serial", libraries=f"{folder}:{STANDIN}")
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"nvJitLink is too old: it has no nvJitLink\w+ \[E646\]")


class Host(unittest.TestCase):
    def test_device_code_is_for_gpus(self):
        code, _, err = common.peal("run", SPEC, "--backend", "host", "--mode", "serial")
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"(?s)no kernel file defines PEAL_KERNEL\(relax_linked\) \[E202\].*"
                              r"functions of `.*linked.fatbin` run on GPUs only")


if __name__ == "__main__":
    unittest.main()
