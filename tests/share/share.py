# Which part of many like cases (random graphs, numbers of calls that fail, modes of a spec) a run of the tests
# takes. ./dev test and .ci/run name the commit's share in PEAL_TEST_SEED, so that the same commit always takes
# the same cases and others take other ones; PEAL_TEST_EVERY=1 takes all. share.h is the same for C.
#
# share.py: prints the seed of the commit that is checked out
# share.py each N: prints each Nth line of standard input, by PEAL_TEST_SEED
import os
import subprocess
import sys
import unittest

SEED = int(os.environ.get("PEAL_TEST_SEED") or "0")
ALL = os.environ.get("PEAL_TEST_EVERY") == "1"


def taken(items, every, turn=0):
    """Each `every`-th of them, at least one; turn: where several lists take turns."""
    items = list(items)
    every = min(int(os.environ.get("PEAL_TEST_EVERY") or every), len(items)) or 1
    first = (SEED + turn) % every
    if every > 1:
        print(f"share: each {every}th of {len(items)} from {first} (PEAL_TEST_SEED={SEED}; all: PEAL_TEST_EVERY=1)", flush=True)
    return items[first::every]


def sometimes(every, turn=0):
    """A test of unittest, or a class of them, that each `every`-th commit runs; turn: which ones of several."""
    return unittest.skipIf(not ALL and (SEED + turn) % every, f"left to other commits (PEAL_TEST_SEED={SEED}; all: PEAL_TEST_EVERY=1)")


def commit_seed():
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def each(lines, every):
    """Each `every`-th of them."""
    return [line for turn, line in enumerate(lines) if ALL or (SEED + turn) % every == 0]


if __name__ == "__main__":
    if sys.argv[1:2] == ["each"]:
        print("\n".join(each(sys.stdin.read().splitlines(), int(sys.argv[2]))))
    else:
        print(commit_seed())
