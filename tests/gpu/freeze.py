"""The freeze test: communication of streams that ring goes on while every thread of every rank is stopped."""

import jobs

STEPS = "100"


def freeze(machine, report, _options):
    """Both ranks stopped: who rings must finish, who has a thread post must not (freeze.c)."""
    programs = [machine.look_for(*names) for names in (("softhca", "tests/softhca/softhca"), ("libsofthca.so", "tests/softhca/libsofthca.so"),
                                                       ("gpu_freeze", "tests/gpu/gpu_freeze"))]
    if not all(programs):
        report.add("skipped", "freeze", "built without rdma-core's headers")
        return
    spec = machine.samples / "jacobi2d/jacobi2d.yaml"
    env = {**machine.env, "PEAL_TEST_HOSTS": "2"}
    for form in ("doorbell", "word"):
        for what in ("stopped", "running"):
            done = jobs.execute([*programs, spec, STEPS, form, what, "nx=512", "ny=514", "report=100000"], env, 60)
            lines = [line.strip() for line in done.out.strip().splitlines()]
            if done.code == 77:
                report.add("skipped", f"freeze {form} {what}", lines[-1] if lines else "")
            else:
                report.check(done.code == 0, f"freeze {form} {what}", "; ".join(lines[1:]) if done.code == 0 else done.why() + " ".join(lines))
