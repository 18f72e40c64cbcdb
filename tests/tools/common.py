# What the tests of the command share: running it, finding its processes.
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

PEAL = os.path.abspath(os.environ.get("PEAL", "build/tools/peal"))
ROOT = os.path.abspath(os.environ.get("PEAL_ROOT", "."))
SPECS = os.path.join(ROOT, "tests", "specs")
HARD_LIMIT = 120  # of anything that might hang; no test judges speed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share"))
import share  # noqa: E402


def strided(count, most=100):
    """A share of the numbers 1 to count, and `most` of them at most."""
    numbers = share.taken(range(1, count + 1), 14)
    return numbers[::len(numbers) // most + 1]


def environment(**changes):
    """Ours, without what a launcher or the user's shell may have put there."""
    result = {k: v for k, v in os.environ.items() if not k.startswith(("PMIX_", "PEAL", "OMPI_"))}
    result.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def kernel_cache(scratch):
    """Where compiled kernels are kept (XDG_CACHE_HOME): ./dev test and CI name a folder for all tests, so that what
    one has compiled no other compiles again."""
    return os.environ.get("PEAL_TEST_CACHE") or os.path.join(scratch, "cache")


def folder_of(files, scratch):
    """A folder with these files (name: text or bytes), in every run the same one: a compiled kernel is known by its
    folder, too."""
    contents = {name: content.encode() if isinstance(content, str) else content for name, content in files.items()}
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]
    folder = os.path.join(kernel_cache(scratch), "specs", digest)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name, content in contents.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(content)
            os.replace(file.name, path)
    return folder


def peal(*arguments, stdin=None, env=None, cwd=None, prefix=(), limit=HARD_LIMIT):
    """Runs the command; (exit code, stdout, stderr)."""
    done = subprocess.run([*prefix, PEAL, *arguments], input=stdin, capture_output=True, text=True, check=False,
                          env=env or environment(), cwd=cwd, timeout=limit, errors="replace")
    return done.returncode, done.stdout, done.stderr


def peal_json(*arguments, **more):
    code, out, err = peal(*arguments, **more)
    try:
        return code, json.loads(out), err
    except ValueError as error:
        raise AssertionError(f"no JSON ({error}): {out[:200]!r}, stderr: {err}") from error


def why_no_ucx():
    """None: `--transport ucx` can be used here."""
    found = {item["name"]: item for item in peal_json("doctor", "--json")[1]["findings"]}["network ucx"]
    return None if found["state"] == "ok" else found["text"]


def adapter(*forms):
    """The words before a command that runs with an RDMA adapter of software; none: this build has no tests on one."""
    words = os.environ.get("PEAL_TEST_ADAPTER", "").split(":")
    return (words[0], *forms, words[1]) if len(words) == 2 else ()


def why_no_verbs():
    """None: `--transport verbs` can be used on the adapter of software."""
    if not adapter():
        return "built without rdma-core's headers, or tests"
    found = {item["name"]: item for item in peal_json("doctor", "--json", prefix=adapter())[1]["findings"]}["network verbs"]
    return None if found["state"] == "ok" else found["text"]


def mpirun(processes, *arguments):
    """The words before the command under Debian's mpirun."""
    return ("mpirun", "--oversubscribe", "-n", str(processes), *arguments)


KILLING_KERNEL = """#include <signal.h>
#include <unistd.h>
PEAL_KERNEL(work)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), long step)
{
    if (t.lo[0] > 0 && step == 20)
        kill(getpid(), SIGKILL);
    PEAL_FOR_1D(t, x) PEAL_AT(v, x) = PEAL_AT(u, x) + 1;
}
"""
KILLING_SPEC = """peal: 1
kernels: k.c
fields: {u: {size: [8], halo: [1]}, v: {like: u}}
repeat: 100000000
step:
  - {exchange: u}
  - {task: work, box: v, read: {u: {star: 1}}, write: v, args: [step]}
  - {swap: [u, v]}
"""


def spec_that_kills(folder):
    """Path of a spec, new in the folder, whose step 20 kills the process of the last rank."""
    for name, text in (("k.c", KILLING_KERNEL), ("s.yaml", KILLING_SPEC)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    return os.path.join(folder, "s.yaml")


def descendants(pid):
    """Processes below pid, from /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(name)] = int(fields[1])
    found, wanted = [], [pid]
    while wanted:
        parent = wanted.pop()
        children = [p for p, q in parents.items() if q == parent]
        found += children
        wanted += children
    return sorted(found)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, what):
    """Polls an outcome under the hard limit."""
    end = time.monotonic() + HARD_LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.01)


class Timed(unittest.TextTestResult):
    """Says which tests took longest."""

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        took = time.monotonic() - self.begin
        if took > 1:
            self.stream.writeln(f"{took:6.1f} s {test.id()}")


def each_test(suite):
    for item in suite:
        yield from each_test(item) if isinstance(item, unittest.TestSuite) else [item]


def run_side_by_side(count):
    """Tests that wait more than they compute: shares of them in processes of their own."""
    tests = list(each_test(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    members = []
    for first in range(count):
        pid = os.fork()
        if pid == 0:
            done = unittest.TextTestRunner(resultclass=Timed).run(unittest.TestSuite(tests[first::count]))
            sys.stderr.flush()
            os._exit(not done.wasSuccessful())
        members.append(pid)
    failed = [pid for pid in members if os.waitpid(pid, 0)[1] != 0]
    sys.exit(1 if failed else 0)


def main(side_by_side=1):
    if not os.access(PEAL, os.X_OK):
        print(f"no command at {PEAL}: set PEAL")
        sys.exit(1)
    if side_by_side > 1 and len(sys.argv) == 1:
        run_side_by_side(side_by_side)
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Timed))
