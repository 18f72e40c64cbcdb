#!/usr/bin/env python3
# What of a build is needed whichever tests are chosen, and a look at the rest without making it.
#
#   parts.py targets BUILD  prints the targets but for programs that are tests themselves
#   parts.py check BUILD    compiles the sources of these, for errors and warnings only
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

# Folders whose programs are their tests' own: `meson test NAME` makes the ones that it runs.
OWN = tuple(os.path.join("tests", name, "") for name in ("base", "backends", "dsl", "network", "property", "runtime", "scheduler",
                                                         "softhca"))


def targets(build):
    told = subprocess.run(["meson", "introspect", "--targets", build], capture_output=True, text=True, check=True).stdout
    for target in json.loads(told):
        for path in target["filename"]:
            name = os.path.relpath(path, os.path.abspath(build))
            is_own = target["type"] == "executable" and name.startswith(OWN)
            if target["build_by_default"] and not is_own:
                yield name


def check(build):
    """The number of files that don't compile."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = [command for command in json.load(file) if command["output"].startswith(OWN)]

    def look_at(command):
        words = shlex.split(command["command"])
        at = words.index("-o")
        return subprocess.run([*words[:at], *words[at + 2:], "-fsyntax-only"], cwd=command["directory"], capture_output=True, text=True,
                              check=False)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [done.stderr for done in pool.map(look_at, commands) if done.returncode]
    print(f"{len(commands)} files, {len(wrong)} do not compile", *wrong, sep="\n")
    return len(wrong)


if __name__ == "__main__":
    if sys.argv[1] == "targets":
        print("\n".join(targets(sys.argv[2])))
    else:
        sys.exit(1 if check(sys.argv[2]) else 0)
