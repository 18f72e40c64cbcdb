#!/usr/bin/env python3
# Counts the results of a `meson test` from its testlog.json: names what was skipped and what
# failed, then prints "N passed, N failed, N skipped" as the last line. Exit 1: something failed,
# or nothing ran.
import json
import sys


def main(path):
    passed, failed, skipped = [], [], []
    try:
        with open(path, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                kind = {"OK": passed, "EXPECTEDFAIL": passed, "SKIP": skipped}.get(test["result"], failed)
                kind.append(test["name"])
    except OSError as error:
        print(f"no test results: {error}")
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"failed: {name}")
    nothing_ran = not (passed or failed or skipped)
    print(f"{len(passed)} passed, {len(failed) + nothing_ran} failed, {len(skipped)} skipped")
    return 1 if failed or nothing_ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
