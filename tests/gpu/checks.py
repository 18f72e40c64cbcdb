"""Equal bits: samples and random graphs in every mode and lowering, on one GPU and on several."""

import json
import math
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import jobs

# Small: serial waits for every task. Uneven parts. cg and vcycle run a fixed number of steps.
SMALL = {
    "jacobi2d/jacobi2d": ["nx=130", "ny=103", "steps=40", "report=10"],
    "heat3d/heat3d": ["steps=12", "report=5"],
    "halo/halo": ["nx=90", "ny=61", "steps=30", "report=10"],
    "halo/short": ["nx=90", "ny=61", "steps=30", "report=10"],
    "denoise/denoise": ["steps=6"],
    "cg/cg": ["n=40", "limit=30"],
    "vcycle/vcycle": ["n=36", "cycles=2", "coarse=6"],
    "mesh/mesh": ["steps=30", "report=10"],
    "hdiff/hdiff": ["nx=37", "ny=22", "levels=3", "steps=9", "report=4"],
    "hdiff/pair": ["nx=37", "ny=22", "levels=3", "steps=9", "report=4"],
    "jacobi_until/jacobi_until": ["nx=40", "ny=37", "tol=0.1"],
    "particles/particles": ["each=40", "steps=60", "report=20"],
    "bfs/bfs": ["n=700"],
}
RANKS = (1, 2, 4, 7)
# In one process waits are the streams' own events: what differs is lanes, copies and K.
ALONE = ["", "lanes=2", "copy=engine", "copy=engine,lanes=2", "steps=7", "lanes=2,steps=3"]
TOGETHER = ["signal=fused", "signal=kernel", "signal=memop", "signal=fused,lanes=2", "signal=memop,copy=engine,lanes=2",
            "signal=kernel,copy=engine", "signal=kernel,lanes=2", "signal=fused,copy=engine,lanes=2",
            "signal=memop,lanes=2"]
WRAP = str(2**64 - 4)
# Rounds that are shorter than the runs: else the kernel that stays has no part in them.
FUSED = ["steps=3", "steps=7,order=grid", "steps=5,order=tickets", "steps=4,order=paper", "steps=6,jitter=20000"]


def words_of(lower):
    """A trial's lowering words. `jitter` among them is none, but a hook of the backend's."""
    words = lower.split(",")
    found = {"lower": ",".join(word for word in words if not word.startswith("jitter="))}
    return {**found, **dict(word.split("=") for word in words if word.startswith("jitter="))}


def spec_trial(machine, spec, ranks, mode, lower, sets=None, **more):
    sample = spec.split("/", maxsplit=1)[0]
    sets = list(SMALL.get(spec, []) if sets is None else sets)
    if sample == "mesh":
        sets.append(f"parts=parts-{ranks}")
    name = f"{spec.split('/')[1]}, {ranks} rank{'s' * (ranks > 1)}, {mode}{' ' + lower if lower else ''}"
    return {"name": name, "spec": machine.samples / f"{spec}.yaml", "set": sets, "ranks": ranks, "mode": mode,
            **words_of(lower), "backend": machine.backend, "_key": (spec, tuple(sets), ranks), **more}


def random_trial(machine, seed, mode, lower, **more):
    name = f"random graph {seed}, {mode}{' ' + lower if lower else ''}"
    return {"name": name, "seed": seed, "mode": mode, **words_of(lower), "backend": machine.backend,
            "first": WRAP if mode != "serial" and seed % 3 == 0 else None, "_key": seed, **more}


def modes_of(machine):
    return ["sync", "stream", "graph", "fused"] if machine.backend == "cuda" else ["sync", "stream", "fused"]


def variants(machine, make, lowerings, turn):
    """serial, sync, and stream and graph with some of the lowerings: all in full, else two in turn."""
    made = [make("serial", "")]
    for mode in modes_of(machine):
        some = lowerings if machine.full else [lowerings[(turn + k) % len(lowerings)] for k in (0, 1 + turn % 2)]
        some = FUSED if mode == "fused" and machine.backend == "cuda" else some
        for lower in [""] if mode == "sync" or machine.backend == "host" else dict.fromkeys(some):
            made.append(make(mode, lower))
    return made


REFUSALS = {"E355", "E664", "E669"}  # a mode that cannot run the graph has said why


