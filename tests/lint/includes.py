#!/usr/bin/env python3
# Checks who includes whom: include/ < base/ < dsl, scheduler, backends/*, runtime/transports,
# runtime/bootstrap < runtime < tools. A folder of one level sees the levels below and itself;
# dsl/ and scheduler/ see no thread, clock, socket, CUDA or PMIx header. ARCHITECTURE.md says why.
# The sub-folders of backends/cuda include each other in the order that calls.py has for calls.
#
#   includes.py ROOT              check the tree; exit 1 and a line for each violation
#   includes.py ROOT --self-check make files that violate each rule, and see that they are found
import os
import re
import sys
import tempfile

import calls

# A file belongs to the first of these that it lies under.
UNITS = ["include", "base", "dsl", "scheduler", "runtime/transports", "runtime/bootstrap", "runtime",
         "tools", "samples", "bench", "tests"]
# What a unit may include of this project. A backend sees "include", "base" and its own folder.
SEES = {
    "include": {"include"},
    "base": {"include", "base"},
    "dsl": {"include", "base", "dsl"},
    "scheduler": {"include", "base", "scheduler"},
    "runtime/transports": {"include", "base", "runtime/transports"},
    "runtime/bootstrap": {"include", "base", "runtime/bootstrap"},
    "runtime": {"include", "base", "dsl", "scheduler", "backends", "runtime", "runtime/transports",
                "runtime/bootstrap"},
    "tools": {"include", "base", "dsl", "scheduler", "backends", "runtime", "runtime/transports",
              "runtime/bootstrap", "tools"},
    "samples": {"include", "samples"},
    "bench": None,  # whatever it needs
    "tests": None,
}
PURE = {"dsl", "scheduler"}  # the same input gives the same bytes
IMPURE = re.compile(r"^(pthread|threads|semaphore|time|sched|signal|poll|stdatomic|immintrin)\.h$"
                    r"|^sys/(time|times|socket|un|mman|wait|epoll|eventfd|random)\.h$"
                    r"|^(netinet|arpa)/|^(cuda|nvrtc|nvJitLink|cudaTypedefs)|^pmix|^mpi\.h$")
ONLY_IN = [(re.compile(r"^pmix"), ("runtime/bootstrap", "runtime/launch", "tests/", "tools/version.c",
                                   "tools/doctor.c")),
           (re.compile(r"^(cuda|nvrtc|nvJitLink)"), ("base/", "backends/cuda", "tests/")),
           (re.compile(r"^mpi\.h$"), ("bench/", "samples/", "tests/"))]
