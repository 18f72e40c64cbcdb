#!/usr/bin/env python3
# What is put onto a GPU's streams means what the schedule says: samples, specs of run-time decisions and
# random graphs, with kernels that run on the host (emulate.c), in one and several processes, equal `serial`
# bit for bit, and where no reduction goes into fields the host's. No GPU is needed; what only a GPU can show (several kernels at a time, the order
# of memory, speed) is not shown.
#
# At each commit a share of the modes: see `shares` and share.py.
#
#   emulation_test.py STANDIN TRIALS SAMPLES SPECS INCLUDE [--seeds FIRST:COUNT] [--only WORD]
#   STANDIN: folder of the emulating driver and compiler; INCLUDE: folder of the emulated device
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402

MODES = [("graph", ""), ("sync", ""), ("stream", ""), ("graph", "", "no_deferral=1"), ("graph", "plain=64"),
         ("graph", "signal=kernel,steps=6"), ("graph", "signal=memop,copy=engine"), ("graph", "until=while"), ("graph", "bundle=8"),
         ("fused", "blocks=2,steps=6,order=tickets"), ("fused", "blocks=1,steps=6,order=paper"), ("fused", "blocks=2,steps=6")]
JITTER = [("fused", "blocks=4,steps=6", "jitter=50000"), ("fused", "blocks=3,steps=6,order=tickets", "jitter=50000")]
OFTEN = 3  # a spec is run in the first mode and the last, and in every third of the others, in turn
AT_LEAST = "heat3d"  # a commit's share has one of these modes for some specs, and for this sample every sixth of those that no other took
# Sizes, and how many processes, a rank each.
SAMPLES = {"jacobi2d": (["nx=70", "ny=66", "steps=37", "report=1"], (1, 4)),
           "heat3d": (["steps=12", "report=5"], (2,)),
           "halo": (["nx=90", "ny=61", "steps=30", "report=10"], (1, 4)),
           "cg": (["n=40", "limit=30"], (3,)),
           "hpgmg": (["n=16", "vcycles=0", "solves=11"], (1, 2)),
           "vcycle": (["n=36", "cycles=2", "coarse=6"], (2,)),
           "hdiff": (["nx=37", "ny=22", "levels=3", "steps=9", "report=4"], (2,)),
           "hdiff/pair": (["nx=22", "ny=19", "levels=2", "steps=7", "report=3"], (1,)),
           "particles": (["each=300", "room=5000", "out=80", "steps=41", "report=10"], (2,)),
           "bfs": (["n=600"], (4,)),
           "jacobi_until": (["nx=40", "ny=36", "tol=0.3", "lag=0"], (2,))}
ALIKE = {"bfs", "jacobi2d", "heat3d", "halo", "hdiff", "hdiff/pair", "jacobi_until"}  # fields that no reduction goes into: tiles of a GPU are others
SPECS = {"norm": (3,), "reaches": (2,), "edges": (2,), "beside": (2,), "twice": (2,), "unaligned": (1,), "unequal": (2,), "spread": (2,), "images": (1,), "when": (2,), "inner": (2,), "until": (3,), "nested": (2,),
         "around": (4,), "downwind": (2,), "walls": (4,), "rare": (2,), "strips": (3,), "slices": (2,), "bounded": (3,), "turns": (1, 3, 4), "sweeps": (2,), "odd": (1,)}