def is_refused(result):
    """A session says a thing once: a second result may have no error."""
    return result["status"] == "unsuitable environment" and set(result.get("errors", ["none"])) <= REFUSALS


def compare(report, trials, results, title, expected=None):
    """One line for many trials: those that differ are named. expected gets the digests of serial."""
    expected = {} if expected is None else expected
    done, refused, wrong = 0, {}, []
    for trial in trials:
        result = results.get(trial["name"])
        if result and result["status"] == "ok" and trial["mode"] == "serial":
            expected.setdefault(trial["_key"], result["digest"])
    for trial in trials:
        result = results.get(trial["name"])
        if result is None:
            continue
        done += 1
        if is_refused(result):
            # A session says a thing once.
            reason = result["messages"][-1] if result["messages"] else "as before"
            refused[reason] = refused.get(reason, 0) + 1
        elif result["status"] != "ok":
            wrong.append(f"{trial['name']}: {result['status']}: {' / '.join(result['messages'])[:300]}")
        elif trial["_key"] not in expected:
            wrong.append(f"{trial['name']}: serial has failed")
        elif result["digest"] != expected[trial["_key"]]:
            wrong.append(f"{trial['name']} differs from serial")
    for line in wrong[:20]:
        report.add("FAILED", line)
    if len(wrong) > 20:
        report.add("FAILED", f"{title}: {len(wrong) - 20} more")
    for reason, count in refused.items():
        report.say(f"        {title}: {count} refused: {reason}")
    if done < len(trials):
        report.add("skipped", title, f"{len(trials) - done} of {len(trials)}: no time left")
    if done and not wrong:
        report.check(True, title, f"{done - sum(refused.values())} runs equal serial bit for bit")
    return not wrong and done == len(trials)


def spread(machine, lists, limit, processes=1, workers=0, **more):
    """Lists of trials side by side, of one process or of some on neighbouring GPUs, over all GPUs."""
    workers = workers or (min(len(lists), max(4, 2 * machine.gpus)) if machine.backend == "cuda" else 1)
    with ThreadPoolExecutor(workers) as pool:
        runs = []
        for i, trials in enumerate(lists):
            names = ",".join(visible(machine, i * processes + k) for k in range(processes))
            runs.append(pool.submit(machine.trials.run, trials, processes, machine.clock, limit,
                                    {"CUDA_VISIBLE_DEVICES": names}, **more))
        found = {}
        for job in runs:
            found.update(job.result())
    return found


def visible(machine, index):
    outer = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    names = outer or [str(i) for i in range(max(machine.gpus, 1))]
    return names[index % min(len(names), max(machine.gpus, 1))]


COMPILING_S = 300  # the kernels of a random graph take up to 90 s of a quiet core in one mode
SERIAL = {}  # digests of serial on this backend, by key


def samples(machine, report, _options):
    """All ranks in one process."""
    lists = []
    for i, spec in enumerate(SMALL):
        trials = []
        for k, ranks in enumerate(RANKS):
            trials += variants(machine, lambda mode, lower, s=spec, r=ranks: spec_trial(machine, s, r, mode, lower),
                               ALONE, i + k)
        lists.append(trials)
    results = spread(machine, lists, machine.clock.left() * (0.6 if machine.full else 0.4))
    for trials in lists:
        compare(report, trials, results, trials[0]["name"].split(",")[0] + ", one process", SERIAL)
    if machine.backend == "cuda":
        check_together(report, sum(lists, []), results)


def check_together(report, trials, results):
    """Several ranks on a GPU are in one kernel that stays."""
    several = [results[t["name"]] for t in trials if t["mode"] == "fused" and t["ranks"] > 1 and t["name"] in results
               and "order=paper" not in t.get("lower", "")]  # a kernel has one rank, then
    said = [message for result in several if is_refused(result) for message in result["messages"] if "share a GPU" in message]
    equal = sum(result["status"] == "ok" for result in several)
    if several:
        report.check(equal > 0 and not said, "several ranks of a process in one kernel that stays",
                     " / ".join(said)[:200] or f"{equal} of {len(several)} runs")


