"""The package peal: specs from dicts and files against NumPy, arrays both ways, rows, diagnostics; declarations against C.

python_test.py: PYTHONPATH has the package, PEAL_ROOT the sources
"""
import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import peal
from peal import _dlpack
from peal._library import ffi

ROOT = os.environ["PEAL_ROOT"]
CTYPES = {"f64": "double", "f32": "float", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t"}
DTYPES = {"f64": "f8", "f32": "f4", "i32": "i4", "i64": "i8", "u8": "u1"}
SHIFT = "PEAL_KERNEL(shift)(peal_tile t, PEAL_READ({c}, a), PEAL_WRITE({c}, b))\n{{\n    PEAL_FOR_3D(t, x, y, z) {{\n" \
        "        PEAL_AT(b, x, y, z) = ({c})(PEAL_AT(a, x - 1, y, z) + PEAL_AT(a, x, y + 1, z) - PEAL_AT(a, x, y, z - 1));\n    }}\n}}\n"


def shift_spec(kind, size):
    return {"peal": 1, "params": {"n": size[0]}, "topology": {"dims": ["auto"] * 3, "periodic": True},
            "kernels": SHIFT.format(c=CTYPES[kind]),
            "fields": {"a": {"type": kind, "size": ["n", size[1], size[2]], "halo": 1}, "b": {"like": "a"}},
            "repeat": 100,
            "step": [{"exchange": "a"}, {"task": "shift", "box": "a", "read": {"a": {"star": 1}}, "write": "b"}, {"swap": ["a", "b"]}]}


def shifted(a):
    return (np.roll(a, 1, 2) + np.roll(a, -1, 1) - np.roll(a, 1, 0)).astype(a.dtype)


SUMS = {"peal": 1, "params": {"n": 12}, "kernels": "PEAL_KERNEL(add)(peal_tile t, PEAL_UPDATE(double, u), PEAL_REDUCE(double, s))\n{\n"
        "    double sum = 0;\n    PEAL_FOR_1D(t, x) {\n        PEAL_AT(u, x) += 1;\n        sum += PEAL_AT(u, x);\n    }\n    PEAL_PARTIAL(s, sum);\n}\n",
        "fields": {"u": {"size": "n"}}, "buffers": {"s": {"keep": True}}, "repeat": 6,
        "step": [{"task": "add", "box": "u", "update": "u", "reduce": {"s": "sum"}}, {"allreduce": {"s": "sum"}},
                 {"print": {"total": "s", "twice": "2 * step"}}, {"print": {"odd": "s"}, "when": "step % 2 == 1"}]}


class Against(unittest.TestCase):
    def test_numpy(self):
        """Random arrays of every type, on 1 to 6 ranks, in every mode of the host."""
        random = np.random.default_rng(7)
        for case in range(20):
            kind = list(DTYPES)[case % 5]
            ranks, mode = int(random.integers(1, 7)), ["serial", "sync", "stream", "fused"][case % 4]
            size = [int(n) for n in random.integers(6, 14, 3)]
            with self.subTest(f"{kind} {size} {ranks} {mode}"), peal.compile(shift_spec(kind, size), ranks, mode) as plan:
                a = (random.random(size[::-1]) * 100).astype(DTYPES[kind])
                plan["a"] = a
                np.testing.assert_array_equal(plan["a"], a)
                for steps in (1, 4):
                    plan.run(steps)
                    for _ in range(steps):
                        a = shifted(a)
                    np.testing.assert_array_equal(plan["a"], a)
                self.assertEqual((plan.mode, plan.rank_count, plan.steps_left), (mode, ranks, 95))
                self.assertEqual(plan.statistics["steps_done"], 5)
                for rank in plan.ranks:
                    here = plan.local("a", rank)
                    np.testing.assert_array_equal(here, a[plan.part("a", rank)])
                    here[...] = rank
                    self.assertEqual([n + 2 for n in here.shape], list(plan.local("a", rank, halo=True).shape))
                self.assertEqual(sorted(np.unique(plan["a"])), list(range(ranks)))

    def test_rows_and_buffers(self):
        with peal.compile(SUMS, 3) as plan:
            plan["u"] = np.arange(12)
            plan.run()
            rows = plan.rows
            self.assertEqual(rows.dtype.names, ("step", "total", "twice", "odd"))
            self.assertEqual(len(rows), 9)
            self.assertEqual(rows["total"][rows["step"] == 5][0], 66 + 6 * 12)
            self.assertEqual(int(np.isnan(rows["odd"]).sum()), 6)
            np.testing.assert_array_equal(plan["s"], [138])
            plan["s"] = 4
            np.testing.assert_array_equal(plan.local("s", 2), [4])
            self.assertEqual(plan.names, ["u", "s"])
            self.assertEqual(plan.steps_left, 0)
            self.assertIn("3 ranks", repr(plan))

    def test_params_verify_digest(self):
        digests = set()
        for mode in ("serial", "fused"):
            with peal.run(SUMS, 4, mode, params={"n": np.int64(40)}, verify=True) as plan:
                self.assertEqual(plan["u"].shape, (40,))
                plan.verify()
                digests.add(plan.digest())
                self.assertEqual(plan.digest("u"), plan.digest("u"))
        self.assertEqual(len(digests), 1)

    def test_lent(self):
        """A field in an array of the program; an object that has DLPack alone, as tensors do."""
        class Tensor:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **words):
                return self.array.__dlpack__(**words)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        spec = shift_spec("f64", [8, 6, 7])
        for wrap in (lambda array: array, Tensor):
            u = np.zeros((9, 8, 10))
            a = u[1:-1, 1:-1, 1:-1]
            a[...] = np.random.default_rng(3).random(a.shape)
            expected = shifted(shifted(a))
            with peal.compile(spec, 1, "stream", lend={"a": wrap(u)}) as plan:
                plan.run(2)
                np.testing.assert_array_equal(a, expected)
                np.testing.assert_array_equal(plan.local("a"), expected)
                plan["a"] = 7
                self.assertTrue((a == 7).all())
        for array, words in ((np.zeros((9, 8, 9)), "of shape \\(9, 8, 10\\), halo included"), (np.zeros((9, 8, 10), "f4"), "float32"),
                             (np.zeros((9, 8, 20))[:, :, ::2], "not dense")):
            with self.assertRaisesRegex(ValueError, words):
                peal.compile(spec, 1, lend={"a": array})
        with self.assertRaisesRegex(KeyError, "no field 'c'"):
            peal.compile(spec, 1, lend={"c": np.zeros(3)})
        with self.assertRaisesRegex(TypeError, "no array"):
            peal.compile(spec, 1, lend={"a": 3})

    def test_file(self):
        path = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        with peal.run(path, 2, params={"nx": 32, "ny": 16}, steps=5) as plan:
            self.assertEqual(plan["a"].shape, (14, 32))  # rows 1 to 14, between the walls


