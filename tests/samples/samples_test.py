#!/usr/bin/env python3
"""Runs the samples as their users do and checks what they print and write.

    samples_test.py CASE SOURCE_ROOT PEAL EMBED EXCHANGE

The cases stand in tests/samples/meson.build. Samples run in a copy of their folder, so that files
they write don't meet those of another case. Exit code 77 means skipped.
"""

import ast
import filecmp
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from loops import diffused, relaxed, searched

RANKS = (1, 2, 4, 7)
MODES = ("serial", "sync", "stream", "fused")
SKIPPED = 77

# Small enough for a slow machine, with uneven parts.
SMALL = {
    "jacobi2d/jacobi2d": ["nx=130", "ny=103", "steps=40", "report=10"],
    "heat3d/heat3d": ["steps=12", "report=5"],
    "halo/halo": ["nx=90", "ny=61", "steps=30", "report=10"],
    "halo/short": ["nx=90", "ny=61", "steps=30", "report=10"],
    "denoise/denoise": ["steps=6"],
    "cg/cg": ["n=60"],
    "vcycle/vcycle": ["n=36", "cycles=4", "coarse=20"],
    "hpgmg/hpgmg": ["n=16", "vcycles=1", "sweeps=2"],
    "cavity/cavity": ["n=21", "steps=25", "report=6"],
    "mesh/mesh": ["steps=30", "report=10"],
    "particles/particles": ["each=40", "steps=60", "report=20"],
    "bfs/bfs": ["n=700"],
    "hdiff/hdiff": ["nx=37", "ny=22", "levels=3", "steps=9", "report=4"],
    "hdiff/pair": ["nx=37", "ny=22", "levels=3", "steps=9", "report=4"],
    "jacobi_until/jacobi_until": ["nx=40", "ny=37", "tol=0.1"],
}


class Case:
    def __init__(self, root, peal, embed, exchange, scratch):
        self.samples = pathlib.Path(root) / "samples"
        programs = [pathlib.Path(program).resolve() for program in (peal, embed, exchange)]
        self.peal, self.embed, self.exchange = programs
        self.scratch = pathlib.Path(scratch)

    def folder(self, sample):
        """A copy of the sample's folder, made once."""
        copy = self.scratch / sample
        if not copy.exists():
            shutil.copytree(self.samples / sample, copy)
        return copy

    def run(self, spec, ranks, *options, sets=()):
        """Runs SAMPLE/SPEC and returns what --json prints."""
        sample, name = spec.split("/")
        folder = self.folder(sample)
        command = [self.peal, "run", str(folder / f"{name}.yaml"), "-n", str(ranks), "--json"]
        command += options
        for assignment in sets:
            command += ["--set", assignment]
        return json.loads(execute(command, cwd=folder))


