"""Runs lists of trials by the program gpu_trials, many in one process, and other commands, all under
limits; knows what they leave behind."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time

TOKEN = "PEAL_GPU_TEST_TOKEN"
TRIAL_S = 45  # no trial of a list takes longer, nor one that peal's deadline ends


class Clock:
    """The time that is left of a limit."""

    def __init__(self, limit):
        self.begin = time.monotonic()
        self.limit = limit

    def used(self):
        return time.monotonic() - self.begin

    def left(self):
        return self.limit - self.used()


class Outcome:
    """What a command did."""

    def __init__(self, code, out, err, seconds, timed_out, left_behind):
        self.code, self.out, self.err = code, out, err
        self.seconds, self.timed_out, self.left_behind = seconds, timed_out, left_behind

    def why(self):
        lines = [line for line in self.err.strip().splitlines() if not line.startswith("process ")]
        return f"exit {self.code}{' after the limit' if self.timed_out else ''}: {' / '.join(lines[:4])[:400]}"


def descendants(token):
    """Processes that carry the token in their environment and have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                mine = f"{TOKEN}={token}\0".encode() in file.read() + b"\0"
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                ended = file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            continue
        if mine and not ended:
            found.append(int(entry))
    return found


def end_all(token):
    """Ends what a command has left behind; how many processes that were."""
    left = descendants(token)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(left)


class Command:
    """A command under way. Its lines can be awaited."""

    def __init__(self, words, env, cwd=None):
        self.token = os.urandom(8).hex()
        self.begin = self.latest = time.monotonic()  # latest: of the lines of stdout
        self.out, self.err = [], []
        self.process = subprocess.Popen([str(word) for word in words], env={**env, TOKEN: self.token}, cwd=cwd,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, errors="replace", start_new_session=True)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    def read(self, pipe, lines):
        for line in pipe:
            lines.append(line)
            if lines is self.out:
                self.latest = time.monotonic()

    def await_line(self, lines, text, limit):
        """The first line with a text, or None."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = next((line for line in list(lines) if text in line), None)
            if found or self.process.poll() is not None:
                return found
            time.sleep(0.02)
        return None

    def await_end(self, limit, silence):
        """Waits; for how long nothing has been said, if it is still under way after the limit or that long a silence."""
        end = time.monotonic() + limit
        while time.monotonic() < end and time.monotonic() - self.latest < silence:
            try:
                self.process.wait(0.1)
                return 0
            except subprocess.TimeoutExpired:
                pass
        return time.monotonic() - self.latest

    def finish(self, limit):
        timed_out = False
        try:
            self.process.wait(max(limit, 0.1))
        except subprocess.TimeoutExpired:
            timed_out = True
        seconds = time.monotonic() - self.begin
        if not timed_out:
            time.sleep(0.05)  # children that were killed a moment ago are still being taken down
        left_behind = end_all(self.token)
        self.process.wait()
        for reader in self.readers:
            reader.join(5)
        return Outcome(self.process.returncode, "".join(self.out), "".join(self.err), seconds, timed_out,
                       0 if timed_out else left_behind)


def execute(words, env, limit, cwd=None):
    return Command(words, env, cwd).finish(limit)


class Trials:
    """Where the program is, and how it is called."""

    def __init__(self, program, scratch, env):
        self.program, self.scratch, self.env = program, scratch, env

    def write(self, trials):
        """The file of a list. A trial is a dictionary; `set` is a list of assignments."""
        handle, path = tempfile.mkstemp(dir=self.scratch, suffix=".trials", text=True)
        with os.fdopen(handle, "w") as file:
            for trial in trials:
                words = []
                for key, value in trial.items():
                    if key.startswith("_") or value in (None, "", []):
                        continue
                    words += [f"{key}={item}" for item in (value if isinstance(value, list) else [value])]
                file.write("\t".join(words) + "\n")
        return path

    def command(self, trials, processes, before=(), env=None):
        return Command([*before, self.program, processes, self.scratch, self.write(trials)], {**self.env, **(env or {})})

    def run(self, trials, processes, clock, limit, env=None, silence=TRIAL_S):
        """Results by name. A trial that ended its job or takes longer than `silence` gets the reason, and the rest
        is started anew, a few times. What there was no time for is missing, and so is what was under way then."""
        results, rest = {}, list(trials)
        end = time.monotonic() + limit
        for _ in range(4):
            left = min(end - time.monotonic(), clock.left())
            if not rest or left < 1:
                break
            job = self.command(rest, processes, env=env)
            silent = job.await_end(left, silence)
            outcome = job.finish(0.1)
            done = 0
            for line in lines_of(outcome.out):
                results[line["name"]] = line
                done += 1
            if 0 < silent < silence and done < len(rest):
                print(f"        no time left for `{rest[done]['name']}`, {silent:.0f} s under way")
                break
            if done < len(rest) and (outcome.code != 0 or outcome.timed_out):
                last = rest[done - 1] if done and results[rest[done - 1]["name"]]["status"] != "ok" else rest[done]
                done += last is rest[done] if done < len(rest) else 0
                results.setdefault(last["name"], {"name": last["name"], "status": "failed", "messages": []})
                results[last["name"]]["messages"].append(outcome.why())
            elif done < len(rest):
                results[rest[done]["name"]] = {"name": rest[done]["name"], "status": "silent", "messages": [outcome.why()]}
                done += 1
            rest = rest[done:]
        return results


def lines_of(text):
    """The JSON lines of trials that have ended."""
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if "status" in document:
                yield document