JOB = """
import sys
import numpy as np, peal
from python_test import SUMS, shift_spec, shifted
session = None
if sys.argv[1] == "mpi4py":
    from mpi4py import MPI
    session = peal.Session(MPI.COMM_WORLD)
me = (session or peal.Session.shared()).process
whole = np.random.default_rng(2).random((6, 9, 3))
part = slice(5 * (1 - me), 5 + 4 * (1 - me))  # process 1 comes first, and has a point more
u = [np.zeros((6 + 2, part.stop - part.start + 3, 3)) for _ in range(2)]
for array in u:
    array[1:-1, 1:-2] = whole[:, part]
with peal.Exchange((part.start, 0), (part.stop, 6), [u], width=[(1, 2), 1], periodic=True, components=True, session=session) as halo:
    halo(1)
    halo.start()
    halo.wait()
    assert "2 messages" in halo.describe()
columns = np.arange(part.start - 1, part.stop + 2) % 9
for array in u:
    assert (array == whole[np.arange(-1, 7) % 6][:, columns]).all()
with peal.compile(shift_spec("i64", [8, 7, 9]), 5, session=session) as plan:
    a = np.random.default_rng(1).integers(0, 100, (9, 7, 8))
    for rank in plan.ranks:
        plan.local("a", rank)[...] = a[plan.part("a", rank)]
    plan.run(5)
    for _ in range(5):
        a = shifted(a)
    equal = [bool((plan.local("a", rank) == a[plan.part("a", rank)]).all()) for rank in plan.ranks]
    try:
        plan["a"]
    except ValueError:
        equal.append(True)
with peal.compile(SUMS, 4, session=session) as plan:
    rows = len(plan.run().rows)
session = session or peal.Session.shared()
sys.stdout.write(f"{session.process} of {session.processes}: {equal} {rows}\\n")
if sys.argv[1] == "raises" and session.process == 1:
    raise KeyError("mine")
if sys.argv[1] == "raises":
    peal.run(SUMS, 4)
"""


