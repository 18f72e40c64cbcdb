#!/usr/bin/env python3
# Checks who calls whom, folder by folder: an object file may need only symbols of its own folder and
# of the folders that the table below lists for it. nm says what an object needs and gives, so calls
# through tables of functions do not count. Also: which folders call no function of the CUDA driver.
#
#   calls.py ROOT BUILD              check; exit 1 and a line for each call that goes up
#   calls.py ROOT BUILD --arrows     print all arrows between folders and how many calls each has
#   calls.py ROOT BUILD --self-check see that upward calls are found
import collections
import json
import os
import re
import subprocess
import sys

# By part of the tree: its folders from the lowest to the highest, each with the folders it may
# call. "." is the files that lie in the part itself: they may call all, and nobody may call them.
ORDERS = {
    "runtime": {
        "bootstrap": (),
        "transports": (),
        "memory": (),
        "control": (),
        "network": (),
        "launch": ("bootstrap",),
        "session": ("control", "network"),
        "bind": ("session", "control", "memory", "transports", "network"),
        "watch": ("bind", "session"),
        "select": ("bind", "session", "control", "memory"),
        "verify": ("watch", "bind", "session", "control", "memory"),
        "footprints": ("watch", "bind", "session", "memory"),
        "exchange": ("bind", "session", "control"),
        "plan": ("select", "verify", "footprints", "watch", "bind", "session", "control", "memory"),
        "measure": ("plan", "select", "session", "control"),
        "tune": ("plan", "select", "verify", "session", "control", "memory"),
    },
    "backends/cuda": {
        "gpu": (),
        "codegen": (),
        "jit": ("gpu", "codegen"),
        "lower": ("gpu", "codegen", "jit"),
        "stream": ("gpu", "codegen", "jit", "lower"),
        "drive": ("gpu", "codegen", "jit", "lower", "stream"),
        "replay": ("gpu", "codegen", "jit", "lower", "stream", "drive"),
        "fused": ("gpu", "codegen", "jit", "lower"),
        "graph": ("gpu", "codegen", "jit", "lower", "stream", "drive", "replay", "fused"),
    },
    "scheduler": {
        "view": (),
        "print": ("channels",),
        "model": (),
        "geometry": ("view",),
        "conditions": ("view",),
        "stories": ("view", "geometry", "conditions"),
        "tasks": ("view", "geometry", "stories"),
        "messages": ("view", "geometry", "conditions", "stories", "tasks"),
        "order": ("view", "geometry", "conditions", "tasks", "messages"),
        "channels": ("view", "geometry", "tasks", "messages", "order"),
        "lower": ("view", "geometry", "order", "channels"),
        "classes": ("view", "geometry", "tasks"),
        "halos": ("view", "geometry", "conditions", "tasks", "messages", "classes"),
        "check": ("view", "geometry", "conditions", "stories", "tasks", "messages", "classes",
                  "halos"),
        "modes": ("view", "tasks"),
    },
}
# Folders whose sources name no function of the driver: they describe work, others enqueue it.
NO_DRIVER = ["backends/cuda/codegen", "backends/cuda/lower"]
DRIVER_CALL = re.compile(r"\bdriver->\w+\s*\(")


def objects_of(build):
    """(source, object) of every C file that belongs to a static library, both absolute."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if ".a.p" in entry["output"] and entry["file"].endswith(".c"):
                folder = entry["directory"]
                yield (os.path.normpath(os.path.join(folder, entry["file"])),
                       os.path.join(folder, entry["output"]))


def symbols_of(paths):
    """{object: (what it gives, what it needs)}."""
    symbols = {path: (set(), set()) for path in paths}
    for line in subprocess.check_output(["nm", "-A", *paths], text=True).splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        if kind == "U":
            symbols[path][1].add(name)
        elif kind in "TDBRVWC":
            symbols[path][0].add(name)
    return symbols


def room_of(path):
    """(part, folder) of a source file, or None if the part has no order."""
    for part in ORDERS:
        if path.startswith(part + "/"):
            rest = path[len(part) + 1:].split("/")
            return part, rest[0] if len(rest) > 1 else "."
    return None


def calls_between(files):
    """files: {source: (gives, needs)}. Yields (from, to, symbol) where both lie in one part."""
    giver = {name: source for source, (gives, _) in files.items() for name in gives}
    for source, (_, needs) in sorted(files.items()):
        for name in sorted(needs):
            target = giver.get(name)
            if target and target != source and room_of(source) and room_of(target):
                if room_of(source)[0] == room_of(target)[0]:
                    yield source, target, name


def problems_of(files):
    for source in sorted(files):
        part, folder = room_of(source) or (None, None)
        if part and folder != "." and folder not in ORDERS[part]:
            yield f"{source}: {part}/{folder} has no place in the order of tests/lint/calls.py"
    for source, target, name in calls_between(files):
        part, folder = room_of(source)
        other = room_of(target)[1]
        if folder != other and folder != "." and other not in ORDERS[part].get(folder, ()):
            yield f"{source}: {folder} may not call {other}: {name} ({target})"


def driver_calls(root):
    for folder in NO_DRIVER:
        for name in sorted(os.listdir(os.path.join(root, folder))):
            path = os.path.join(folder, name)
            if name.endswith((".c", ".h")):
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        if DRIVER_CALL.search(line):
                            yield f"{path}:{number}: {folder} calls no function of the driver"


def read_files(root, build):
    object_of = {}
    for source, path in objects_of(build):
        name = os.path.relpath(source, root)
        if room_of(name) and os.path.exists(path) and os.path.exists(source):
            object_of[name] = path
    symbols = symbols_of(object_of.values()) if object_of else {}
    return {name: symbols[path] for name, path in object_of.items()}


def print_arrows(files):
    count = collections.Counter()
    for source, target, _ in calls_between(files):
        (part, folder), other = room_of(source), room_of(target)[1]
        if folder != other:
            count[part, folder, other] += 1
    for (part, folder, other), calls in sorted(count.items()):
        mark = "" if folder == "." or other in ORDERS[part].get(folder, ()) else "  UP"
        print(f"{part}: {folder} -> {other}: {calls}{mark}")


def self_check():
    """The second call goes up, the third is a sibling's; the fourth names a folder without order."""
    global ORDERS
    real, ORDERS = ORDERS, {"p": {"low": (), "left": ("low",), "right": ("low",)}}
    files = {"p/low/a.c": ({"a"}, {"b"}), "p/left/b.c": ({"b"}, {"a", "c"}),
             "p/right/c.c": ({"c"}, {"a"}), "p/new/d.c": ({"d"}, set()), "p/e.c": ({"e"}, {"c", "b"})}
    found = list(problems_of(files))
    ORDERS = real
    wanted = ["p/new/d.c", "p/left/b.c", "p/low/a.c"]
    return len(found) == 3 and all(any(f.startswith(w) for f in found) for w in wanted)


def main():
    root, build = sys.argv[1], sys.argv[2]
    if "--self-check" in sys.argv and not self_check():
        print("calls.py: the check of itself failed")
        return 1
    files = read_files(root := os.path.abspath(root), os.path.abspath(build))
    if "--arrows" in sys.argv:
        print_arrows(files)
        return 0
    found = list(problems_of(files)) + list(driver_calls(root))
    print("\n".join(found + [f"calls: {len(files)} files, {len(found)} problems"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
