"""What goes wrong while GPUs wait for each other: every case ends in time, with a message that names
where, leaves no process behind, and the GPU is usable afterwards."""

import os
import re
import signal
import time

import checks
import jobs

SIGNALS = ("fused", "kernel", "memop")


def fault_trial(machine, spec, name, sets=(), **more):
    return {"name": name, "spec": machine.specs / f"{spec}.yaml", "set": list(sets), "ranks": 2,
            "backend": machine.backend, "mode": "stream", "_key": spec, **more}


def shared(machine, processes):
    """Whether these processes share a GPU: then memory operations are all there is."""
    return machine.gpus < processes


def signals_of(machine):
    return ("memop",) if shared(machine, 2) else SIGNALS


def mutants(machine, report, _options):
    """Rank 1 takes long before it sends and before it unpacks; rank 0, which has nothing left to wait for, does its
    four steps meanwhile. Without its WAIT it takes the second message's slot as it is; without its credits the third
    and fourth message come into slots that rank 1 has not read. Few steps: a rank that runs further ahead is noticed
    by the other's deadline, which ends the job."""
    delay = 5000000 if machine.backend == "cuda" else 20000  # some 10 ms, by the latency of an addition
    for spec, kind in (("ring", "wait"), ("chain", "await")):
        trials = [fault_trial(machine, spec, f"{spec}, serial", ["delay=0", "steps=4"], mode="serial")]
        for how in signals_of(machine):
            lower = f"signal={how}" if machine.backend == "cuda" else ""
            whole = fault_trial(machine, spec, f"{spec} {how}, whole", [f"delay={delay}", "steps=4"], lower=lower, deadline=3.0)
            trials += [whole] + [{**whole, "name": f"{spec} {how}, {kind} {k} left out", "drop": f"{kind}.{k}@0"}
                                 for k in range(2)]
        results = machine.trials.run(trials, 2, machine.clock, min(30, machine.clock.left()))
        tried, noticed, wrong = 0, 0, []
        for trial in trials[1:]:
            result = results.get(trial["name"])
            if result is None or result["status"] == "no such op":
                continue
            if result["status"] == "deadline passed" and "drop" in trial:
                tried, noticed = tried + 1, noticed + 1
            elif result["status"] != "ok":
                wrong.append(f"{trial['name']}: {result['status']} {' / '.join(result['messages'])[:200]}")
            elif "drop" not in trial and result["digest"] != results[trials[0]["name"]].get("digest"):
                wrong.append(f"{trial['name']} differs from serial")
            elif "drop" in trial:
                tried += 1
                noticed += result["digest"] != results[trials[0]["name"]].get("digest")
        for line in wrong:
            report.add("FAILED", line)
        title, missing = f"{kind}s left out of {spec} are noticed", sum(t["name"] not in results for t in trials)
        if missing and noticed == tried and not wrong:
            report.add("skipped", title, f"{missing} of {len(trials)} runs: no time left")
        else:
            report.check(tried > 0 and noticed == tried, title, f"{noticed} of {tried}")


def ended_well(machine, outcome, limit, words):
    """What is wrong about an end, or nothing."""
    text = outcome.out + outcome.err
    found = []
    if outcome.timed_out:
        found.append("it hangs")
    elif outcome.seconds > limit:
        found.append(f"took {outcome.seconds:.1f} s of {limit:.1f}")
    if outcome.left_behind:
        found.append(f"{outcome.left_behind} processes left")
    found += [f"no '{word}' in the messages" for word in words if not re.search(word, text)]
    return "; ".join(found) + (f" [{outcome.why()}]" if found else "")


def is_usable(machine, report, processes, after):
    """A small run right afterwards."""
    trial = fault_trial(machine, "ring", f"after {after}", ["steps=5"], lower="")
    result = machine.trials.run([trial], processes, machine.clock, 20).get(trial["name"], {"status": "nothing"})
    if result["status"] != "ok":
        report.add("FAILED", f"a run after {after}", f"{result}"[:300])


def missing_signals(machine, report, _options):
    """A WRITE of rank 1 is left out: rank 0 waits, and says for what."""
    deadline = 2.0
    modes = ("stream", "graph") if machine.full and machine.backend == "cuda" else ("stream",)
    cases = [(how, mode, "", 2) for how in signals_of(machine) for mode in modes]
    if machine.backend == "cuda" and not shared(machine, 2):
        cases.append(("fused", "fused", "", 2))
    if machine.backend == "cuda":  # both ranks in one kernel
        cases.append(("fused", "fused", "", 1))
    cases += [(how, "stream", "shm", 2) for how in signals_of(machine) if "shm" in other_transports(machine)]
    for how, mode, transport, processes in cases:
        name = f"missing signal, {how}, {mode}{', ' + transport if transport else ''}{', one process' if processes == 1 else ''}"
        if machine.clock.left() < 8:
            report.add("skipped", name, "no time left")
            continue
        trial = fault_trial(machine, "ring", name, ["steps=400"], drop="write.0@1", deadline=deadline, mode=mode,
                            transport=transport, lower=f"signal={how}" if machine.backend == "cuda" else "")
        outcome = machine.trials.command([trial], processes).finish(min(40, machine.clock.left()))
        wrong = ended_well(machine, outcome, deadline * 1.25 + 12, [r"rank [01]", r"exchange u@13", r"step \d"])
        if outcome.code != 6 and not wrong:
            wrong = f"exit code {outcome.code}, not 6"
        report.check(not wrong, name, wrong or first_message(outcome))
    is_usable(machine, report, 2, "a missing signal")


