#!/usr/bin/env python3
# Checks that numbers in texts that programs read go through base/number.h, which knows a point for every locale: in
# what applications link, nobody else reads by strtod, and nobody prints a real number but in words for people.
#
#   numbers.py ROOT              check the tree; exit 1 and a line for each violation
#   numbers.py ROOT --self-check make files with violations, and see that they are found
import os
import re
import sys
import tempfile

FOLDERS = ["base", "dsl", "scheduler", "backends", "runtime"]
ALLOWED = {"base/number.c"}
# Device code is compiled for GPUs or with the kernels; it prints nothing that is read again.
SKIPPED = ("backends/cuda/codegen/device/",)
READS = re.compile(r"\b(strtod|strtof|strtold|strtod_l|atof)\s*\(")
PRINTS = re.compile(r'"(?:[^"\\]|\\.)*%[-+ #0-9.*]*l?[aAeEfFgG](?:[^"\\]|\\.)*"')
# Files whose texts people read: reports, reasons, progress.
FOR_PEOPLE = re.compile(
    r"^(scheduler/modes/|scheduler/model/|scheduler/print/|runtime/(tune|measure|launch|control|verify|session|bootstrap)/|runtime/bind/poster\.c|"
    r"runtime/(session|exchange/exchange)\.c|runtime/exchange/(exchange|network|run|transfer|transfer_graph)\.c|runtime/select/(choose|automatic|predict)\.c|"
    r"backends/(host/(compile|network|wait)|cuda/(serial|replay/stall_report|drive/stall_report))\.c|base/operators\.c|"
    r"dsl/reader_kinds\.c)")


def problems_of(path, text):
    if path in ALLOWED or path.startswith(SKIPPED):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if READS.search(line) and not line.lstrip().startswith("*"):
            yield f"{path}:{number}: read numbers by peal_number_read: strtod takes the locale's comma"
        if PRINTS.search(line) and not FOR_PEOPLE.match(path):
            yield f"{path}:{number}: print numbers by peal_number_print, or list the file as one for people here"


def problems_in(root):
    for folder in FOLDERS:
        for here, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(here, name)
                    with open(path, encoding="utf-8") as source:
                        yield from problems_of(os.path.relpath(path, root), source.read())


def self_check():
    wrong = {"base/a.c": 'x = strtod(text, &end);', "dsl/b.c": 'fprintf(out, "x: %.17g\\n", x);',
             "runtime/plan/c.c": 'ADD("%s (%a)", name, x);'}
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**wrong, "base/number.c": "strtod(text, end);", "base/d.c": 'printf("%d %s 50 %%", 1);',
                           "runtime/tune/e.c": 'tell("%.3g s", x);'}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text + "\n")
        found = {line.split(":")[0] for line in problems_in(root)}
    if found != set(wrong):
        print(f"found {sorted(found)}, not {sorted(wrong)}")
        return 1
    print("numbers: finds each violation")
    return 0


def main():
    if "--self-check" in sys.argv[2:]:
        return self_check()
    found = list(problems_in(sys.argv[1]))
    print("\n".join(found) if found else "numbers: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
