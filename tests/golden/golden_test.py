#!/usr/bin/env python3
# Golden schedules: the text of `peal plan` for small runs of the samples and one other spec, kept as files.
#
#   golden_test.py ROOT PEAL            compare; a difference is printed; two compilations must
#                                        give the same bytes
#   golden_test.py ROOT PEAL --update   write the files anew, to be read in the diff
import difflib
import json
import os
import subprocess
import sys

MACHINE = "--threads 2 --processes 2"
CASES = {
    "jacobi2d-fused": "samples/jacobi2d -n 4 --mode fused --rank 1 --set nx=64 --set ny=34",
    "jacobi2d-sync": "samples/jacobi2d -n 4 --mode sync --rank 1 --set nx=64 --set ny=34",
    "jacobi2d-direct": "samples/jacobi2d -n 2 --mode fused --rank 0 --set nx=256 --set ny=130",
    "heat3d-fused": "samples/heat3d -n 4 --mode fused --rank 3",
    "halo-stream": "samples/halo -n 4 --mode stream --rank 2 --set nx=24 --set ny=20",
    "halo-serial": "samples/halo -n 2 --mode serial --rank 0 --set nx=24 --set ny=20",
    "heat3d-tcp": "samples/heat3d -n 4 --mode stream --rank 0 --transport tcp",
    "halo-mlx5": "samples/halo/short.yaml -n 2 --mode stream --backend cuda --rank 0 --transport mlx5",
    "border-fused": "tests/specs/valid/border-tiles.yaml -n 2 --mode fused --rank 0",
    "cg-fused": "samples/cg -n 4 --mode fused --rank 0 --set n=16",
    "vcycle-fused": "samples/vcycle -n 2 --mode fused --rank 1 --set n=16",
    "particles-graph": "samples/particles -n 2 --mode graph --backend cuda --rank 1",
    "mesh-fused": "samples/mesh -n 4 --mode fused --rank 2",
    "hdiff-graph": "samples/hdiff -n 4 --mode graph --backend cuda --rank 1 --set nx=32 --set ny=24 --set levels=2",
    "jacobi_until-graph": "samples/jacobi_until -n 2 --mode graph --backend cuda --rank 1 --set nx=64 --set ny=34",
    "jacobi2d-graph": "samples/jacobi2d -n 4 --mode graph --backend cuda --rank 1 --set nx=64 --set ny=34",
    "jacobi2d-staged": "samples/jacobi2d -n 4 --mode graph --backend cuda --transport shm --rank 1 --set nx=64 --set ny=34",
}


def is_built(peal, arguments):
    """Whether this peal has the backend that a case is for."""
    version = subprocess.run([peal, "version", "--json"], capture_output=True, text=True, timeout=60, check=True)
    return "--backend cuda" not in arguments or "cuda" in json.loads(version.stdout)["backends"]


def plan(root, peal, arguments):
    command = [peal, "plan", "--format", "text"] + arguments.split() + MACHINE.split()
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    root, peal = sys.argv[1], os.path.abspath(sys.argv[2])
    failed = 0
    for name, arguments in CASES.items():
        if not is_built(peal, arguments):
            continue
        path = os.path.join(root, "tests", "golden", name + ".txt")
        found = plan(root, peal, arguments)
        if found != plan(root, peal, arguments):
            print(f"{name}: two compilations differ")
            failed += 1
        if "--update" in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(found)
            continue
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        if found != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), found.splitlines(), name + ".txt", "found", lineterm=""
            )
            print("\n".join(lines))
            failed += 1
    if failed:
        sys.exit(f"{failed} of {len(CASES)} schedules differ; if that is meant: "
                 f"{' '.join(sys.argv[:3])} --update, and read the diff")
    print(f"{len(CASES)} schedules")


main()
