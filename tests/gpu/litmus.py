"""What orders memory on these GPUs: the kernels of litmus.cu, each of one rule of docs/memory_model.md."""

import re

import jobs

LINE = re.compile(r"(\w+) +(right|broken) +(\d) devices?: (\d+) steps, ([\d.]+) us each, (\d+) allowed, (\d+) forbidden(, STUCK)?")


def litmus(machine, report, options):
    places = [options.programs / name for name in ("gpu_litmus", "tests/gpu/gpu_litmus")]
    program = next((p for p in places if p.is_file()), None)
    if not program or machine.backend != "cuda":
        report.add("skipped", "litmus", "not built: ninja tests-gpu, where nvcc is" if machine.backend == "cuda" else "no GPU")
        return
    steps = 300000 if machine.full else 100000
    done = jobs.execute([program, steps], machine.env, min(60, machine.clock.left()))
    found = LINE.findall(done.out)
    for rule, kind, devices, count, each, allowed, forbidden, stuck in found:
        seen = f"{count} steps of {each} us, {allowed} loads allowed, {forbidden} forbidden{stuck}"
        name = f"{rule}, {devices} device{'s' * (devices != '1')}"
        if kind == "right":
            report.check(int(allowed) > 0 and forbidden == "0" and not stuck, name, seen)
        else:
            report.say(f"        {name} without its order, for information: {seen}")
    report.check(done.code == 0 and any(kind == "right" for _, kind, *_ in found), "litmus", f"{done.seconds:.0f} s"
                 if done.code == 0 else done.why())