class OnGpu(unittest.TestCase):
    """Run alone, on a GPU or one whose kernels the host runs (PEAL_TEST_BACKEND=cuda)."""

    def setUp(self):
        if os.environ.get("PEAL_TEST_BACKEND") != "cuda":
            self.skipTest("PEAL_TEST_BACKEND is not cuda")

    def test_fields(self):
        a = np.random.default_rng(5).random((7, 6, 8))
        with peal.compile(shift_spec("f64", [8, 6, 7]), 2, "stream", backend="cuda") as plan:
            plan["a"] = a
            plan.run(3)
            for _ in range(3):
                a = shifted(a)
            np.testing.assert_array_equal(plan["a"], a)
            self.assertEqual(plan.backend, "cuda")
            interface = plan.local("a", 1, halo=True).__cuda_array_interface__
            self.assertEqual((interface["typestr"], interface["strides"][-1]), ("<f8", 8))
            self.assertEqual(interface["shape"], tuple(s.stop - s.start + 2 for s in plan.part("a", 1)))

    def test_torch_and_cupy(self):
        """Fields lent to them, and the exchange of arrays that they own, on their stream."""
        if "emulating" in os.environ.get("LD_LIBRARY_PATH", "") or not (importlib.util.find_spec("torch") and importlib.util.find_spec("cupy")):
            self.skipTest("no torch and cupy, or no GPU")
        import cupy
        import torch
        rng = np.random.default_rng(7)
        a = rng.random((7, 6, 8))
        with peal.compile(shift_spec("f64", [8, 6, 7]), 1, "stream", backend="cuda") as plan:
            plan["a"] = a
            for taken in (cupy.asarray, cupy.from_dlpack, lambda m: torch.as_tensor(m, device="cuda"), torch.from_dlpack):
                view = taken(plan.local("a"))
                np.testing.assert_array_equal(view.get() if isinstance(view, cupy.ndarray) else view.cpu().numpy(), a)
                view += 1
                a += 1
                del view
                torch.cuda.synchronize()
                cupy.cuda.Device().synchronize()
                np.testing.assert_array_equal(plan["a"], a)
        for make in (lambda m: torch.from_numpy(m).cuda(), cupy.asarray):
            owned = rng.random((5, 6))
            array = make(np.pad(owned, 1))
            stream = torch.cuda.Stream() if isinstance(array, torch.Tensor) else cupy.cuda.Stream(non_blocking=True)
            torch.cuda.synchronize()
            cupy.cuda.Device().synchronize()
            with peal.Exchange((0, 0), (6, 5), array, periodic=True, backend="cuda") as exchange:
                exchange(stream=stream.cuda_stream if isinstance(array, torch.Tensor) else stream.ptr)
                stream.synchronize()
                found = array.cpu().numpy() if isinstance(array, torch.Tensor) else array.get()
                np.testing.assert_array_equal(found, np.pad(owned, 1, mode="wrap"))
                if isinstance(array, torch.Tensor):
                    with torch.cuda.graph(torch.cuda.CUDAGraph()), self.assertRaisesRegex(peal.Error, "captur"):
                        exchange(stream=torch.cuda.current_stream().cuda_stream)

    def test_dlpack(self):
        """The memory of one whose kernels the host runs is the host's: NumPy may read it, once told so."""

        class Host:
            def __init__(self, lent):
                self.lent, self.device = lent, lent.__dlpack_device__()

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                capsule = self.lent.__dlpack__()
                managed = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(_dlpack._Managed)).contents
                assert managed.device_type == _dlpack.CUDA
                managed.device_type = _dlpack.HOST
                return capsule

        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
        a = np.random.default_rng(6).random((7, 6, 8))
        with peal.compile(shift_spec("f64", [8, 6, 7]), 2, "stream", backend="cuda") as plan:
            plan["a"] = a
            lent = plan.local("a", 1)
            self.assertRaises(BufferError, lent.__dlpack__, copy=True)
            lent.__dlpack__()  # nobody takes it
            self.assertEqual(len(_dlpack._lent), 0)
            self.assertEqual(lent.__dlpack_device__()[0], 2)
            if "emulating" not in os.environ.get("LD_LIBRARY_PATH", ""):
                return
            view = np.from_dlpack(Host(lent))
            np.testing.assert_array_equal(view, a[plan.part("a", 1)])
            self.assertEqual(len(_dlpack._lent), 1)
            del view
            self.assertEqual(len(_dlpack._lent), 0)


