#!/usr/bin/env python3
# Counts the results of a `meson test` from its testlog.json: names what was skipped, what failed and
# what took longest, then prints "N passed, N failed, N skipped" as the last line. Exit 1: something
# failed, nothing ran, or what should have run did not.
#
#   count.py LOG                what the log has
#   count.py LOG --tree ROOT    of each folder of tests at least one test has run
#   count.py LOG NAMES          the tests that the file NAMES lists have run
#   count.py --self-check
import glob
import json
import os
import re
import sys
import tempfile

LONGEST = 8
# Folders whose tests need what a machine may lack: CUDA's headers, libyaml.
OPTIONAL = {"gpu": "no CUDA headers", "standin": "no CUDA headers", "golden": "no libyaml", "samples": "no libyaml"}
NO_TESTS = {"share", "specs", "lint"}  # those of lint/ are declared beside the tools'


def folders_with_tests(root):
    for path in sorted(glob.glob(os.path.join(root, "tests", "*", "meson.build"))):
        folder = os.path.basename(os.path.dirname(path))
        with open(path, encoding="utf-8") as build:
            if folder not in NO_TESTS and re.search(r"^ *test\(", build.read(), re.M):
                yield folder


def missing_folders(root, ran):
    """(folder, why it may be missing or None) of those of which nothing has run."""
    for folder in folders_with_tests(root):
        if not any(name.startswith(folder + "-") for name in ran):
            yield folder, OPTIONAL.get(folder)


def missing_names(path, ran):
    with open(path, encoding="utf-8") as names:
        for name in names.read().splitlines():
            if name and not name.startswith("#") and name not in ran:
                yield name, OPTIONAL.get(name.split("-")[0])


def count(path, wanted):
    passed, failed, skipped, durations = [], [], [], {}
    try:
        with open(path, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                kind = {"OK": passed, "EXPECTEDFAIL": passed, "SKIP": skipped}.get(test["result"], failed)
                kind.append(test["name"])
                durations[test["name"].split(" / ")[-1]] = test["duration"]
    except OSError as error:
        print(f"no test results: {error}")
    missing = []
    if wanted[:1] == ["--tree"]:
        missing = [(f"tests/{folder}", why) for folder, why in missing_folders(wanted[1], durations)]
    elif wanted:
        missing = list(missing_names(wanted[0], durations))
    longest = sorted(durations.items(), key=lambda item: -item[1])[:LONGEST]
    print("took longest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in longest))
    skipped += [f"{name}: not built, {why}" for name, why in missing if why]
    failed += [f"{name}: did not run" for name, why in missing if not why]
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"failed: {name}")
    nothing_ran = not (passed or failed or skipped)
    print(f"{len(passed)} passed, {len(failed) + nothing_ran} failed, {len(skipped)} skipped")
    return 1 if failed or nothing_ran else 0


def self_check():
    with tempfile.TemporaryDirectory() as root:
        for folder in ("base", "gpu", "share"):
            os.makedirs(os.path.join(root, "tests", folder))
            with open(os.path.join(root, "tests", folder, "meson.build"), "w", encoding="utf-8") as out:
                out.write("test(\n  'x',\n)\n")
        log, names = os.path.join(root, "log"), os.path.join(root, "names")
        for ran, status in [("base-x", 0), ("dsl-x", 1)]:
            with open(log, "w", encoding="utf-8") as out:
                out.write(json.dumps({"name": f"peal:a / {ran}", "result": "OK", "duration": 1}) + "\n")
            with open(names, "w", encoding="utf-8") as out:
                out.write("# some\nbase-x\ngpu-y\n")
            for wanted in (["--tree", root], [names]):
                if count(log, wanted) != status:
                    print(f"{ran}, {wanted[0]}: not {status}")
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(self_check() if sys.argv[1:] == ["--self-check"] else count(sys.argv[1], sys.argv[2:]))
