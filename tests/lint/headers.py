#!/usr/bin/env python3
# Compiles each header that applications and plug-ins include, alone: as C11 and as C++17, with
# -Wpedantic, and warnings are errors. kernel.h is for kernels in C; mpi.h needs an MPI (its test is
# tests/tools/mpi_test.py).
#
#   headers.py ROOT CC [CXX]
import os
import subprocess
import sys

ONLY_C = {"kernel.h"}
NEEDS_MORE = {"mpi.h"}


def compiles(root, compiler, words, name):
    command = compiler + words + ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                                  "-I", os.path.join(root, "include"), "-"]
    done = subprocess.run(command, input=f"#include <peal/{name}>\nextern int nothing_else;\n", text=True,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"{' '.join(command)}: <peal/{name}>\n{done.stderr}")
    return done.returncode == 0


def main(arguments):
    root, c = arguments[0], arguments[1].split()
    cxx = arguments[2].split() if len(arguments) > 2 else None
    folder = os.path.join(root, "include/peal")
    public = sorted(n for n in os.listdir(folder) if n.endswith(".h") and n not in NEEDS_MORE)
    plugin = sorted("plugin/" + n for n in os.listdir(os.path.join(folder, "plugin")))
    good = [compiles(root, c, ["-std=c11", "-xc"], n) for n in public + plugin]
    if cxx:
        good += [compiles(root, cxx, ["-std=c++17", "-xc++"], n) for n in public + plugin if n not in ONLY_C]
    print(f"headers: {len(good)} compiled, {good.count(False)} failed")
    return 1 if False in good else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