class Processes(unittest.TestCase):
    def start(self, how):
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun")
        env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], os.path.dirname(os.path.abspath(__file__))])}
        return subprocess.run(["mpirun", "--oversubscribe", "-n", "2", sys.executable, "-c", JOB, how], capture_output=True, text=True,
                              check=False, timeout=120, env=env)

    def job(self, how):
        done = self.start(how)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "0 of 2: [True, True, True, True] 9", "1 of 2: [True, True, True] 0"])

    def test_launcher(self):
        self.job("pmix")

    def test_exception(self):
        """It ends the job, in which others wait."""
        done = self.start("raises")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("KeyError: 'mine'", done.stderr)

    def test_communicator(self):
        if importlib.util.find_spec("mpi4py") is None:
            self.skipTest("no mpi4py")
        self.job("mpi4py")


class Exchanged(unittest.TestCase):
    def test_alone(self):
        """One process is its own neighbour; rows with a margin, and a field beside it of another type."""
        whole = np.arange(20).reshape(4, 5)
        frame = np.full((8, 12), -1)
        u, v = frame[:6, :7], np.zeros((6, 7), "f4")
        u[1:-1, 1:-1] = whole
        v[1:-1, 1:-1] = whole
        with peal.Exchange((3, 0), (8, 4), [u, v], periodic=(True, False), star=True) as halo:
            halo()
        np.testing.assert_array_equal(u[1:-1], whole[:, np.arange(-1, 6) % 5])
        np.testing.assert_array_equal(v[1:-1], u[1:-1])
        self.assertTrue((frame[:, 7:] == -1).all() and (u[0] == -1).all() and (v[-1] == 0).all())

    def test_refused(self):
        u = np.zeros((6, 7))
        with self.assertRaisesRegex(ValueError, "17 fields; an exchange has at most 16"):
            peal.Exchange((0, 0), (5, 4), [u] * 17)
        for words, array, more in (("the box and its halo have \\(6, 8\\)", u, {"hi": (6, 4)}), ("not contiguous along x", u[:, ::-1], {}),
                                   ("of complex128", u.astype(complex), {}), ("3 axes are listed", u, {"width": (1, 1, 1)}),
                                   ("receives 2", u, {"width": 2, "halo": 1}), ("lie differently", [(u, np.zeros((6, 9))[:, :7])], {}),
                                   ("read-only", np.broadcast_to(0.0, (6, 7)), {}), ("backend 'gpu'", u, {"backend": "gpu"})):
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError, peal.Error), words):
                peal.Exchange(**{"lo": (0, 0), "hi": (5, 4), "fields": array, **more})


