"""What `peal run` tells of times, and arguments that a task changes itself."""

import json

import checks
import jobs


def times(machine, report, _options):
    """Time a step, the CPU's share of it, and what messages add: there, plausible, and without effect on
    the result."""
    modes = ["sync", "stream", "graph"] if machine.backend == "cuda" else ["sync", "stream"]
    sets = ["nx=2048", "ny=2048", "steps=1600", "report=400"] if machine.backend == "cuda" else ["nx=130", "ny=103", "steps=60"]
    for mode in modes:
        words = [machine.peal, "run", machine.samples / "jacobi2d", "-n", max(machine.gpus, 2), "--backend", machine.backend,
                 "--mode", mode, "--exposed", "--verify", "--json", *[word for s in sets for word in ("--set", s)]]
        done = jobs.execute(words, machine.env, min(machine.clock.left(), 60))
        name = f"times of {mode}"
        try:
            found = json.loads(done.out)["modes"][0]
        except (ValueError, KeyError, IndexError):
            report.check(False, name, done.why())
            continue
        step, cpu = found.get("seconds_per_step", {}).get("median", 0), found.get("cpu_seconds_per_step", 0)
        without, exposed = found.get("seconds_per_step_without_messages", 0), found.get("exposed_seconds_per_step")
        sent = found.get("seconds_per_step_with_messages", 0)
        good = (found.get("equal_to_serial") and step > 0 and without > 0 and exposed is not None
                and abs(sent - without - exposed) < 1e-12 and (machine.backend == "host" or 0 < cpu <= 2 * step + 1e-4))
        report.check(good, name, f"{step * 1e6:.2f} us a step, {cpu * 1e6:.2f} us of the CPU, {(exposed or 0) * 1e6:.2f} us "
                                 f"of communication exposed over {without * 1e6:.2f} us")


def arguments(machine, report, _options):
    """All threads of a tile read its arguments before one of them changes what they come from."""
    trials = []
    for mode in ["serial", *checks.modes_of(machine)]:
        trials.append({"name": f"own arguments, {mode}", "spec": machine.specs / "own.yaml", "ranks": 2, "mode": mode,
                       "backend": machine.backend, "_key": "own"})
    results = machine.trials.run(trials, 1, machine.clock, min(machine.clock.left(), 30))
    checks.compare(report, trials, results, "arguments that a task changes")