def execute(command, **more):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        fail(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def fail(message):
    sys.exit(f"FAILED: {message}")


def expect(condition, message):
    if not condition:
        fail(message)


def find(document, key):
    """Every value of a key, however deep in a JSON document."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key:
                yield value
            yield from find(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from find(value, key)


def rows_of(document):
    """The table that the run printed."""
    tables = [rows for rows in find(document, "rows") if rows]
    expect(tables, f"no rows in {document}")
    expect(all(rows == tables[0] for rows in tables), "modes print different rows")
    return tables[0]


def load(path):
    """Elements and shape of an .npy file of version 1."""
    data = pathlib.Path(path).read_bytes()
    expect(data[:8] == b"\x93NUMPY\x01\x00", f"{path} is no .npy file of version 1.0")
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    kind = {"|u1": "B", "<i4": "i", "<f4": "f", "<f8": "d"}[header["descr"]]
    count = 1
    for extent in header["shape"]:
        count *= extent
    return struct.unpack_from(f"<{count}{kind}", data, 10 + length), header["shape"]


def kernels_are_clean(case):
    """No warnings; a spec decides which parameters a kernel has, so some may be unused."""
    flags = ["-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Wshadow", "-Werror"]
    flags += ["-Wno-unused-parameter", "-Wno-unused-function", "-std=gnu11", "-fsyntax-only"]
    flags += ["-I", case.samples.parent / "include", "-include", "peal/kernel.h"]
    kernels = sorted({spec.split("/")[0] for spec in SMALL})
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    expect(compilers, "neither gcc nor clang")
    for compiler in compilers:
        for name in kernels:
            execute([compiler, *flags, case.samples / name / f"{name}.c"])


def schema(case):
    """The schema beside the samples is the one of this build, and the samples obey it."""
    shipped = (case.samples / "peal.schema.json").read_text()
    current = execute([case.peal, "schema"])
    expect(json.loads(shipped) == json.loads(current), "peal schema > samples/peal.schema.json")
    try:
        import jsonschema
    except ImportError:
        print("no jsonschema")
        sys.exit(SKIPPED)
    for spec in SMALL:
        sample, name = spec.split("/")
        path = case.samples / sample / f"{name}.yaml"
        document = execute([case.peal, "check", path, "-n", "4", "--print-json"])
        jsonschema.validate(json.loads(document), json.loads(current))
        expect("$schema=../peal.schema.json" in path.read_text().splitlines()[0], path)


def agree(case, spec):
    for ranks in RANKS:
        sets = list(SMALL[spec])
        if spec == "mesh/mesh":
            sets.append(f"parts=parts-{ranks}")
        case.run(spec, ranks, "--mode", "all", "--verify", sets=sets)
        for processes in (1, 2):
            if processes < ranks:
                case.run(spec, ranks, "--verify", "--processes", str(processes), sets=sets)


def readmes(case):
    """The tables in the READMEs are what comes out (of jacobi2d, see norms)."""
    sets = {"cg": ["n=256"]}
    for spec in [name for name in SMALL if name.split("/")[0] == name.split("/")[1] != "jacobi2d"]:
        sample = spec.split("/")[0]
        text = (case.samples / sample / "README.md").read_text().split("Expected:")[1]
        block = [line.split() for line in text.splitlines() if line.startswith("        ")]
        table, heads = [], []
        for line in block:
            if line[0] == "step":
                heads = line
            else:
                table.append(dict(zip(heads, map(float, line))))
        rows = rows_of(case.run(spec, 4, sets=sets.get(sample, [])))
        expect(len(rows) == len(table), f"{sample}: {len(rows)} rows, {len(table)} in README.md")
        for row, promised in zip(rows, table):
            for name, value in promised.items():
                close = abs(row[name] - value) <= 1e-6 * abs(value)
                expect(close, f"{sample}: {name} is {row[name]}, README.md says {value}")


def footprints(case):
    """No kernel touches what its task doesn't declare; and a task that declares too little is met."""
    for spec, sets in SMALL.items():
        case.run(spec, 4, "--check-footprints", "--steps", "3", sets=sets)
    spec = case.folder("heat3d") / "heat3d.yaml"
    text = spec.read_text()
    expect(text.count("{u: {grow: 1}}") == 1, "heat3d.yaml reads u otherwise")
    spec.write_text(text.replace("{u: {grow: 1}}", "{u: {star: 1}}"))
    command = [case.peal, "run", spec, "-n", "2", "--check-footprints", "--steps", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    expect(done.returncode not in (0, 2), f"nobody saw that heat3d reads corners: {done}")
    expect("spread" in done.stderr, f"the task is not named: {done.stderr}")


def launched(case):
    """The specs as a launcher's processes run them."""
    launcher = under_mpirun(4)
    if not launcher:
        print("no mpirun")
        sys.exit(SKIPPED)
    for spec, sets in SMALL.items():
        sample, name = spec.split("/")
        command = launcher + [case.peal, "run", case.folder(sample) / f"{name}.yaml"]
        command += ["--mode", "all", "--verify"]
        for assignment in sets:
            command += ["--set", assignment]
        last = execute(command).rstrip().splitlines()[-1]
        expect(last == "Result: every mode equal to serial, bit for bit.", f"{spec}: {last}")


def norms(case, n):
    """Five significant digits of what NVIDIA's samples print."""
    sets = [f"nx={n}", f"ny={n}", "steps=901"]
    document = case.run("jacobi2d/jacobi2d", 4 if n < 4096 else 2, sets=sets)
    printed = {row["step"]: row["norm"] for row in rows_of(document)}
    compared = 0
    for line in (case.samples / "jacobi2d" / "norms.csv").read_text().splitlines():
        if line.startswith(f"{n},{n},"):
            step, norm = int(line.split(",")[2]), float(line.split(",")[3])
            fifth_digit = 10.0 ** (math.floor(math.log10(norm)) - 4)
            close = abs(printed[step] - norm) <= 0.5 * fifth_digit + 0.5e-6  # norm has 6 decimals
            expect(close, f"step {step}: {printed[step]} is not {norm}")
            compared += 1
    expect(compared == 5, f"norms.csv has {compared} norms for {n}, not 5")


def heat_is_kept(case):
    for ranks in RANKS:
        rows = rows_of(case.run("heat3d/heat3d", ranks))
        for row in rows:
            expect(abs(row["heat"] - 92500.0) < 1e-7, f"{ranks} ranks: heat is lost: {row}")
        hottest = [row["hottest"] for row in rows]
        expect(hottest == sorted(hottest, reverse=True), f"it grows hotter: {hottest}")
        expect(rows[-1]["step"] == 180 and abs(hottest[-1] - 20.3288) < 1e-4, f"last: {rows[-1]}")


def halo_by_hand(case):
    for ranks in RANKS:
        by_hand = rows_of(case.run("halo/halo", ranks))
        by_peal = rows_of(case.run("halo/short", ranks))
        expect(by_hand == by_peal, f"{ranks} ranks: {by_hand} is not {by_peal}")
        expect(by_hand[0]["change"] > by_hand[-1]["change"] > 0, "the plate doesn't settle")


def picture(case):
    folder = case.folder("denoise")
    clean, shape = load(folder / "chelsea.npy")
    seen = None
    for ranks in RANKS:
        rows = rows_of(case.run("denoise/denoise", ranks))
        result, result_shape = load(folder / "denoised.npy")
        noisy, noisy_shape = load(folder / "noisy.npy")
        expect(result_shape == noisy_shape == shape == (300, 451), f"shape {result_shape}")
        expect(seen in (None, (result, noisy)), f"{ranks} ranks give another picture")
        seen = result, noisy
        expect(deviation(noisy, clean) > 19.0, "there is no noise")
        expect(deviation(result, clean) < 8.0, "the noise is still there")
        expect(abs(rows[-1]["error"] - deviation(result, clean)) < 0.2, f"{rows[-1]}")


def deviation(a, b):
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)) ** 0.5


