"""The freeze test: communication of streams that ring goes on while every thread of every rank is stopped."""

import itertools
from pathlib import Path

import jobs

STEPS = "100"


def freeze(machine, report, _options):
    """Both ranks stopped: who rings must finish, who has a thread post must not (freeze.c)."""
    programs = [machine.look_for(*names) for names in (("softhca", "tests/softhca/softhca"), ("libsofthca.so", "tests/softhca/libsofthca.so"),
                                                       ("gpu_freeze", "tests/gpu/gpu_freeze"))]
    if not all(programs):
        report.add("skipped", "freeze", "built without rdma-core's headers")
        return
    env = {**machine.env, "PEAL_TEST_HOSTS": "2"}
    jacobi = (machine.samples / "jacobi2d/jacobi2d.yaml", STEPS, "nx=512", "ny=514", "report=100000")
    pingpong = ("pingpong", "90")
    for (spec, steps, *params), form, what in itertools.product((jacobi, pingpong), ("doorbell", "word"), ("stopped", "running")):
        name = f"freeze {Path(spec).stem} {form} {what}"
        done = jobs.execute([*programs, spec, steps, form, what, *params], env, 60)
        lines = [line.strip() for line in done.out.strip().splitlines()]
        if done.code == 77:
            report.add("skipped", name, lines[-1] if lines else "")
        else:
            report.check(done.code == 0, name, "; ".join(lines[1:]) if done.code == 0 else done.why() + " ".join(lines))
