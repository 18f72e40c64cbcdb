"""Programs of the GPU benchmarks as servers: started once, asked for one case after the other.

A program that prints nothing for a while, or ends, is ended with all its processes; the next time
it is asked it starts again without what it was trying to set up. What failed three times stays
away."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time

FAILURES = 3


class Server:
    """A program that stays: `command` serves the cases that come on its stdin."""

    def __init__(self, name, binary, words, env=None):
        self.name = name  # its tuning in tables
        self.binary = binary
        self.command = [str(binary), *[str(word) for word in words]]
        self.env = dict(env or {})
        self.process = None
        self.error = None
        self.pending = b""
        self.fresh = True
        self.failures = 0
        self.left_out = set()  # cases that it can't even open

    def start(self, environment):
        """Starts the process; the first answer comes when its libraries are ready."""
        self.error = tempfile.TemporaryFile("w+")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            self.command, env={**environment, **self.env}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.error, bufsize=0, start_new_session=True)
        self.pending = b""
        self.fresh = True

    def ask(self, case, environment, quiet, until):
        """The JSON lines of an answer, and what went wrong or nothing."""
        if self.failures >= FAILURES or case in self.left_out:
            return [], ""
        if self.process is None:
            self.start(environment)
        # Starting takes longer than answering.
        patience = quiet * 2 if self.fresh else quiet
        self.fresh = False
        try:
            self.process.stdin.write(f"{case}\n".encode())
        except OSError:
            pass  # it has ended: what it said comes below
        lines, why = self._read(patience, quiet, until)
        if why and why != "no time left":
            self._give_up(case, lines)
        return lines, why

    def _read(self, patience, quiet, until):
        lines = []
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                while b"\n" in self.pending:
                    text, self.pending = self.pending.split(b"\n", 1)
                    if text.startswith(b"{") and text.endswith(b"}"):
                        lines.append(json.loads(text))
                        if "done" in lines[-1]:
                            return lines, ""
                left = until - time.monotonic()
                if not selector.select(max(min(patience, left), 0)):
                    late = "no time left" if left <= patience else f"printed nothing for {patience:.0f} s"
                    return lines, late + self._end()
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                if not data:
                    return lines, "ended" + self._end()
                self.pending += data
                patience = quiet

    def _end(self):
        """Ends it; the last it had to say."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        self.error.seek(0)
        last = self.error.read().strip().splitlines()[-1:] or [""]
        return f", exit {code}: {last[0][:200]}" if last[0] else f", exit {code}"

    def _give_up(self, case, lines):
        """Remembers what not to try again."""
        self.failures += 1
        tried = [line["trying"] for line in lines if "trying" in line][-1:]
        if not tried or tried[0].endswith("|its memory"):
            self.left_out.add(case)
        else:
            skipped = self.env.get("PEAL_BENCH_SKIP", "")
            self.env["PEAL_BENCH_SKIP"] = f"{skipped};{tried[0]}".strip(";")

    def hush(self):
        """There are no more cases: it ends by itself."""
        if self.process is not None:
            try:
                self.process.stdin.close()
            except OSError:
                pass

    def close(self, patience=10):
        """Waits for its end, or ends it."""
        if self.process is None:
            return
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None