def cg_converges(case):
    for n, iterations in ((64, 204), (128, 407)):
        for ranks in RANKS:
            (row,) = rows_of(case.run("cg/cg", ranks, sets=[f"n={n}"]))
            expect(abs(row["iterations"] - iterations) <= 2, f"n = {n}: {row}")
            expect(row["residual"] < 1e-8, f"n = {n}: {row}")


def vcycle_converges(case):
    for ranks in RANKS:
        residuals = [row["residual"] for row in rows_of(case.run("vcycle/vcycle", ranks))]
        expect(abs(len(residuals) - 34) <= 1, f"{len(residuals)} cycles instead of 34")
        expect(residuals[-1] < 1e-8 <= residuals[-2], f"ended at {residuals[-2:]}")
        for k in range(2, len(residuals) - 2):
            expect(residuals[k + 2] < 0.5 * residuals[k], f"cycle {k}: {residuals[k : k + 3]}")


# What HPGMG's own program prints for 64^3: residuals behind the F-cycle and each V-cycle, relative to the right-hand side.
HPGMG = (2.585761839481744e-03, 1.204957626492045e-04, 5.898809933302513e-06, 3.102505045287760e-07, 1.677898272586987e-08,
         9.278311813036655e-10, 5.220912385984953e-11)


def hpgmg_norms(case):
    first = None
    for ranks in (1, 2, 8):
        rows = [row["rel"] for row in rows_of(case.run("hpgmg/hpgmg", ranks, sets=["n=64"]))]
        expect(len(rows) == len(HPGMG), f"{len(rows)} rows")
        for found, wanted in zip(rows, HPGMG):
            expect(abs(found - wanted) < 1e-13, f"{ranks} ranks: {found!r} is not {wanted!r}")
        expect(first in (None, rows), f"{ranks} ranks: {rows}, on 1 rank {first}")
        first = rows
        (*_, last) = rows_of(case.run("hpgmg/error", ranks))
        expect(abs(last["error"] - 4.061097308555436e-05) < 1e-12 * 4.061097308555436e-05, f"{ranks} ranks: {last}")


