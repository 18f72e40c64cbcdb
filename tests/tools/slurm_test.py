# Jobs that srun starts on two hosts: a slurmctld, and a slurmd in each of two network namespaces with a name and a /dev/shm of its
# own. (Debian: slurmctld, slurmd, slurm-client, munge.)
import os
import re
import subprocess
import tempfile
import time
import unittest

import namespaces
from common import PEAL, ROOT, environment, main, share, spec_that_kills, why_no_ucx
from namespaces import SAMPLES

FOLDERS = ("state", "h0", "h1", "log", "munge")
CONF = """ClusterName=peal
SlurmctldHost=control(10.213.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/slurm/munge/socket
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/%n
SlurmctldPidFile=/run/slurm/control.pid
SlurmdPidFile=/run/slurm/%n.pid
SlurmctldLogFile=/run/slurm/log/control
SlurmdLogFile=/run/slurm/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TmpFS=/dev/shm
ReturnToService=2
NodeName=h0 NodeAddr=10.213.0.1 CPUs={cores}
NodeName=h1 NodeAddr=10.213.0.2 CPUs={cores}
PartitionName=all Nodes=h0,h1 Default=YES OverSubscribe=FORCE
"""
MUNGE = ("munged --force --key-file=/run/slurm/munge/key --socket=/run/slurm/munge/socket --pid-file=/run/slurm/munge/pid "
         "--log-file=/run/slurm/munge/log --seed-file=/run/slurm/munge/seed")
NODE = "hostname {host}; mount -t tmpfs none /dev/shm; TMPDIR=/dev/shm exec slurmd -N {host}"


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        namespaces.make(2)
        for name in FOLDERS:
            os.makedirs(f"/run/slurm/{name}")
        os.chmod("/run/slurm/munge", 0o755)
        with open("/run/slurm/munge/key", "wb") as file:
            os.chmod("/run/slurm/munge/key", 0o400)
            file.write(os.urandom(1024))
        with open("/run/slurm/slurm.conf", "w", encoding="ascii") as file:
            file.write(CONF.format(cores=os.cpu_count()))
        os.environ["SLURM_CONF"] = "/run/slurm/slurm.conf"
        for words in (["hostname", "control"], MUNGE.split(), ["slurmctld"],
                      *(["nsenter", f"--net=/run/netns/{host}", "unshare", "-m", "-u", "sh", "-c", NODE.format(host=host)]
                        for host in ("h0", "h1"))):
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            idle = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], capture_output=True, text=True, check=False).stdout
            if idle.strip() == "2":
                return
            time.sleep(0.1)
        raise AssertionError("the nodes of slurm do not come")

    def srun(self, processes, *words):
        done = subprocess.run(["srun", "--mpi=pmix", "-N", "2", "-n", str(processes), PEAL, *words], capture_output=True, text=True,
                              timeout=120, env=environment(PEAL_LOG="info", SLURM_CONF=os.environ["SLURM_CONF"]), check=False)
        return done.returncode, done.stdout, done.stderr

    def test_samples(self):
        for sample in share.taken(sorted(SAMPLES), 7):
            for processes in (4,) if sample == "mesh/mesh" else (2, 4):
                with self.subTest(sample, processes=processes):
                    self.agrees(processes, sample)

    def agrees(self, processes, sample, *words):
        code, out, err = self.srun(processes, *namespaces.sample_words(ROOT, sample), *words)
        self.assertEqual(code, 0, out + err)
        self.assertIn("every mode equal to serial", out)
        self.assertRegex(err, rf"{processes} processes on 2 hosts: h\d \({processes // 2}\), h\d \({processes // 2}\)")

    def test_by_ucx(self):
        if why_no_ucx():
            self.skipTest(why_no_ucx())
        for sample in share.taken(sorted(SAMPLES), 13, 2):
            for processes in (4,) if sample == "mesh/mesh" else (2, 4):
                with self.subTest(sample, processes=processes):
                    self.agrees(processes, sample, "--transport", "auto+ucx")

    def test_how_hosts_meet(self):
        words = ["run", os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml"), "--steps", "3", "--mode", "sync"]
        code, out, err = self.srun(4, *words, "--network-interface", "10.213.0.0/24", "--network-ports", "21000-21003")
        self.assertEqual(code, 0, out + err)
        code, _, err = self.srun(2, *words, "--network-interface", "ib0")
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"h[01] has no network interface 'ib0' that is up and leads to other hosts; there are: eth0 10\.213\.0\.[12] \[E313\]")

    def test_a_killed_process_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = self.srun(2, "run", spec_that_kills(folder), "--mode", "stream", "--deadline", "60s")
            self.assertNotEqual(code, 0, err)
            self.assertTrue(re.search(r"process 1 \(pid \d+ on h\d\) is gone", err) or "Killed" in err, err)


if __name__ == "__main__":
    namespaces.enter("srun", "slurmctld", "slurmd", "munged", packages="slurmctld, slurmd, slurm-client, munge",
                     more=("-u", "-p", "-f", "--mount-proc"))
    main()