def seeds(machine, first, count, ranks=1):
    """The first seeds with at least so many ranks, and whether other backends give the same bits."""
    found = []
    out = subprocess.run([machine.program, "seeds", str(first), str(20 * count)], check=True, capture_output=True,
                         text=True, env=machine.env).stdout
    for line in out.splitlines():
        seed, has, exact = (int(word) for word in line.split()[:3])
        if has >= ranks:
            found.append((seed, exact))
    return found[:count]


def agreement(machine, report, options):
    """Random graphs, all ranks in one process; those without reductions equal the host's, too."""
    count = 120 if machine.full else 16 if machine.backend == "cuda" else 8
    lists = [[] for _ in range(8)]
    for i, (seed, exact) in enumerate(seeds(machine, options.seed, count)):
        trials = lists[i % len(lists)]
        trials += variants(machine, lambda mode, lower, s=seed: random_trial(machine, s, mode, lower), ALONE, i)
        if exact and machine.backend == "cuda":
            trials.append({**random_trial(machine, seed, "serial", "", backend="host"),
                           "name": f"random graph {seed}, serial on the host", "mode": "serial"})
            trials[-1]["_host"] = True
    lists = [trials for trials in lists if trials]
    results = spread(machine, lists, machine.clock.left() * 0.5)
    plain = [[t for t in trials if "_host" not in t] for trials in lists]
    compare(report, sum(plain, []), results, f"{count} random graphs, one process", SERIAL)
    host = [{**t, "mode": "on the host"} for t in sum(lists, []) if "_host" in t]
    if host:
        compare(report, host, results, f"{len(host)} random graphs on the host and on the GPU", SERIAL)


