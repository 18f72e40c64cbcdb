# Why a run ended is told by the process that knows it, also when process 0 is the one that is stuck, has left or is
# dead; kernels that call exit() or never return.
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from common import HARD_LIMIT, PEAL, descendants, environment, main, peal, wait_until

SPEC = """peal: 1
params: {n: 24}
topology: {dims: [auto, auto], periodic: true}
kernels: kernels.c
fields: {a: {size: [n, n], halo: 1}, b: {like: a}}
setup:
  - {task: start, box: a, write: a}
repeat: 10
step:
  - {exchange: a}
  - {task: relax, box: a, read: {a: {star: 1}}, write: b}
  - {swap: [a, b]}
"""
KERNELS = """#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, a))
{
    PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = 1;
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(b, x, y) = PEAL_AT(a, x, y);
        if (x == 0 && y == 0) { WHAT }
    }
}
"""
STUCK = 'fputs("stuck\\n", stderr); for (;;) sleep(1);'


class Causes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def spec(self, what):
        """A spec whose relax does this at point (0, 0), which is process 0's."""
        path = os.path.join(self.folder, "spec.yaml")
        for name, text in [("spec.yaml", SPEC), ("kernels.c", KERNELS.replace("WHAT", what))]:
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        return path

    def test_a_kernel_that_exits(self):
        path = self.spec("exit(0);")
        for words in [[], ["-n", "3"], ["-n", "3", "--processes", "1"]]:
            for mode in ["serial", "sync", "stream", "fused"]:
                with self.subTest((words, mode)):
                    code, _, err = peal("run", path, *words, "--mode", mode)
                    self.assertEqual(code, 5, err)
                    self.assertEqual(err.count("[E415]"), 1, err)
                    self.assertIn("process 0 left before the job was finished", err)
                    self.assertNotIn("[E324]", err)

    def test_process_0_is_stuck(self):
        path = self.spec(STUCK)
        for mode in ["sync", "stream", "fused"]:
            with self.subTest(mode):
                code, _, err = peal("run", path, "-n", "3", "--mode", mode, "--deadline", "1s")
                self.assertEqual(code, 6, err)
                self.assertRegex(err, r"rank [12] waits in `exchange a`")
                self.assertNotIn("[E324]", err)

    def test_process_0_is_killed(self):
        code, _, err = peal("run", self.spec("kill(getpid(), SIGKILL);"), "-n", "3", "--mode", "sync")
        self.assertEqual(code, 5, err)
        self.assertRegex(err, r"SIGKILL|signal 9|[Kk]illed")
        self.assertNotIn("[E324]", err)

    def test_a_kernel_that_does_not_return(self):
        for number, expected in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            with self.subTest(number):
                job = subprocess.Popen([PEAL, "run", self.spec(STUCK)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env=environment())
                try:
                    self.assertEqual(job.stderr.readline(), "stuck\n")
                    job.send_signal(number)
                    self.assertIn("waiting for a kernel; signal again to kill", job.stderr.readline())
                    job.send_signal(number)
                    self.assertEqual(job.wait(timeout=HARD_LIMIT), expected)
                finally:
                    if job.poll() is None:
                        job.kill()
                    job.communicate()
                wait_until(lambda pid=job.pid: not descendants(pid), "nothing is left")


if __name__ == "__main__":
    main(side_by_side=4)
