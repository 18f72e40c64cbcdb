"""What only the run decides: conditions, inner loops and ends that depend on data, in every mode. In mode
graph the device decides alone; here nothing may be refused but what is named."""

import checks

# Specs, what is set, and whether the outermost loop has an `until`.
SPECS = {
    "when": ("when", [], False),
    "ranks in turns": ("turns", [], False),
    "inner until": ("inner", [], False),
    "until": ("until", [], True),
    "until of every second step, three looks late": ("until", ["every=2", "late=3"], True),
    "until, five looks late": ("until", ["late=5"], True),
    "until of a counter": ("counted", [], True),
    "nested": ("nested", [], True),
}
RANKS = (1, 2, 4)
ALONE = ["", "steps=5", "until=while", "until=while,steps=6", "signal=kernel"]
TOGETHER = ["", "signal=kernel", "signal=memop", "until=while", "until=while,signal=kernel,steps=6"]
SHARED = ["signal=memop", "steps=6"]  # processes that share a GPU: memory operations only


def is_possible(lower, ends, shared):
    """Memory operations cannot be skipped by the end of the outermost loop."""
    return not ends or not (shared or "memop" in lower)


def trials_of(machine, title, ranks, lowerings, shared):
    name, sets, ends = SPECS[title]
    made = []
    modes = [("serial", ""), ("sync", ""), ("stream", "")]
    if machine.backend == "cuda":
        modes += [("graph", lower) for lower in lowerings if is_possible(lower, ends, shared)]
    for mode, lower in modes:
        made.append({"name": f"{title}, {ranks} rank{'s' * (ranks > 1)}, {mode}{' ' + lower if lower else ''}",
                     "spec": machine.specs / f"{name}.yaml", "set": sets, "ranks": ranks, "mode": mode, "lower": lower,
                     "backend": machine.backend, "rows": 1, "_key": (title, ranks), "_loops": "while" in lower and name == "until"})
    return made


def difference(trial, result, serial):
    """In words, or None."""
    if result["status"] != "ok":
        return f"{result['status']}: {' / '.join(result['messages'])[:300]}"
    if serial is None:
        return "serial has failed"
    for key in ("digest", "steps", "rows"):
        if result[key] != serial[key]:
            return f"{key} differs from serial"
    if trial["_loops"] and any("WHILE node" in m for m in result["messages"]):
        return " / ".join(result["messages"])[:300]
    return None


def judge(report, title, trials, results):
    serial = {t["_key"]: results[t["name"]] for t in trials
              if t["mode"] == "serial" and results.get(t["name"], {}).get("status") == "ok"}
    done, wrong = [t for t in trials if t["name"] in results], 0
    if len(done) < len(trials):
        report.add("skipped", title, f"{len(trials) - len(done)} of {len(trials)}: no time left")
    trials = done
    for trial in trials:
        what = difference(trial, results[trial["name"]], serial.get(trial["_key"]))
        if what:
            wrong += 1
            report.add("FAILED", trial["name"], what)
    if trials and not wrong:
        times = {t["lower"] or "unrolled": 1e6 * results[t["name"]]["seconds"] / max(results[t["name"]]["steps"], 1)
                 for t in trials if t["mode"] == "graph" and t["spec"].stem == "until"}
        report.check(True, title, f"{len(trials)} runs equal serial"
                     + "".join(f", {lower} {time:.1f} us a step" for lower, time in times.items()))


def control(machine, report, _options):
    jobs = [(1, 1, RANKS, ALONE)] + [(p, g, (p,), TOGETHER if g > 1 else SHARED) for p, g in checks.process_counts(machine)]
    for processes, gpus, counts, lowerings in jobs:
        trials = []
        for title in SPECS:
            for ranks in counts:
                trials += trials_of(machine, title, ranks, lowerings, processes > gpus)
        env = {}
        if machine.backend == "cuda" and gpus < machine.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(checks.visible(machine, k) for k in range(gpus))
        results = machine.trials.run(trials, processes, machine.clock, machine.clock.left() * 0.4, env)
        for title in SPECS:
            judge(report, f"{title}, {processes} process{'es' * (processes > 1)}, {gpus} GPU{'s' * (gpus > 1)}",
                  [t for t in trials if t["_key"][0] == title], results)
