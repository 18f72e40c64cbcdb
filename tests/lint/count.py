#!/usr/bin/env python3
# Counts the results of a `meson test` from its testlog.json: names what was skipped, what failed and
# what took longest, then prints "N passed, N failed, N skipped" as the last line. Exit 1: something
# failed, or nothing ran. A second file names tests that should have run.
import json
import sys

LONGEST = 8


def main(path, *wanted):
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
    for path in wanted:
        with open(path, encoding="utf-8") as names:
            for name in names.read().splitlines():
                if not name.startswith("#") and name not in durations:
                    print(f"not built here: {name}")
    longest = sorted(durations.items(), key=lambda item: -item[1])[:LONGEST]
    print("took longest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in longest))
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"failed: {name}")
    nothing_ran = not (passed or failed or skipped)
    print(f"{len(passed)} passed, {len(failed) + nothing_ran} failed, {len(skipped)} skipped")
    return 1 if failed or nothing_ran else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