class Wrong(unittest.TestCase):
    def test_spec(self):
        spec = json.loads(json.dumps(SUMS))
        spec["step"][0]["update"] = "v"
        for _ in range(2):  # told each time
            found = peal.check(spec, 2)
            self.assertEqual([d.is_error for d in found], [True])
            line = json.dumps(spec, indent=1).splitlines()[found[0].line - 1]
            self.assertIn("update", line)
            with self.assertRaises(peal.Error) as caught:
                peal.compile(spec, 2)
            self.assertEqual(caught.exception.status, "error in the spec")
            self.assertEqual(str(caught.exception.diagnostics[0]), str(found[0]))
            self.assertRegex(str(found[0]), r"^spec:\d+:\d+: error: .* \[E\d+\]\n    ")

    def test_fine(self):
        self.assertEqual(peal.check(SUMS, 3), [])

    def test_calls(self):
        with peal.compile(SUMS, 2) as plan:
            with self.assertRaisesRegex(KeyError, "no 'v'; it has u, s"):
                plan["v"]
            with self.assertRaisesRegex(TypeError, "float64, not complex"):
                plan["u"] = np.zeros(12, complex)
            with self.assertRaisesRegex(ValueError, r"'u' has shape \(12,\) .*, what it is set to \(11,\)"):
                plan["u"] = np.zeros(11)
            with self.assertRaisesRegex(ValueError, "-2 steps"):
                plan.run(-2)
            with self.assertRaisesRegex(peal.Error, "peal_plan_verify|verify"):
                plan.verify()
        with self.assertRaisesRegex(ValueError, "closed"):
            plan["u"]
        spec = shift_spec("f64", [6, 6, 6])
        spec["step"][1]["read"] = "a"
        with self.assertRaisesRegex(peal.Error, "E363"), peal.compile(spec, 1, check_footprints=True) as plan:
            plan.run(1)
        with self.assertRaisesRegex(peal.Error, "there is no backend 'gpu'"):
            peal.compile(SUMS, 2, backend="gpu")
        with self.assertRaisesRegex(TypeError, "no place for"):
            peal.check({"peal": object()})
        with self.assertRaises(peal.Error):
            peal.compile("/nowhere/at.yaml")

    def test_warning(self):
        spec = json.loads(json.dumps(SUMS))
        spec["fields"]["w"] = {"size": "n", "halo": 1}
        spec["step"].insert(0, {"exchange": "w"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            peal.compile(spec, 2).close()
        self.assertTrue(any(issubclass(w.category, peal.SpecWarning) and re.search(r"warning: .* \[E\d+\]", str(w.message))
                            for w in caught), [str(w.message) for w in caught])


class Library(unittest.TestCase):
    def test_declarations(self):
        """Sizes and enumerations are those that a C compiler sees."""
        with open(os.path.join(os.path.dirname(peal.__file__), "declarations.h"), encoding="ascii") as file:
            text = file.read()
        structs = [n for n in re.findall(r"^\} (peal_\w+);", text, re.M) if not re.search(rf"enum {n} ", text)]
        values = re.findall(r"\b(PEAL_[A-Z0-9_]+)\b(?= *[=,}\n])", text)
        self.assertGreater(len(structs), 25)
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
            with open(source, "w", encoding="ascii") as file:
                file.write("#include <peal/peal.h>\n#include <stdio.h>\nint main(void)\n{\n")
                file.writelines(f'    printf("{n} %zu\\n", sizeof({n}));\n' for n in structs)
                file.writelines(f'    printf("{n} %d\\n", (int){n});\n' for n in values)
                file.write("}\n")
            subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), source, "-o", program], check=True)
            out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        from peal._library import lib
        for line in out.splitlines():
            name, value = line.split()
            found = ffi.sizeof(name) if name.startswith("peal_") else getattr(lib, name)
            self.assertEqual(found, int(value), name)

    def test_sample(self):
        sample = os.path.join(ROOT, "samples", "python", "diffusion.py")
        with open(os.path.join(ROOT, "samples", "python", "README.md"), encoding="ascii") as file:
            promised = re.findall(r"^    ((?:step|heat) .*)$", file.read(), re.M)
        with tempfile.TemporaryDirectory() as folder:
            picture = os.path.join(folder, "heat.png")
            out = subprocess.run([sys.executable, sample, "256", "1000", picture], capture_output=True, text=True, check=True).stdout
            for line in promised:
                self.assertIn(line, out.splitlines())
            try:
                import matplotlib  # noqa: F401
            except ImportError:
                self.skipTest("no matplotlib: the picture was not drawn")
            with open(picture, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