# Parts whose sub-folders include each other in the order of calls.py.
ORDERED = ["backends/cuda"]
# Folders that see no header of the driver, nor one that includes it.
NO_DRIVER = ["backends/cuda/codegen"]
DRIVER = re.compile(r"^(cuda|nvrtc|nvJitLink)")
# One clock and one back-off: base/clock.h, base/backoff.h. The pure folders see neither.
TIMED = {"base/clock.h", "base/backoff.h"}
TIME_CALL = re.compile(r"(?<![\w.>])(clock_gettime|nanosleep|usleep|sched_yield|__builtin_ia32_pause)\s*\(")
TIME_IN = ("base/clock.c", "base/backoff.", "tests/", "bench/", "samples/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SKIPPED = {".git", "subprojects"}


def unit_of(path):
    if path.startswith("backends/"):
        parts = path.split("/")
        return "/".join(parts[:2]) if len(parts) > 2 else "backends"
    for unit in sorted(UNITS, key=len, reverse=True):
        if path.startswith(unit + "/"):
            return unit
    return None


def resolve(root, path, name):
    """The included file's path in the project, or None for a system header."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    for candidate in (beside, name, os.path.join("include", name)):
        if os.path.exists(os.path.join(root, candidate)):
            return candidate.replace(os.sep, "/")
    return None


def may_see(unit, target):
    allowed = {"include", "base", unit} if unit.startswith("backends") else SEES[unit]
    if allowed is None or target in allowed:
        return True
    return target.startswith("backends") and "backends" in allowed


def goes_up(path, target):
    """Whether an include within a part is against the part's order."""
    of, other = calls.room_of(path), calls.room_of(target)
    if not of or not other or of[0] != other[0] or of[0] not in ORDERED:
        return False
    return of[1] not in (".", other[1]) and other[1] not in calls.ORDERS[of[0]].get(of[1], ())


def includes_of(root, path):
    """(name, the project's file or None) of what a file includes."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        for line in source:
            match = INCLUDE.match(line)
            if match:
                yield match.group(2), resolve(root, path, match.group(2))


def driver_headers(root, path):
    """Headers of the driver that a file includes, by way of others too."""
    seen, left = {path}, [path]
    while left:
        for name, target in includes_of(root, left.pop()):
            if target is None and DRIVER.search(name):
                yield name
            elif target and target not in seen:
                seen.add(target)
                left.append(target)


def problems_of(root, path, text):
    unit = unit_of(path)
    if unit is None:
        return
    if path.startswith(tuple(folder + "/" for folder in NO_DRIVER)):
        for name in driver_headers(root, path):
            yield f"{path}: sees <{name}>, but its folder sees no header of the driver"
    for number, line in enumerate(text.splitlines(), 1):
        call = TIME_CALL.search(line)
        if call and not path.startswith(TIME_IN):
            yield f"{path}:{number}: {call.group(1)}() is for base/clock.h and base/backoff.h alone"
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        target = resolve(root, path, name)
        where = f"{path}:{number}"
        if target is None:
            if unit in PURE and IMPURE.search(name):
                yield f"{where}: {unit}/ is pure and may not include <{name}>"
            for pattern, places in ONLY_IN:
                if pattern.search(name) and not path.startswith(places):
                    yield f"{where}: <{name}> belongs in {', '.join(places)} only"
            continue
        if goes_up(path, target):
            yield f"{where}: {calls.room_of(path)[1]}/ may not include {target}"
        other = unit_of(target)
        if other and not may_see(unit, other):
            yield f"{where}: {unit}/ may not include {target} (of {other}/)"
        if unit in PURE and target in TIMED:
            yield f"{where}: {unit}/ is pure and may not include {target}"
        public = unit == "include" and not path.startswith("include/peal/plugin/")
        if (unit == "samples" or public) and target.startswith("include/peal/plugin/"):
            yield f"{where}: applications see <peal/*.h>, not the plug-in contracts"


def check(root):
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("build"))
        for name in sorted(files):
            if not name.endswith((".c", ".h", ".inc")):
                continue
            full = os.path.join(folder, name)
            path = os.path.relpath(full, root).replace(os.sep, "/")
            with open(full, encoding="utf-8", errors="replace") as source:
                found.extend(problems_of(root, path, source.read()))
    return found


def self_check():
    """Each of these must be found; the last must not."""
    wrong = [("base/a.c", '#include "dsl/dsl.h"'), ("dsl/a.c", "#include <pthread.h>"),
             ("scheduler/a.c", "#include <time.h>"), ("dsl/b.c", '#include "scheduler/scheduler.h"'),
             ("backends/host/a.c", '#include "runtime/session/session.h"'),
             ("backends/host/b.c", '#include "backends/cuda/gpu/gpu.h"'),
             ("runtime/transports/a.c", '#include "scheduler/scheduler.h"'),
             ("runtime/session.c", '#include "tools/options.h"'), ("runtime/plan/plan.c", "#include <pmix.h>"),
             ("scheduler/b.c", "#include <cuda.h>"), ("samples/x/a.c", "#include <peal/plugin/graph.h>"),
             ("dsl/e.c", '#include "base/clock.h"'), ("runtime/nap.c", "nanosleep(&time, NULL);"),
             ("include/peal/a.h", '#include "base/arena.h"'),
             ("include/peal/b.h", "#include <peal/plugin/graph.h>"),
             ("backends/cuda/gpu/a.c", '#include "backends/cuda/jit/kernels.h"'),
             ("backends/cuda/codegen/a.c", '#include "backends/cuda/gpu/gpu.h"'),
             ("backends/cuda/codegen/b.c", '#include "base/driver.h"'),
             ("backends/cuda/lower/a.c", '#include "backends/cuda/executor.h"')]
    right = [("runtime/plan2.c", '#include "dsl/dsl.h"'), ("dsl/c.c", '#include "base/arena.h"'),
             ("backends/host/c.c", '#include "backends/host/host.h"'), ("dsl/d.c", "#include <string.h>"),
             ("tools/run.c", '#include "runtime/session/session.h"'),
             ("backends/cuda/jit/a.c", '#include "backends/cuda/gpu/gpu.h"'),
             ("backends/cuda/plan.c", '#include "backends/cuda/jit/kernels.h"')]
    headers = ["dsl/dsl.h", "scheduler/scheduler.h", "runtime/session/session.h", "backends/cuda/gpu/gpu.h",
               "backends/host/host.h", "tools/options.h", "base/arena.h", "base/clock.h", "include/peal/plugin/graph.h",
               "backends/cuda/jit/kernels.h", "backends/cuda/executor.h"]
    with tempfile.TemporaryDirectory() as root:
        texts = [(h, "/* */\n") for h in headers] + [("base/driver.h", "#include <cuda.h>")]
        for path, text in texts + wrong + right:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text + "\n")
        found = "\n".join(check(root))
    missed = [path for path, _ in wrong if f"{path}:" not in found]
    false_alarms = [path for path, _ in right if f"{path}:" in found]
    for path in missed:
        print(f"self-check: the violation in {path} was not found")
    for path in false_alarms:
        print(f"self-check: {path} is right but was reported")
    return 1 if missed or false_alarms else 0


def main(arguments):
    if "--self-check" in arguments:
        return self_check()
    found = check(arguments[0])
    print("\n".join(found) if found else "includes: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