def first_message(outcome):
    lines = [line for line in outcome.err.splitlines() if "rank" in line and not line.startswith("process ")]
    return f"{outcome.seconds:.1f} s, {lines[0].strip()[:200]}" if lines else f"{outcome.seconds:.1f} s"


def failing_expressions(machine, report, _options):
    """An expression that reads a buffer is evaluated by the GPU, and divides by 0 there."""
    if machine.backend != "cuda":
        report.add("skipped", "an expression that fails", "the host says it in other words")
        return
    for mode in ("sync", "stream", "graph"):
        words = [machine.peal, "run", machine.specs / "divide.yaml", "--backend", machine.backend, "--mode", mode]
        outcome = jobs.execute(words, machine.env, min(40, machine.clock.left()))
        wrong = ended_well(machine, outcome, 20, [r"step 3: an expression of .* divided by zero .*\[E662\]"])
        if outcome.code != 3 and not wrong:
            wrong = f"exit code {outcome.code}, not 3"
        report.check(not wrong, f"an expression that fails, {mode}", wrong or outcome.err.splitlines()[0][:200])
    is_usable(machine, report, 1, "an expression that failed")


def miscounted(machine, report, _options):
    """More elements of a message than its block has, more points of a box than its bound."""
    spec = machine.samples / "particles" / "particles.yaml"
    for setting, said in (("out=2", r"`send (left|right).* has \d+ elements, of at most 4"), ("room=51", r"`move` has 5\d points, of at most 51")):
        for mode in ("sync", "stream", "graph", "fused") if machine.backend == "cuda" else ("stream", "fused"):
            name, limit = f"a count out of range, {setting}, {mode}", min(40, machine.clock.left())
            words = [machine.peal, "run", spec, "--backend", machine.backend, "--mode", mode, "-n", "2", "--set", setting]
            outcome = jobs.execute(words, machine.env, limit) if limit > 2 else None
            if not outcome or (outcome.timed_out and limit < 40):
                report.add("skipped", name, "no time left")
                continue
            wrong = ended_well(machine, outcome, 40, [said + r".*\[E370\]"])
            if outcome.code != 3 and not wrong:
                wrong = f"exit code {outcome.code}, not 3"
            report.check(not wrong, name, wrong or outcome.err.splitlines()[0][:200])
    is_usable(machine, report, 1, "a count out of range")


def endless_kernel(machine, report, _options):
    """A task's kernel never ends."""
    if machine.backend != "cuda":
        report.add("skipped", "a kernel that never ends", "it would not end on the host either")
        return
    for processes in (1, 2):
        for mode in ("stream", "graph", "sync", "serial") if machine.full else ("stream", "sync"):
            if machine.clock.left() < 8 or (processes == 2 and mode == "serial"):
                continue
            name = f"a kernel that never ends, {processes} process{'es' * (processes > 1)}, {mode}"
            trial = fault_trial(machine, "spin", name, deadline=2.0, mode=mode)
            outcome = machine.trials.command([trial], processes).finish(min(40, machine.clock.left()))
            wrong = ended_well(machine, outcome, 2.0 * 1.25 + 12, [r"rank \d", r"spin"])
            report.check(not wrong, name, wrong or first_message(outcome))
        if not machine.full:
            break
    is_usable(machine, report, 1, "a kernel that never ended")


def killed_once(machine, report, how, mode, transport):
    """One job of two processes, of which the second is killed."""
    name = f"a killed process, {how}, {mode}{', ' + transport if transport else ''}"
    trial = fault_trial(machine, "ring", name, ["steps=1000000000"], deadline=20.0, announces=1, mode=mode,
                        transport=transport, lower=f"signal={how}" if machine.backend == "cuda" else "")
    job = machine.trials.command([trial], 2)
    running = job.await_line(job.out, '"running"', min(20, machine.clock.left()))
    member = job.await_line(job.err, "process 1 of 2 is ", 1)
    if not running or not member:
        report.check(False, name, f"it does not run: {job.finish(0.5).why()}")
        return
    time.sleep(0.2)
    os.kill(int(member.split()[-1]), signal.SIGKILL)
    killed = time.monotonic()
    outcome = job.finish(min(20, machine.clock.left()))
    outcome.seconds = time.monotonic() - killed
    wrong = ended_well(machine, outcome, 2.0 + 1.5, [r"(rank|process) 1\b"])
    if outcome.code != 5 and not wrong:
        wrong = f"exit code {outcome.code}, not 5"
    report.check(not wrong, name, wrong or first_message(outcome))


def other_transports(machine):
    """Those beside the default that the doctor finds usable."""
    found = checks.findings(machine) if machine.backend == "cuda" else {}
    return [rung for rung, name in checks.RUNGS.items()
            if rung != "p2p:vmm" and found.get(name, {"state": "off"})["state"] == "ok"]


def killed_rank(machine, report, _options):
    """Rank 1's process is killed while rank 0 waits on the GPU, in its own or in the host's memory."""
    modes = ("stream", "graph") if machine.full and machine.backend == "cuda" else ("stream",)
    cases = [(how, mode, "") for how in signals_of(machine) for mode in modes]
    if machine.backend == "cuda" and not shared(machine, 2):
        cases.append(("fused", "fused", ""))
    cases += [(signals_of(machine)[0], "stream", transport) for transport in other_transports(machine)]
    for how, mode, transport in cases:
        if machine.clock.left() < 8:
            report.add("skipped", f"a killed process, {how}, {mode} {transport}", "no time left")
            continue
        killed_once(machine, report, how, mode, transport)
    is_usable(machine, report, 2, "a killed process")
