# Jobs that prun starts in a running DVM of PRRTE over two hosts (network namespaces), and that prterun starts. (In Debian from 13 on.)
import os
import signal
import subprocess
import tempfile
import time
import unittest

import namespaces
from common import PEAL, ROOT, environment, main, share, spec_that_kills, why_no_ucx
from namespaces import SAMPLES

DVM = ("--prtemca", "plm_ssh_agent", namespaces.AGENT, "--host", "h0:2,h1:2")
URI = "/run/dvm"
HEAT = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")


class Prte(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        namespaces.make(2)
        for word in ("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"):
            os.environ[word] = "1"
        cls.dvm = subprocess.Popen(["prte", *DVM, "--report-uri", URI], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment(PEAL_LOG="info"), text=True)
        cls.addClassCleanup(cls.end)
        line = cls.dvm.stdout.readline()
        while line and "DVM ready" not in line:
            line = cls.dvm.stdout.readline()
        if not line:
            raise AssertionError("prte has ended")

    @classmethod
    def end(cls):
        cls.dvm.send_signal(signal.SIGTERM)
        try:
            cls.dvm.wait(20)
        except subprocess.TimeoutExpired:
            cls.dvm.kill()
        cls.dvm.stdout.close()
        time.sleep(0.2)
        for number in namespaces.inside("peal", "prted")[1]:
            os.kill(number, signal.SIGKILL)

    def run_by(self, launcher, *words):
        done = subprocess.run([*launcher, PEAL, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=environment(PEAL_LOG="info"), check=False)
        return done.returncode, done.stdout, done.stderr

    def prun(self, processes, *words):
        return self.run_by(["prun", "--dvm-uri", f"file:{URI}", "-n", str(processes), "--map-by", "node"], *words)

    def agrees(self, processes, sample, *words):
        code, out, err = self.prun(processes, *namespaces.sample_words(ROOT, sample), *words)
        self.assertEqual(code, 0, out + err)
        self.assertIn("every mode equal to serial", out)
        self.assertIn(f"in {processes} processes, every mode in turn", out)

    def test_samples(self):
        for sample in share.taken(sorted(SAMPLES), 7, 1):
            for processes in (4,) if sample == "mesh/mesh" else (2, 4):
                with self.subTest(sample, processes=processes):
                    self.agrees(processes, sample)

    def test_by_ucx(self):
        if why_no_ucx():
            self.skipTest(why_no_ucx())
        for sample in share.taken(sorted(SAMPLES), 13, 4):
            self.agrees(4, sample, "--transport", "auto+ucx")

    def test_two_hosts_are_seen(self):
        code, out, err = self.run_by(["prun", "--dvm-uri", f"file:{URI}", "-n", "4", "-x", "PEAL_LOG=info"], "run", HEAT, "--steps", "3")
        self.assertEqual(code, 0, out + err)
        self.assertIn("4 processes on 2 hosts: h0 (2), h1 (2)", out + err)
        code, out, err = self.run_by(["prterun", *DVM, "-n", "4"], "run", HEAT, "--steps", "3", "--mode", "all", "--verify")
        self.assertEqual(code, 0, out + err)
        self.assertIn("4 processes on 2 hosts: h0 (2), h1 (2)", out + err)
        self.assertIn("every mode equal to serial", out)

    def test_a_killed_process_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            _, out, err = self.prun(2, "run", spec_that_kills(folder), "--mode", "stream", "--deadline", "60s")
            self.assertRegex(out + err, r"process 1 \(pid \d+ on h1\) is gone: its connection closed \[E320\]")

    def test_errors_are_told(self):
        code, out, err = self.prun(4, "run", HEAT, "--steps", "3", "--network-interface", "eth7")
        if code != 0:  # prun 3.0.14 itself ends with 0
            self.assertEqual(code, 4, out + err)
        self.assertRegex(out + err, r"h[01] has no network interface 'eth7' that is up and leads to other hosts; there are: eth0 10\.213\.0\.[12] \[E313\]")


if __name__ == "__main__":
    namespaces.enter("prte", "prun", "prterun", packages="PRRTE's, of Debian 13")
    main()