# Largest velocities on the middle lines at a Reynolds number of 100, in the lid's: Ghia, Ghia and Shin, J. Comput. Phys. 48 (1982).
GHIA = {"back": -0.21090, "up": 0.17527, "down": -0.24533}


def cavity_flows(case):
    n, lid, first = 64, 0.1, None
    try:
        import numpy
    except ImportError:
        numpy = None
    for ranks, steps in ((1, 300), (2, 300), (8, 300), (3, 12000)):
        rows = rows_of(case.run("cavity/cavity", ranks, sets=[f"n={n}", f"steps={steps}", "report=100"]))
        for row in rows:
            expect(abs(row["mass"] - n * n) < 1e-10 * n * n, f"{ranks} ranks: {row}")
        if not numpy:
            continue
        velocity = numpy.load(case.folder("cavity") / "velocity.npy")
        expect(velocity.shape == (2, n, n), f"{velocity.shape}")
        if steps == 300:
            expect(first is None or numpy.array_equal(first, velocity), f"{ranks} ranks: another velocity than on 1")
            first = velocity
    if not numpy:
        print("no numpy")
        sys.exit(SKIPPED)
    u, v = (velocity[0, :, n // 2 - 1 : n // 2 + 1].mean(axis=1) / lid, velocity[1, n // 2 - 1 : n // 2 + 1, :].mean(axis=0) / lid)
    for name, found in (("back", u.min()), ("up", v.max()), ("down", v.min())):
        expect(abs(found - GHIA[name]) < 0.02 * abs(GHIA[name]), f"{name}: {found}, not {GHIA[name]}")


# Modes by ranks; that all modes are alike is checked elsewhere.
SOME = ((1, "fused"), (2, "sync"), (4, "serial"), (4, "fused"))


def with_results(case, spec, *fields):
    """A copy of a spec that also saves fields at its end."""
    sample, name = spec.split("/")
    folder = case.folder(sample)
    text = (folder / f"{name}.yaml").read_text().rstrip()
    text += "" if "\nfinish:" in text else "\nfinish:"
    for field in fields:
        text += f'\n  - {{save: {field}, file: "{field}.npy"}}'
    (folder / f"{name}_saved.yaml").write_text(text + "\n")
    return f"{sample}/{name}_saved"


def result_of(case, spec, field):
    """What a run of it has saved, once."""
    path = case.folder(spec.split("/")[0]) / f"{field}.npy"
    result = load(path)
    path.unlink()
    return result


def diffusion(case):
    """The bits of plain loops, whatever the number of ranks; nothing is lost."""
    nx, ny, levels, steps = 23, 18, 2, 12
    sets = [f"nx={nx}", f"ny={ny}", f"levels={levels}", f"steps={steps}", "report=3"]
    one, other = (diffused(nx, ny, levels, steps, *how) for how in ((160.0, 0), (-80.0, 23)))
    for spec, fields in (("hdiff/hdiff", {"in": one}), ("hdiff/pair", {"u": one, "v": other})):
        saved = with_results(case, spec, *fields)
        for ranks, mode in SOME:
            how = f"{spec}, {mode} on {ranks} ranks"
            rows = rows_of(case.run(saved, ranks, "--mode", mode, sets=sets))
            for field, expected in fields.items():
                values, shape = result_of(case, spec, field)
                expect(shape == (levels, ny, nx), f"{how}: shape {shape}")
                expect(values == expected, f"{how}: another {field}")
            for name in (name for name in rows[0] if name.endswith("mean")):
                moved = max(abs(row[name] - rows[0][name]) for row in rows)
                expect(moved < 1e-12, f"{how}: {name} moves by {moved}")


def stops(case):
    """After the step after which plain loops stop, with their mesh; with lag so many steps later."""
    nx, ny, tol = 20, 18, 0.05
    mesh, steps, norm = relaxed(nx, ny, tol)
    saved = with_results(case, "jacobi_until/jacobi_until", "a")
    for ranks, mode, lag in [(*some, 0) for some in SOME] + [(2, "sync", 1), (4, "fused", 3)]:
        how = f"{mode} on {ranks} ranks, lag {lag}"
        sets = [f"nx={nx}", f"ny={ny}", f"tol={tol}", f"lag={lag}"]
        (row,) = rows_of(case.run(saved, ranks, "--mode", mode, sets=sets))
        values, _ = result_of(case, saved, "a")
        expect(row["steps"] == steps + lag, f"{how}: {row['steps']} steps, not {steps} + {lag}")
        expect((values == mesh) == (lag == 0), f"{how}: not the mesh after {steps} + {lag} steps")
        expect(lag > 0 or abs(row["norm"] - norm) < 1e-9, f"{how}: {row['norm']}, not {norm}")


def mesh_is_cut(case):
    """The same bits for every node, whatever the number of parts."""
    folder = case.folder("mesh")
    seen = None
    for ranks in RANKS:
        case.run("mesh/mesh", ranks, sets=[f"parts=parts-{ranks}"])
        whole = {}
        for rank in range(ranks):
            nodes, _ = load(folder / f"parts-{ranks}" / f"nodes-{rank}.npy")
            values, _ = load(folder / f"u-{rank}.npy")
            expect(len(nodes) == len(values), f"rank {rank} of {ranks}: {len(values)} values")
            whole.update(zip(nodes, values))
        expect(sorted(whole) == list(range(640)), f"{ranks} ranks: nodes are missing")
        expect(seen in (None, whole), f"{ranks} ranks: other values")
        seen = whole
    expect(abs(sum(seen.values()) - 1300.0) < 1e-9, "heat is lost")
    expect(max(seen.values()) < 5.0, "heat doesn't spread")


def mesh_files(case):
    """mesh.py writes the files that are shipped."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("no numpy")
        sys.exit(SKIPPED)
    folder = case.folder("mesh")
    for ranks in RANKS:
        made = case.scratch / f"made-{ranks}"
        execute([sys.executable, folder / "mesh.py", ranks, made])
        shipped = folder / f"parts-{ranks}"
        names = sorted(os.listdir(shipped))
        expect(names == sorted(os.listdir(made)), f"{shipped}: other files")
        _, differing, missing = filecmp.cmpfiles(shipped, made, names, shallow=False)
        expect(not differing and not missing, f"{shipped}: {differing + missing}")


def under_mpirun(processes):
    """The words before a program that start it as a job, or None."""
    if not shutil.which("mpirun"):
        return None
    os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return ["mpirun", "--oversubscribe", "-n", str(processes)]


def search(case):
    """Level by level what a plain search finds, on any grid of ranks."""
    n, degree = 900, 2
    found, reached, levels = searched(n, degree, 5)
    for ranks, mode in SOME + ((6, "stream"), (7, "serial")):
        how = f"{mode} on {ranks} ranks"
        sets = [f"n={n}", f"degree={degree}", "root=5"]
        rows = rows_of(case.run("bfs/bfs", ranks, "--mode", mode, sets=sets))
        expect([row["found"] for row in rows[:-1]] == found, f"{how}: {rows}")
        expect([rows[-1]["reached"], rows[-1]["levels"]] == [reached, levels], f"{how}: {rows[-1]}")


def counts(case):
    """A count that is out of range ends the run in each mode, and the run says whose it was."""
    faults = (
        ("out=2", "`send left", "elements, of at most 4"),
        ("room=51", "`move` has", "points, of at most 51"),
    )
    spec = case.folder("particles") / "particles.yaml"
    for mode in MODES:
        for setting, *said in faults:
            command = [case.peal, "run", spec, "-n", "4", "--mode", mode, "--set", setting]
            done = subprocess.run(command, capture_output=True, text=True)
            expect(done.returncode == 3, f"{mode}, {setting}: exit code {done.returncode}")
            for words in ["E370"] + said:
                expect(words in done.stderr, f"{mode}, {setting}: {done.stderr}")


def embed(case):
    for ranks in RANKS:
        for mode in MODES:
            lines = execute([case.embed, ranks, mode]).splitlines()
            expect(lines[0] == f"240 x 240 points, 2000 steps, ranks: {ranks}, mode: {mode}", lines)
            expect(lines[1:] == ["process 0 of 1: the plate is as the waves foretold"], lines)
    for processes in (2, 4):
        launcher = under_mpirun(processes)
        if launcher:
            lines = sorted(execute(launcher + [case.embed]).splitlines())
            expect(lines[0].startswith(f"240 x 240 points, 2000 steps, ranks: {processes},"), lines)
            expect(
                lines[1:]
                == [
                    f"process {k} of {processes}: the plate is as the waves foretold"
                    for k in range(processes)
                ],
                lines,
            )


def exchange(case):
    for processes in RANKS:
        launcher = [] if processes == 1 else under_mpirun(processes)
        if launcher is None:
            continue
        lines = sorted(execute(launcher + [case.exchange, 90, 53, 400]).splitlines())
        expected, first = [f"90 x 53 points, 400 steps, processes: {processes}"], 0
        for k in range(processes):
            end = 53 * (k + 1) // processes
            expected.append(
                f"process {k} of {processes}: rows {first} to {end - 1} are where the waves should be"
            )
            first = end
        expect(lines == expected, f"{lines} is not {expected}")


CASES = {
    "schema": schema,
    "kernels-are-clean": kernels_are_clean,
    "readmes": readmes,
    "footprints": footprints,
    "launched": launched,
    "heat-is-kept": heat_is_kept,
    "halo-by-hand": halo_by_hand,
    "picture": picture,
    "cg-converges": cg_converges,
    "vcycle-converges": vcycle_converges,
    "hpgmg-norms": hpgmg_norms,
    "cavity-flows": cavity_flows,
    "mesh-is-cut": mesh_is_cut,
    "mesh-files": mesh_files,
    "diffusion": diffusion,
    "stops": stops,
    "search": search,
    "counts": counts,
    "embed": embed,
    "exchange": exchange,
}
for n in (256, 1024, 4096):
    CASES[f"norms-{n}"] = lambda case, n=n: norms(case, n)
for spec in SMALL:
    CASES["agree-" + spec.split("/")[1]] = lambda case, spec=spec: agree(case, spec)


def main():
    if len(sys.argv) != 6 or sys.argv[1] not in CASES:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        CASES[sys.argv[1]](Case(*sys.argv[2:], scratch))


if __name__ == "__main__":
    main()