SIZES = {"inner": ["steps=20"]}  # what is shorter than in the spec
NEVER_REFUSED = {"turns", "rare"}
# Of which a few ways are enough; a graph counts steps eight times.
FEW_MODES = {"norm": [("stream", ""), ("graph", "steps=28"), ("graph", "steps=28,plain=64"),
                      ("graph", "steps=28", "no_deferral=1"), *JITTER],
             "particles": [("stream", ""), MODES[0], MODES[-1]], "hpgmg": [MODES[0], ("graph", "bundle=8")], "bfs": [MODES[0], MODES[-1]],
             "rare": [MODES[0], ("graph", "signal=memop,copy=engine"), MODES[-3], MODES[-1]],
             "downwind": [("fused", "blocks=4,steps=6"), ("fused", "blocks=4,steps=6", "jitter=50000"), MODES[-1]],
             "bounded": [("graph", "signal=memop,copy=engine"), MODES[-1]], "walls": [MODES[0], MODES[-1]],
             "unaligned": [MODES[-1]], "unequal": [MODES[-3], MODES[-2]],
             "strips": [("fused", "blocks=1,steps=6"), ("fused", "blocks=2,steps=6")],
             "spread": [("fused", "blocks=1,steps=6"), ("fused", "blocks=1,steps=6", "jitter=50000"), MODES[-1]],
             "images": [("fused", "blocks=1,steps=6,tile=272"), ("fused", "blocks=2,steps=6,tile=272", "jitter=50000")],
             **dict.fromkeys(("hdiff", "hdiff/pair", "jacobi_until", "reaches", "edges", "beside", "twice", "sweeps", "odd"), [MODES[0], MODES[-1]])}
# Several ranks in each of two processes, whose kernels run one after the other: they must be put onto streams
# in an order in which no wait comes before what the other process waits for, and a graph must not allow another.
SHARED = {"around": (4, ["steps=10"]), "chained": (6, ["steps=20"]), "inner": (5, ["steps=2"]), "cg": (4, ["n=40", "limit=4"])}
SHARED_MODES = [("sync", ""), ("stream", "lanes=2"), ("graph", "lanes=2,steps=2")]
# Several ranks of a process in one kernel that stays, whose messages are flags in it and events of streams outside of it: processes,
# ranks. jacobi_until ends within a round and goes on; every third random graph has so many steps that it may come to one.
TOGETHER = {"jacobi2d": (1, 4, ["nx=40", "ny=34", "steps=26", "report=1"], ""), "cg": (1, 3, ["n=30", "limit=11"], ""),
            "jacobi_until": (1, 3, ["nx=40", "ny=36", "tol=0.25", "lag=0"], "40,1,1,1,1,40"),
            "inner": (1, 2, ["steps=5"], ""), "chained": (2, 5, ["steps=11"], "")}
TOGETHER_MODES = [("fused", "blocks=3,steps=1"), ("fused", "blocks=2,steps=1,order=tickets")]
TOGETHER_STARTS = "17,-1"
# Starts of any length begin and end amid a recording that prints: processes, ranks.
PARTS = {"jacobi2d": (1, 2, ["nx=40", "ny=34", "steps=47", "report=2"]), "heat3d": (2, 2, ["steps=61", "report=5"]),
         "hdiff": (2, 2, ["nx=22", "ny=19", "levels=2", "steps=45", "report=4"]), "norm": (2, 2, ["steps=40"]),
         "long": (2, 2, ["steps=27"]),
         "halo/short": (2, 2, ["nx=61", "ny=43", "steps=107", "report=25"]), "halo/short ": (1, 1, ["nx=61", "ny=43", "steps=90", "report=7"])}
PARTS_STARTS = "1,3,2,7,1,12,-1"
BEYOND_STARTS = "6,7,2"  # of a run that has 3 steps
PARTS_MODES = [("graph", ""), ("graph", "steps=40,lanes=2"), ("fused", "blocks=2,steps=6"), ("fused", "blocks=2,steps=40")]
# Deep rounds: their plain steps lie where a launch ends, and where something looks at the older field.
DEEP = {"deep": ["steps=43"], "deep ": ["old=1"], "deep  ": ["pace=1", "steps=30"], "jacobi2d": ["nx=40", "ny=34", "steps=90", "report=30"],
        "chain_rim": [], "chain_self": [], "chain_pairs": [], "chain_gaps": [], "chain_part": [],
        "heat3d": ["steps=40", "report=13"], "halo/short": ["nx=61", "ny=43", "steps=107", "report=25"], "denoise": []}
