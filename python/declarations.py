#!/usr/bin/env python3
"""The public headers as declarations for cffi: what a C compiler's preprocessor leaves of them, without the system's.

declarations.py OUTPUT DEPENDENCIES INCLUDE_FOLDER COMPILER...
"""
import re
import subprocess
import sys


def declarations(folder, compiler):
    """The text, and the headers that it comes from."""
    done = subprocess.run([*compiler, "-E", "-I", folder, f"{folder}/peal/peal.h"], capture_output=True, text=True, check=True)
    kept, headers, ours = ["typedef struct peal_file FILE;"], set(), False
    for line in done.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]+)"', line)
        if marker:
            ours = marker.group(1).startswith(folder)
            headers |= {marker.group(1)} if ours else set()
        elif ours and line.strip():
            kept.append(line.rstrip())
    return "\n".join(kept) + "\n", sorted(headers)


if __name__ == "__main__":
    output, dependencies, include = sys.argv[1:4]
    text, found = declarations(include, sys.argv[4:])
    with open(output, "w", encoding="ascii") as file:
        file.write(text)
    with open(dependencies, "w", encoding="utf-8") as file:
        file.write(f"{output}: {' '.join(found)}\n")
