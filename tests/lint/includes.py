#!/usr/bin/env python3
# Checks who includes whom: include/ < base/ < dsl, scheduler, backends/*, runtime/transports,
# runtime/bootstrap < runtime < tools. A folder of one level sees the levels below and itself;
# dsl/ and scheduler/ see no thread, clock, socket, CUDA or PMIx header. ARCHITECTURE.md says why.
#
#   includes.py ROOT              check the tree; exit 1 and a line for each violation
#   includes.py ROOT --self-check make files that violate each rule, and see that they are found
import os
import re
import sys
import tempfile

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


def problems_of(root, path, text):
    unit = unit_of(path)
    if unit is None:
        return
    for number, line in enumerate(text.splitlines(), 1):
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
        other = unit_of(target)
        if other and not may_see(unit, other):
            yield f"{where}: {unit}/ may not include {target} (of {other}/)"
        if unit == "samples" and target.startswith("include/peal/plugin/"):
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
             ("backends/host/a.c", '#include "runtime/session.h"'),
             ("backends/host/b.c", '#include "backends/cuda/gpu/gpu.h"'),
             ("runtime/transports/a.c", '#include "scheduler/scheduler.h"'),
             ("runtime/session.c", '#include "tools/options.h"'), ("runtime/plan.c", "#include <pmix.h>"),
             ("scheduler/b.c", "#include <cuda.h>"), ("samples/x/a.c", "#include <peal/plugin/graph.h>"),
             ("include/peal/a.h", '#include "base/arena.h"')]
    right = [("runtime/plan2.c", '#include "dsl/dsl.h"'), ("dsl/c.c", '#include "base/arena.h"'),
             ("backends/host/c.c", '#include "backends/host/host.h"'), ("dsl/d.c", "#include <string.h>"),
             ("tools/run.c", '#include "runtime/session.h"')]
    headers = ["dsl/dsl.h", "scheduler/scheduler.h", "runtime/session.h", "backends/cuda/gpu/gpu.h",
               "backends/host/host.h", "tools/options.h", "base/arena.h", "include/peal/plugin/graph.h"]
    with tempfile.TemporaryDirectory() as root:
        for path, text in [(h, "/* */\n") for h in headers] + wrong + right:
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