DEEP_MODES = [("fused", "blocks=2,steps=6,deep=3"), ("fused", "deep=5", "jitter=50000"), ("fused", "deep=9")]
# Processes that pretend to be on several hosts: processes, hosts, starts.
HOSTS = {"jacobi2d": (4, 2, ["nx=40", "ny=34", "steps=26", "report=1"], ""), "heat3d": (2, 2, ["steps=12", "report=5"], ""),
         "cg": (3, 3, ["n=30", "limit=11"], ""), "jacobi_until": (2, 2, ["nx=40", "ny=36", "tol=0.25", "lag=0"], "40,1,1,1,1,40"),
         "norm": (4, 2, ["steps=40"], PARTS_STARTS), "hdiff": (2, 2, ["nx=22", "ny=19", "levels=2", "steps=9", "report=4"], ""),
         "particles": (2, 2, ["each=300", "room=5000", "out=80", "steps=11", "report=5"], "")}
ALWAYS = {"strips"}  # alone has wide boxes, whose tiles are staged, behind each other
WRAP = 2**64 - 4  # numbers of messages wrap around
HOSTS_MODES = [("sync", ""), ("stream", ""), ("graph", "steps=6"), ("graph", "signal=memop,copy=engine"), ("fused", "blocks=2,steps=6")]
LATE_FROM = "4"  # the block from which on ranks of one kernel are late: those of the last of three at least
COUNTED_MODES = [("serial", ""), ("stream", ""), ("graph", "signal=memop,copy=engine"), ("fused", "blocks=2,steps=6")]
VALUE_MODES = [("serial", ""), ("sync", ""), ("stream", ""), ("graph", "steps=2"), ("fused", "blocks=2,steps=6"), ("fused", "blocks=2,steps=6,order=tickets")]
LIMIT_S = 500


def path_of(options, name):
    """A sample is named after its folder, or FOLDER/SPEC."""
    path = f"{options.samples}/{name if '/' in name else f'{name}/{name}'}.yaml"
    return path if os.path.exists(path) else f"{options.specs}/{name}.yaml"


def lines_of(specs, ranks, modes):
    """A trial a line: `serial` first, on the host and on the device."""
    for name, words in specs:
        for backend, mode, lower, *hooks in [("host", "serial", ""), ("cuda", "serial", "")] + [("cuda", *mode) for mode in modes]:
            how = " ".join([lower, *hooks]) if hooks else lower
            trial = [f"name={name}|{backend} {mode} {how}", f"ranks={ranks}", f"mode={mode}", f"backend={backend}", "deadline=30",
                     "rows=1", *hooks, *words]
            yield "\t".join(trial + ([f"lower={lower}"] if lower else []))


def some_of(modes, turn):
    last = len(modes) - 1
    return [mode for k, mode in enumerate(modes) if k in (0, last) or (k + turn) % OFTEN == 0]