def graphs(machine, report, options):
    """--graphs N: so many random graphs in one lowering a mode, as many side by side as there are cores; where
    there are GPUs in pairs, every second one in two processes."""
    for processes in (1, 2):
        count = options.graphs if machine.gpus < 2 else (options.graphs + 2 - processes) // 2
        if not count or machine.gpus < processes:
            continue
        workers = max(2, min(len(os.sched_getaffinity(0)) // processes, 16 * machine.gpus))
        lists = [[] for _ in range(min(workers, count))]
        for i, (seed, _) in enumerate(seeds(machine, options.seed + 5000 * processes, count, processes)):
            lowerings = ALONE if processes == 1 else TOGETHER
            for mode, lower in (("serial", ""), ("stream", lowerings[i % len(lowerings)]),
                                ("graph", lowerings[i % len(lowerings)]), ("fused", FUSED[i % len(FUSED)])):
                lists[i % len(lists)].append(random_trial(machine, seed, mode, lower))
        is_last = processes == 2 or machine.gpus < 2
        results = spread(machine, lists, machine.clock.left() * (0.95 if is_last else 0.45), processes, len(lists), silence=COMPILING_S)
        trials = sum(lists, [])
        begun = {t["_key"] for t in trials if t["name"] not in results}
        whole = len({t["_key"] for t in trials} - begun)
        compare(report, trials, results, f"{whole} of {count} random graphs, {processes} process{'es' * (processes > 1)}", {})


def process_counts(machine):
    """(processes, GPUs) of jobs with several processes."""
    counts = [(2, 1)]
    if machine.gpus >= 2:
        counts = [(2, 2), (2, 1)]
    if machine.gpus >= 4:
        counts = [(4, 4), (2, 2), (2, 1)]
    return counts


def of_processes(machine, processes, gpus, options):
    """Samples and random graphs; two processes on one GPU wait by memory operations only."""
    lowerings = TOGETHER if gpus > 1 else ["signal=memop", "copy=engine,lanes=2", "lanes=2"]
    many = machine.full or (processes, gpus) == process_counts(machine)[0]
    trials = []
    for i, spec in enumerate(SMALL if many else list(SMALL)[:3]):
        for ranks in (processes, 7) if many and (machine.full or i % 3 == 0) else (processes,):
            trials += variants(machine, lambda mode, lower, s=spec, r=ranks: spec_trial(machine, s, r, mode, lower),
                               lowerings, i)
    count = (60 if machine.full else 10) if many else 4
    for i, (seed, _) in enumerate(seeds(machine, options.seed + 1000, count, processes)):
        trials += variants(machine, lambda mode, lower, s=seed: random_trial(machine, s, mode, lower), lowerings, i)
    return trials


def processes(machine, report, options):
    counts = process_counts(machine)
    for i, (count, gpus) in enumerate(counts):
        trials = of_processes(machine, count, gpus, options)
        env = {}
        if machine.backend == "cuda" and gpus < machine.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(visible(machine, k) for k in range(gpus))
        limit = machine.clock.left() * (0.5 if i == 0 else 0.3)
        results = machine.trials.run(trials, count, machine.clock, limit, env)
        compare(report, trials, results, f"{count} processes, {gpus} GPU{'s' * (gpus > 1)}")


# Each rung of the ladder, as `peal doctor` names it.
RUNGS = {"p2p:vmm": "path p2p by VMM", "p2p:ipc": "path p2p by IPC", "shm": "path shm staging"}


def findings(machine):
    done = jobs.execute([machine.peal, "doctor", "--json"], machine.env, 60)
    try:
        return {f["name"]: f for f in json.loads(done.out)["findings"]}
    except (ValueError, KeyError):
        return {}


def by_rung(machine, gpus, rung):
    """Two processes. On one GPU, waits are memory operations; signals by kernels need two."""
    lowerings = ["signal=memop", "signal=memop,copy=engine,lanes=2"]
    if gpus > 1:
        lowerings = ["", "signal=kernel,copy=engine", *lowerings, "signal=fused,lanes=2"]
    specs = list(SMALL) if machine.full else ["jacobi2d/jacobi2d", "heat3d/heat3d", "halo/halo", "cg/cg", "mesh/mesh"]
    trials = []
    for i, spec in enumerate(specs):
        for ranks in (2, 7) if machine.full or i % 2 == 0 else (2,):
            made = variants(machine, lambda mode, lower, s=spec, r=ranks: spec_trial(machine, s, r, mode, lower),
                            lowerings, i + ranks)
            trials += [{**t, "transport": rung, "first": WRAP if t["mode"] != "serial" and ranks == 7 else None}
                       for t in made]
    for trial in trials:
        if trial["mode"] == "sync" and gpus < 2 and machine.backend == "cuda":
            trial["lower"] = "signal=memop"
    for i, (seed, _) in enumerate(seeds(machine, 2000, 30 if machine.full else 4, 2)):
        trials += [{**t, "transport": rung} for t in
                   variants(machine, lambda mode, lower, s=seed: random_trial(machine, s, mode, lower), lowerings, i)
                   if t["mode"] != "sync"]
    return trials


def transports(machine, report, _options):
    """What the doctor says of each rung; then jobs by each, forced: equal to serial, bit for bit."""
    found = findings(machine) if machine.backend == "cuda" else {}
    for name, finding in found.items():
        if name.startswith(("path ", "link ")):
            report.say(f"        doctor: {name}: {finding['state']}: {finding['text']}")
    rungs = RUNGS if machine.backend == "cuda" else {"shm": ""}
    report.check(all(name in found for name in rungs.values() if name), "the doctor names every rung")
    cases = [(gpus, rung) for gpus in ((1, 2) if machine.gpus >= 2 else (1,)) for rung in rungs]
    for i, (gpus, rung) in enumerate(cases):
        title = f"{rung}, 2 processes, {gpus} GPU{'s' * (gpus > 1)}"
        state = found.get(rungs[rung], {"state": "ok"})
        if state["state"] != "ok":
            report.add("skipped", title, state["text"])
            continue
        env = {}
        if machine.backend == "cuda" and gpus < machine.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(visible(machine, k) for k in range(gpus))
        trials = by_rung(machine, gpus, rung)
        results = machine.trials.run(trials, 2, machine.clock, machine.clock.left() / (len(cases) - i), env)
        compare(report, trials, results, title)
        others = {r["transport"] for r in results.values() if r.get("mode") not in ("serial", "", None)} - {rung, ""}
        report.check(not others, f"{title}: no other way is taken", ", ".join(sorted(others)))


def many_ranks(machine, report, _options):
    """More ranks in a process than a GPU has queues by default: streams that share one must not keep each
    other from running while they wait for another process."""
    count = min(max(machine.gpus, 2), 4)
    spec, ranks = str(machine.specs / "ring.yaml"), 12 * count
    trials = []
    for mode, lower in [("serial", ""), ("sync", ""), ("stream", ""), ("stream", "signal=memop"), ("stream", "lanes=2"),
                        ("graph", ""), ("graph", "signal=memop"), ("graph", "lanes=2"), ("fused", "")]:
        if machine.backend == "cuda" or mode != "graph":
            trials.append({"name": f"ring, {ranks} ranks, {mode}{' ' + lower if lower else ''}", "spec": spec, "ranks": ranks,
                           "set": ["n=24", "steps=96"], "mode": mode, "lower": lower, "backend": machine.backend,
                           "deadline": 3.0, "_key": "many ranks"})
    results = machine.trials.run(trials, count, machine.clock, min(machine.clock.left(), 40))
    compare(report, trials, results, f"{ranks} ranks in {count} processes")


CHAINS = ("deep", "chain_rim", "chain_self", "chain_pairs", "chain_gaps", "chain_part")
DEPTHS = ("deep=1", "deep=3", "deep=5", "deep=9", "")


def chains(machine, report, _options):
    """Steps that a block runs several of before it asks others, by depth, with starts that end at any of them."""
    if machine.backend != "cuda":
        report.add("skipped", "several steps a block", "of GPUs alone")
        return
    for name in CHAINS:
        trials = [{"name": f"{name}, {mode} {lower} {cut}", "spec": str(machine.specs / f"{name}.yaml"), "ranks": 1, "set": [], "mode": mode,
                   "lower": lower, "starts": cut, "backend": machine.backend, "deadline": 3.0, "_key": name}
                  for mode, lower, cut in [("serial", "", "-1"), *(("fused", depth, cut) for depth in DEPTHS for cut in ("-1", "1,3,2,7,1,12,-1"))]]
        results = machine.trials.run(trials, 1, machine.clock, min(machine.clock.left(), 60))
        compare(report, trials, results, f"{name}, several steps a block")


def files(machine, report, _options):
    """`load` and `save` in the loop: the files are those of serial."""
    for name in ("files", "files_until"):
        folder = machine.scratch / name
        folder.mkdir()
        for part in (f"{name}.yaml", "files.c"):
            shutil.copy(machine.specs / part, folder)
        for ranks in range(1, min(machine.gpus, 2) + 1):
            for mode in modes_of(machine):
                words = ["run", folder / f"{name}.yaml", "-n", ranks, "--backend", machine.backend, "--mode", mode, "--verify"]
                done = jobs.execute([machine.peal, *map(str, words)], machine.env, min(60, machine.clock.left()))
                good = f"{mode} equal to serial, bit for bit" in done.out
                report.check(good, f"{name} on {ranks}, {mode}", "" if good else done.why())


def starts(machine, report, _options):
    """Several starts in a row, of 0 steps and of few; a plan that is left while it runs."""
    spec, sets = "jacobi2d/jacobi2d", ["nx=130", "ny=103", "steps=150", "report=10"]
    trials = [spec_trial(machine, spec, 2, "serial", "", sets)]
    for mode in modes_of(machine):
        for cut in ("0,0,-1", "1,0,1,-1", "63,-1", "64,-1", "65,7,64,-1", "128,1,-1"):
            made = spec_trial(machine, spec, 2, mode, "", sets, starts=cut)
            made["name"] += f" starts {cut}"
            trials.append(made)
    trials.append({**spec_trial(machine, spec, 2, "stream", "", ["nx=4096", "ny=4096", "steps=100000"], leaves=1),
                   "name": "left while it runs"})
    results = machine.trials.run(trials, 1, machine.clock, machine.clock.left() * 0.5)
    last = trials.pop()
    compare(report, trials, results, "several starts")
    found = results.get(last["name"])
    if found:
        report.check(found["status"] == "ok", last["name"], " / ".join(found["messages"])[:200])


def after_failures(machine, report, _options):
    """A plan that one of two processes cannot make does not keep them from making the next."""
    lower = "signal=memop" if machine.backend == "cuda" else ""
    wrong = {**spec_trial(machine, "mesh/mesh", 2, "stream", lower), "name": "files are missing"}
    wrong["set"] = ["steps=3", "parts=parts-3"]
    good = {"name": "the next plan", "spec": machine.specs / "ring.yaml", "ranks": 2, "set": ["n=4", "steps=5"],
            "mode": "stream", "lower": lower, "backend": machine.backend, "deadline": 5.0}
    results = machine.trials.run([wrong, good], 2, machine.clock, min(60, machine.clock.left()))
    found = [results.get(t["name"], {"status": "nothing", "messages": []}) for t in (wrong, good)]
    report.check(found[0]["status"] == "unsuitable environment" and found[1]["status"] == "ok",
                 "a plan after one that could not be made", " / ".join(f["status"] for f in found))


def norms(machine, report, _options):
    """Five significant digits of what NVIDIA's samples print, with a rank a GPU."""
    spec, trials = "jacobi2d/jacobi2d", []
    modes = [("stream", ""), ("graph", "")] if machine.backend == "cuda" else [("stream", "")]
    sizes = (256, 1024, 4096) if machine.backend == "cuda" else (256,)
    for n in sizes:
        for mode, lower in modes:
            made = spec_trial(machine, spec, machine.gpus, mode, lower, [f"nx={n}", f"ny={n}", "steps=901"], rows=1)
            made["name"] = f"norms of {n} x {n}, {mode}"
            trials.append({**made, "_n": n})
    results = machine.trials.run(trials, machine.gpus, machine.clock, machine.clock.left() * 0.5)
    table = (machine.samples / "jacobi2d" / "norms.csv").read_text().splitlines()
    for trial in trials:
        result = results.get(trial["name"])
        if not result or result["status"] != "ok":
            report.check(False, trial["name"], result and " / ".join(result["messages"])[:300] or "no result")
            continue
        printed = {row["step"]: row["norm"] for row in result["rows"]}
        wrong, compared = [], 0
        for line in (line.split(",") for line in table if line.startswith(f"{trial['_n']},{trial['_n']},")):
            step, norm = int(line[2]), float(line[3])
            fifth = 10.0 ** (math.floor(math.log10(norm)) - 4)
            compared += 1
            if abs(printed.get(step, math.inf) - norm) > 0.5 * fifth + 0.5e-6:  # norm has 6 decimals
                wrong.append(f"step {step}: {printed.get(step)} is not {norm}")
        report.check(compared == 5 and not wrong, trial["name"],
                     "; ".join(wrong) or f"{compared} equal to 5 digits, {result['seconds'] / 901 * 1e6:.1f} us a step")


def sanitizer(machine, report, _options):
    """compute-sanitizer over small runs."""
    from shutil import which  # pylint: disable=import-outside-toplevel
    program = which("compute-sanitizer") or which("compute-sanitizer", path="/usr/local/cuda/bin")
    if not program or machine.backend != "cuda":
        report.add("skipped", "sanitizer", "no compute-sanitizer")
        return
    specs = list(SMALL) if machine.full else ["jacobi2d/jacobi2d", "halo/halo", "mesh/mesh"]
    few = {"jacobi2d/jacobi2d": ["nx=70", "ny=43", "steps=9", "report=3"], "halo/halo": ["nx=40", "ny=31", "steps=6", "report=3"],
           "mesh/mesh": ["steps=6", "report=3"]}
    trials = []
    for spec in specs:
        for mode in ("serial", "stream", "graph", "fused"):
            trials.append(spec_trial(machine, spec, 2, mode, "steps=3" if mode in ("graph", "fused") else "", few.get(spec)))
    for tool in ("memcheck", "initcheck"):
        limit = min(machine.clock.left() - 1, 240 if machine.full else 60)
        if limit < 5:
            report.add("skipped", tool, "no time left")
            continue
        done = machine.trials.command(trials, 1, [program, "--tool", tool, "--error-exitcode", "99"]).finish(limit)
        summary = re.findall(r"ERROR SUMMARY: (\d+) error", done.out + done.err)
        count = sum(result["status"] == "ok" or is_refused(result) for result in jobs.lines_of(done.out))
        if done.timed_out and not re.search(r"=========\s+(Invalid|Uninit)", done.out + done.err):
            report.add("skipped", tool, f"not ended after {limit:.0f} s, {count} runs without an error")
            continue
        first = next((line for line in (done.out + done.err).splitlines()
                      if line.startswith("=========") and ("Invalid" in line or "Uninit" in line or "rror" in line)), "")
        report.check(summary and set(summary) == {"0"} and count == len(trials), tool,
                     f"{count} of {len(trials)} runs, errors: {summary}, {done.seconds:.0f} s; {first}"[:300])