def shares(specs):
    """(name, processes): the modes of a commit's share, of which six commits one after the other take each."""
    lists = {(name, processes): FEW_MODES.get(name, some_of(MODES, len(name) + processes))
             for name, _, counts in specs for processes in counts}
    if share.ALL:
        return lists
    print(f"share: a mode of each 36th spec (PEAL_TEST_SEED={share.SEED}; more: PEAL_TEST_EVERY=1)")
    lists = {key: [modes[(share.SEED + turn) // 36 % len(modes)]] if (share.SEED + turn) % 36 == 0 else []
             for turn, (key, modes) in enumerate(lists.items())}
    for key in lists:
        if key[0] in ALWAYS and not lists[key]:
            lists[key] = share.taken(FEW_MODES[key[0]], 2)
    left = [mode for mode in MODES + JITTER if not any(mode in modes for modes in lists.values())]
    for key in list(lists)[::-1]:
        if key[0] == AT_LEAST:
            lists[key] += share.taken(left, 6) if left else []
            break
    return lists


def run(options, folder, processes, lines, record=os.devnull, **more):
    path = os.path.join(folder, f"list{processes}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    env = {**os.environ, "LD_LIBRARY_PATH": options.standin, "STANDIN_DEVICES": str(processes), "STANDIN_RECORD": record,
           "STANDIN_SMS": "3", "EMULATE_INCLUDE": options.include, "EMULATE_UNITS": options.units or folder, "XDG_CACHE_HOME": os.path.join(folder, "cache"), **more}
    if not lines:
        return {}
    job = subprocess.run([options.trials, str(processes), folder, path], env=env, capture_output=True, text=True, check=False,
                         timeout=LIMIT_S)
    results = [json.loads(line.replace("-nan", "NaN").replace(": nan", ": NaN")) for line in job.stdout.splitlines() if '"status"' in line]
    if len(results) < len(lines):
        print(job.stderr[-2000:])
    return {result["name"]: result for result in results}


def difference(name, results):
    """In words, or None."""
    what, how = name.split("|")
    result, serial, host = results.get(name), results.get(f"{what}|cuda serial "), results.get(f"{what}|host serial ")
    if not result or not serial or not host:
        return "no result"
    if result["status"] != "ok":
        return f"{result['status']} {' / '.join(result['messages'])[:200]}"
    if any(result[key] != serial[key] for key in ("digest", "steps", "rows")):
        return "differs from serial"
    if how == "cuda serial " and what in ALIKE and result["digest"] != host["digest"]:
        return "differs from the host"
    return None


def is_refused(name, what, said):
    """A mode that cannot run the spec has said why; a session says a thing once."""
    if not what.startswith("unsuitable environment"):
        return False
    if " cannot run" in what or "engine" in name or "fused" in name:
        said.add(name.split("|")[0])
    return name.split("|")[0] in said


def judge(lines, results, counts):
    said = set()
    for name in (line.split("\t")[0][len("name="):] for line in lines):
        if "|host " in name:
            continue
        what = difference(name, results)
        if what is None:
            counts["ok"] += 1
        elif name.split("|")[0] not in NEVER_REFUSED and is_refused(name, what, said):
            counts["refused"] += 1
        else:
            counts["failed"] += 1
            print(f"FAILED {name}: {what}")


def shared(options, seeds):
    lines = []
    for turn, (name, (ranks, words)) in enumerate(SHARED.items()):
        path = path_of(options, name)
        if options.only in f"{name} shared":
            lines += lines_of([(f"{name} shared", [f"spec={path}", *(f"set={word}" for word in words)])], ranks, share.taken(SHARED_MODES, 4, turn))
    for seed, ranks in ((row[0], int(row[1])) for row in seeds):
        if ranks > 2 and options.only in f"random {seed} shared":
            lines += lines_of([(f"random {seed} shared", [f"seed={seed}"])], ranks, share.taken(SHARED_MODES, 4, int(seed)))
    return lines


def together(options, processes, seeds):
    lines = []
    for turn, (name, (count, ranks, words, starts)) in enumerate(TOGETHER.items()):
        if count == processes and options.only in f"{name} together":
            words = [f"spec={path_of(options, name)}", *(f"set={word}" for word in words), *([f"starts={starts}"] if starts else [])]
            lines += lines_of([(f"{name} together", words)], ranks, share.taken(TOGETHER_MODES, 4, turn))
    for seed, ranks in ((row[0], int(row[1])) for row in seeds if processes == 1 and int(row[0]) % 3 == 1):
        if ranks > 1 and options.only in f"random {seed} together":
            lines += lines_of([(f"random {seed} together", [f"seed={seed}", f"starts={TOGETHER_STARTS}"])], ranks, share.taken(TOGETHER_MODES, 4, int(seed)))
    return lines


def check_together(options, folder, processes, seeds, counts):
    """Each spec comes to a round at least; a random graph may not."""
    lines = together(options, processes, seeds)
    results = run(options, folder, processes, lines)
    judge(lines, results, counts)
    for name, result in results.items():
        if "|cuda fused " in name and not name.startswith("random ") and result["status"] == "ok" and not result["replayed"]:
            counts["failed"] += 1
            print(f"FAILED {name}: no step was in a round of the kernel that stays")


def check_parts(options, folder, counts):
    """Rows come in order, each once, wherever a launch begins and ends."""
    some = {name: PARTS[name] for name in share.taken(PARTS, 4)} if not options.only else PARTS
    for processes in (1, 2):
        lines = []
        for name, (count, ranks, words) in some.items():
            if count == processes and options.only in f"{name} parts":
                words = [f"spec={path_of(options, name.strip())}", *(f"set={word}" for word in words), f"starts={PARTS_STARTS}"]
                lines += lines_of([(f"{name} parts", words)], ranks, PARTS_MODES)
        if processes == 2 and options.only in "beyond parts":
            lines += lines_of([("beyond parts", [f"spec={path_of(options, 'beyond')}", f"starts={BEYOND_STARTS}"])], 2, [MODES[0], MODES[-1]])
        judge(lines, run(options, folder, processes, lines), counts)


def check_deep(options, folder, counts):
    """Rounds of several steps a block are as those steps, wherever launches begin and end."""
    lines = []
    for turn, (name, words) in enumerate(DEEP.items()):
        if options.only in f"{name} rounds":
            words = [f"spec={path_of(options, name.strip())}", *(f"set={word}" for word in words)]
            modes = DEEP_MODES if turn == 0 else share.taken(DEEP_MODES, 3, turn) if "chain" not in name else DEEP_MODES[-1:]
            lines += lines_of([(f"{name} rounds", words), (f"{name} rounds in parts", [*words, f"starts={PARTS_STARTS}"])], 1, modes)
    judge(lines, run(options, folder, 1, lines), counts)


def check_hosts(options, folder, seeds, counts):
    """What a device stores for other hosts is posted in every mode, over starts of any length."""
    for turn, (name, (processes, hosts, words, starts)) in enumerate(HOSTS.items()):
        modes = HOSTS_MODES if share.ALL else [HOSTS_MODES[(share.SEED + turn) % len(HOSTS_MODES)]] if (share.SEED + turn) % 3 == 0 else []
        words = [f"spec={path_of(options, name)}", *(f"set={word}" for word in words), *([f"starts={starts}"] if starts else [])]
        lines = list(lines_of([(f"{name} hosts", words)], processes, modes)) if options.only in f"{name} hosts" else []
        judge(lines, run(options, folder, processes, lines, PEAL_TEST_HOSTS=str(hosts)), counts)
    for seed, ranks in ((row[0], int(row[1])) for row in share.taken(seeds, 6)):
        if ranks > 1 and options.only in f"random {seed} hosts":
            modes = share.taken(HOSTS_MODES, 4, int(seed))
            lines = list(lines_of([(f"random {seed} hosts", [f"seed={seed}"])], ranks, modes))
            lines = [line if "mode=serial" in line else f"{line}\tfirst={WRAP}" for line in lines]
            judge(lines, run(options, folder, ranks, lines, PEAL_TEST_HOSTS="2"), counts)


def check_late(options, folder, counts):
    """A rank that is late sees what others sent it before their `until` ended the run."""
    name = "jacobi_until late"
    _, ranks, words, starts = TOGETHER["jacobi_until"]
    words = [f"spec={path_of(options, 'jacobi_until')}", *(f"set={word}" for word in words), f"starts={starts}"]
    lines = [line.replace("deadline=30", "deadline=3") for line in lines_of([(name, words)], ranks, TOGETHER_MODES)]
    judge(lines, run(options, folder, 1, lines, EMULATE_LATE=LATE_FROM), counts)


def check_launches(options, folder, counts):
    """A step with an allreduce is one launch, or two where the interior is one of its own; but for the
    steps behind which steps are counted, and those with another allreduce. Of hdiff on one rank, whose
    tiles store images of their own points, each task is one; those of a plain kernel are one more."""
    norm, hdiff = ("norm", 2, ["steps=0"]), ("hdiff", 1, ["steps=0", "nx=20", "ny=10", "levels=2", "report=1000"])
    for (name, ranks, words), lower, least, most in (
            (norm, "", 1, 2.5), (norm, "plain=64", 2, 3),
            (hdiff, "", 4, 4.5), (hdiff, "plain=64", 8, 8.5)):
        record = os.path.join(folder, f"record {name} {lower}")
        lines = [line for line in lines_of([(name, [f"spec={path_of(options, name)}", *(f"set={word}" for word in words)])],
                                           ranks, [("graph", ",".join(["steps=64", *([lower] if lower else [])]))]) if "mode=graph" in line]
        run(options, folder, ranks, lines, record)
        with open(record, encoding="ascii") as file:
            calls = file.read().split("\n")
        begin = calls.index("cuStreamBeginCapture")  # of one process the whole recording is the first
        end = calls.index("cuStreamEndCapture", begin) if ranks == 1 else len(calls) - calls[::-1].index("cuStreamEndCapture")
        calls = calls[begin:end]
        launches = sum(call in ("cuLaunchKernel", "cuLaunchKernelEx") for call in calls) / (ranks * 64)
        counts["ok" if least <= launches < most else "failed"] += 1
        if not least <= launches < most:
            print(f"FAILED {name} {lower}: {launches} launches a step")


def check_counts(options, folder, counts):
    """A count that is out of range ends the run, which says whose it was; nobody waits for ever."""
    for setting, said in (("out=2", "elements, of at most 4"), ("room=303", "points, of at most 303")):
        words = ["deadline=5", f"spec={path_of(options, 'particles')}", *(f"set={word}" for word in SAMPLES["particles"][0]), f"set={setting}"]
        for mode in COUNTED_MODES:
            line = [line for line in lines_of([("counts", words)], 2, [mode]) if f"|cuda {mode[0]} {mode[1]}\t" in line][-1]
            result = run(options, folder, 1, [line])[line.split("\t")[0][len("name="):]]
            good = result["errors"] == ["E370"] and said in result["messages"][0]
            counts["ok" if good else "failed"] += 1
            if not good:
                print(f"FAILED particles {setting} {mode}: {result['errors']} {result['messages']}")


def check_values(options, folder, counts):
    """A value that does not fit its buffer, and arithmetic that has no result, end the run at the `set`: the same
    rank-independent words on host and device, in every mode; what fits does not."""
    narrow = ("`{}` is set to {}, but its type {} holds {}").format
    trials = [("grow=50", "E371", "step 5: " + narrow("u", 300, "u8", "0 to 255")),
              ("fall=2", "E371", "step 2: " + narrow("u", -1, "u8", "0 to 255")),
              ("wide=300000000", "E371", "step 7: " + narrow("i", 2400000000, "i32", "-2147483648 to 2147483647")),
              ("wide=-1000000000", "E371", "step 2: " + narrow("i", -3000000000, "i32", "-2147483648 to 2147483647")),
              ("square=1", "E043 E662", "overflow"), ("below=7", "E044 E662", "by zero"),
              ("grow=1", None, "")]
    for setting, number, said in share.taken(trials, 4):
        words = ["deadline=10", f"spec={path_of(options, 'narrow')}", f"set={setting}"]
        for ranks in (1, 2):
            for mode in VALUE_MODES:
                line = [line for line in lines_of([("values", words)], ranks, [mode]) if f"|cuda {mode[0]} {mode[1]}\t" in line][-1]
                result = run(options, folder, 1, [line])[line.split("\t")[0][len("name="):]]
                good = len(result["errors"]) == 1 and result["errors"][0] in number and said in result["messages"][0] if number else result["status"] == "ok"
                counts["ok" if good else "failed"] += 1
                if not good:
                    print(f"FAILED narrow {setting} {ranks} ranks {mode}: {result['status']} {result['errors']} {result['messages']}")


def main():
    parser = argparse.ArgumentParser()
    for word in ("standin", "trials", "samples", "specs", "include"):
        parser.add_argument(word, type=os.path.abspath)
    parser.add_argument("--seeds", default="1:3")
    parser.add_argument("--only", default="")
    parser.add_argument("--mode", default="", help="those with this in their name or lowering alone, and serial")
    parser.add_argument("--units", default=os.environ.get("PEAL_TEST_CACHE", ""), help="where compiled kernels are kept")
    options = parser.parse_args()
    for modes in (MODES, *FEW_MODES.values()):
        modes[:] = [mode for mode in dict.fromkeys(modes + MODES) if options.mode in " ".join(mode)] if options.mode else modes
    COUNTED_MODES[:] = [mode for mode in COUNTED_MODES if options.mode in " ".join(mode)]
    VALUE_MODES[:] = [mode for mode in VALUE_MODES if options.mode in " ".join(mode)]
    PARTS_MODES[:] = [mode for mode in PARTS_MODES if options.mode in " ".join(mode)]
    DEEP_MODES[:] = [mode for mode in DEEP_MODES if options.mode in " ".join(mode)]
    HOSTS_MODES[:] = [mode for mode in HOSTS_MODES if options.mode in " ".join(mode)]
    TOGETHER_MODES[:] = [mode for mode in TOGETHER_MODES if options.mode in " ".join(mode)]
    first, count = (int(word) for word in options.seeds.split(":"))
    specs = [(name, [f"spec={path_of(options, name)}", *(f"set={word}" for word in words)], counts)
             for name, (words, counts) in SAMPLES.items()]
    specs += [(name, [f"spec={path_of(options, name)}", *(f"set={word}" for word in SIZES.get(name, []))], counts)
              for name, counts in SPECS.items()]
    specs = [spec for spec in specs if options.only in spec[0]]
    modes = shares(specs)
    counts = {"ok": 0, "refused": 0, "failed": 0}
    seeds = subprocess.run([options.trials, "seeds", str(first), str(count)], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2, 3, 4):
            lines = [line for name, words, counted in specs if processes in counted and modes[name, processes]
                     for line in lines_of([(name, words)], processes, modes[name, processes])]
            for row in [row.split() for row in seeds.splitlines()]:
                if processes == (1 if int(row[0]) % 3 == 0 else int(row[1])) and options.only in "random":
                    lines += lines_of([(f"random {row[0]}", [f"seed={row[0]}"])], int(row[1]), share.taken(some_of(MODES, int(row[0])), 8, int(row[0])))
            judge(lines, run(options, folder, processes, lines), counts)
        rows = [row.split() for row in seeds.splitlines()]
        lines = shared(options, rows)
        judge(lines, run(options, folder, 2, lines), counts)
        for processes in (1, 2) if TOGETHER_MODES else ():
            check_together(options, folder, processes, rows, counts)
        check_parts(options, folder, counts)
        check_deep(options, folder, counts)
        check_hosts(options, folder, rows, counts)
        if options.only in "jacobi_until late" and TOGETHER_MODES:
            check_late(options, folder, counts)
        if options.only in "counts":
            check_counts(options, folder, counts)
        if options.only in "values":
            check_values(options, folder, counts)
        if options.only in "norm":
            check_launches(options, folder, counts)
    print(f"{counts['ok']} runs equal serial, {counts['refused']} refused, {counts['failed']} failed")
    sys.exit(counts["failed"] > 0 or counts["ok"] == 0)


if __name__ == "__main__":
    main()
