# Jobs that mpirun starts on several hosts: network namespaces on a bridge, each with a /dev/shm and a name of its own,
# in a network of this test's. What happens when hosts fail is in tests/runtime/hosts.
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import namespaces
from common import HARD_LIMIT, PEAL, ROOT, adapter, environment, main, peal, share, spec_that_kills, why_no_ucx, why_no_verbs
from namespaces import SAMPLES

ATTEMPTS, WITHOUT_PEAL_S = 5, 15
# Open MPI sets its agents' process groups from both sides, and warns if the agent was the first.
MPIRUNS_RACE = re.compile(r"^\[\S+\] plm:rsh: Warning: setpgid\(.*\n", re.M)


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        namespaces.make(3)

    def run_on(self, hosts, each, *arguments, before=(), **variables):
        """peal under mpirun on that many hosts with `each` processes a host; before: words before mpirun's."""
        names = ",".join(f"h{host}:{each}" for host in range(hosts))
        prefix = (*before, "mpirun", "--mca", "plm_rsh_agent", namespaces.AGENT, "--mca", "plm_rsh_no_tree_spawn", "1", "--oversubscribe",
                  "--host", names, "-n", str(hosts * each))
        for _ in range(ATTEMPTS):
            done = self.await_job([*prefix, PEAL, *arguments], environment(**variables))
            if done:
                return done
        raise AssertionError(f"mpirun has hung {ATTEMPTS} times")

    def await_job(self, words, env):
        """Exit code, stdout and stderr of mpirun; None: it hangs, and no process of peal's is left. Open MPI 4.1.4's does so now and
        then, before it starts any and, on a busy machine, when it should end a job of which a process has failed."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                                  start_new_session=True) as job:
                begin = seen = time.monotonic()
                while job.poll() is None and time.monotonic() - seen < WITHOUT_PEAL_S and time.monotonic() - begin < HARD_LIMIT:
                    time.sleep(0.05)
                    if namespaces.inside("peal")[0]:
                        seen = time.monotonic()
                lines, numbers = namespaces.inside("peal", "orted")
                if job.poll() is None:
                    for number in numbers:
                        os.kill(number, signal.SIGKILL)
                    os.killpg(job.pid, signal.SIGKILL)
            out.seek(0)
            err.seek(0)
            texts = out.read(), MPIRUNS_RACE.sub("", err.read())
        if job.returncode != -signal.SIGKILL:
            return job.returncode, *texts
        if time.monotonic() - seen < WITHOUT_PEAL_S:
            raise AssertionError("\n".join([f"{words} does not end", *texts, *lines]))
        print(f"mpirun hangs without a process of peal's, once more: {texts}, {lines}", flush=True)
        return None

    def agrees(self, hosts, each, sample, *words, before=()):
        code, out, err = self.run_on(hosts, each, *namespaces.sample_words(ROOT, sample), *words, before=before)
        self.assertEqual(code, 0, f"{sample} on {hosts} hosts x {each}: {out}{err}")
        self.assertIn("every mode equal to serial", out)

    def test_samples_on_two_hosts(self):
        for sample in share.taken(sorted(SAMPLES), 7):
            with self.subTest(sample):
                self.agrees(2, 2, sample)

    def test_samples_on_three_hosts(self):
        for sample in share.taken(sorted(SAMPLES), 7, 3):
            if sample != "mesh/mesh":  # it has parts for 4 ranks
                with self.subTest(sample):
                    self.agrees(3, 2, sample)

    def test_one_process_a_host(self):
        for hosts in (2, 3):  # without shared memory
            for sample in share.taken(sorted(SAMPLES), 13, hosts):
                if sample != "mesh/mesh":
                    with self.subTest(sample, hosts=hosts):
                        self.agrees(hosts, 1, sample)

    def test_by_ucx(self):
        if why_no_ucx():
            self.skipTest(why_no_ucx())
        for sample in share.taken(sorted(SAMPLES), 13, 5):
            for each in (1, 2):
                if (sample, each) != ("mesh/mesh", 1):
                    with self.subTest(sample, each=each):
                        self.agrees(2, each, sample, "--transport", "auto+ucx")
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        code, out, err = self.run_on(2, 2, "run", name, "--mode", "sync", "--steps", "3", "--transport", "auto+ucx")
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("messages by shm+ucx", out)

    def test_by_verbs(self):
        if why_no_verbs():
            self.skipTest(why_no_verbs())
        for sample in share.taken(sorted(SAMPLES), 13, 2):
            for each, engine in ((1, "mlx5"), (2, "auto+verbs"), (2, "auto+mlx5")):
                if (sample, each) != ("mesh/mesh", 1):
                    with self.subTest(sample, each=each, engine=engine):
                        self.agrees(2, each, sample, "--transport", engine, before=adapter())

    def test_what_is_said_of_paths(self):
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        code, out, err = self.run_on(2, 2, "run", name, "--mode", "sync", "--steps", "3", PEAL_LOG="info")
        self.assertEqual(code, 0, err)
        self.assertIn("4 processes on 2 hosts: h0 (2), h1 (2)", err)
        self.assertIn("messages by shm+tcp", out + err)

    def test_doctor(self):
        code, out, err = self.run_on(3, 1, "doctor", "--network", "--network-interface", "10.213.0.0/24")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"if eth0 +ok +10\.213\.0\.1.*; MTU 1500")
        self.assertRegex(out, r"hosts +ok +3 processes on 3 hosts\n")
        for kind in ["tcp"] if why_no_ucx() else ["tcp", "ucx"]:
            for pair in ("h0 - h1", "h0 - h2", "h1 - h2"):
                self.assertRegex(out, rf"hosts, {kind} +ok +{pair}: 8 bytes one way [0-9.]+ [mu]s, 1 MiB one way at [0-9.]+ GB/s\n")
        code, out, err = self.run_on(2, 1, "doctor", "--network", "--network-interface", "eth9")
        self.assertEqual(code, 4, out + err)
        self.assertIn("has no network interface 'eth9'", err)

    @share.sometimes(3)
    def test_started_by_peal(self):
        agent = ["--agent", "ip netns exec"]
        name = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        sized = ["run", name, "--set", "nx=64", "--set", "ny=66", "--steps", "12", "--mode", "all", "--verify", *agent]
        for hosts, spread in (("h0:2,h1:2", r"4 processes on 2 hosts: h0 \(2\), h1 \(2\)"),
                              ("localhost,h2:2", r"3 processes on 2 hosts: \S+ \(1\), h2 \(2\)")):
            with self.subTest(hosts):
                code, out, err = peal(*sized, "--hosts", hosts, env=environment(PEAL_LOG="info"))
                self.assertEqual(code, 0, out + err)
                self.assertIn("every mode equal to serial", out)
                self.assertRegex(err, spread)
                self.assertIn(f"--hosts {hosts} --rank 0` shows", out)
        if not share.ALL and share.SEED % 4:
            return  # it measures for half a minute
        code, out, err = peal("tune", name, "--set", "nx=64", "--set", "ny=66", "--steps", "5", "--rounds", "9", "--hosts",
                              "h0,h1", *agent)
        self.assertEqual(code, 0, out + err)

    def test_started_by_peal_wrongly(self):
        name = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        with open("/run/forgets", "w", encoding="ascii") as file:  # as ssh does
            file.write('#!/bin/sh\nshift\nexec env -u PEAL_LAUNCH_SOCKET -u PEAL_LAUNCH_PROCESS "$@"\n')
        os.chmod("/run/forgets", 0o755)
        for words, expected, text in (
                (["--hosts", "h0:2"], 2, r"--hosts h0:2 needs --agent"),
                (["--hosts", "h0:x", "--agent", "ip netns exec"], 2, r"--hosts needs a list such as a:2,b:2, not 'h0:x'"),
                (["--hosts", "-v:2", "--agent", "ip netns exec"], 2, r"--hosts needs a list"),
                (["--hosts", "h0,h1", "--processes", "3", "--agent", "ip netns exec"], 2, r"--processes 3, but .* has 2"),
                (["--hosts", "h0,h1", "-n", "1", "--agent", "ip netns exec"], 2, r"-n 1, but .* has 2 processes"),
                (["--agent", "ip netns exec"], 2, r"--agent 'ip netns exec' needs --hosts"),
                (["--hosts", "h0", "--agent", "/nobody/there"], 4, r"process 0: cannot start the agent /nobody/there for h0: No such file"),
                (["--hosts", "h0,h1", "--agent", "true"], 4, r"process [01]: the agent `true` has ended with exit code 0, and nothing that it started on h[01] has joined the job \[E332\]"),
                (["--hosts", "h0", "--agent", "false"], 4, r"the agent `false` has ended with exit code 1, and .*\[E332\]"),
                (["--hosts", "nowhere", "--agent", "ip netns exec"], 4, r"the agent `ip` has ended with exit code \d+, and .* on nowhere"),
                (["--hosts", "h0", "--agent", "/run/forgets"], 4, r"has not passed on the line to the launcher \[E310\]")):
            with self.subTest(words):
                code, _, err = peal("run", name, *words)
                self.assertEqual(code, expected, err)
                self.assertRegex(err, text)

    def test_a_killed_process_is_told_with_its_host(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = peal("run", spec_that_kills(folder), "--mode", "stream", "--deadline", "60s", "--hosts", "h0,h1",
                                "--agent", "ip netns exec")
            self.assertEqual(code, 5, err)
            self.assertRegex(err, r"process 1 on h1 \(pid \d+\) was killed by signal 9 \(Killed\) \[E333\]")

    def test_how_hosts_meet(self):
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        for words, told in ((["--network-interface", "eth0", "--network-ports", "21000-21001"], None),
                            (["--network-interface", "10.213.0.0/24"], None),
                            (["--network-interface", "eth7"], r"h[01] has no network interface 'eth7' that is up and leads to other hosts; there are: eth0 10\.213\.0\.\d \[E313\]"),
                            (["--network-interface", "10.99.0.0/16"], r"no network interface '10\.99\.0\.0/16' that is up"),
                            (["--network-ports", "21000"], r"a TCP port of 21000-21000 on h[01]: Address already in use \[E302\]")):
            with self.subTest(words):
                code, out, err = self.run_on(2, 2, "run", name, "--steps", "3", "--mode", "sync", "--deadline", "20s", *words)
                self.assertEqual(code, 4 if told else 0, out + err)
                self.assertRegex(out + err, told or "messages by shm\\+tcp")

    def saves(self, files, *words, **variables):
        """What two ranks on two hosts leave in a folder `out` of the spec's."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "out"))
            with open(os.path.join(folder, "s.yaml"), "w", encoding="ascii") as file:
                file.write("peal: 1\nfields: {u: {type: i32, size: [6]}}\nkernels: s.c\n"
                           "step:\n  - {task: count, box: u, write: u}\n")
                for name in files:
                    file.write(f"  - {{save: u, file: {name}}}\n")
            with open(os.path.join(folder, "s.c"), "w", encoding="ascii") as file:
                file.write("PEAL_KERNEL(count)(peal_tile t, PEAL_WRITE(int, u)) { PEAL_FOR_1D(t, x) PEAL_AT(u, x) = x; }\n")
            variables = {name: value.format(folder) for name, value in variables.items()}
            code, out, err = self.run_on(2, 1, "run", os.path.join(folder, "s.yaml"), "--deadline", "20s", *words, **variables)
            left = {}
            for name in sorted(os.listdir(os.path.join(folder, "out"))):
                with open(os.path.join(folder, "out", name), "rb") as file:
                    left[name] = file.read()
            return code, out + err, left

    def test_saves(self):
        code, text, left = self.saves(["out/u.npy", "'out/u-{rank:02}.npy'"], "--mode", "all", "--verify")
        self.assertEqual(code, 0, text)
        self.assertEqual(list(left), ["u-00.npy", "u-01.npy", "u.npy"])
        self.assertEqual(left["u.npy"][-24:], struct.pack("<6i", *range(6)))

    def test_saves_to_folders_that_are_not_shared(self):
        told = r"s.yaml:6:5: error: `save` of 'u': `\S+/out` on h1 is not the folder that process 0 on h0 sees \[E232\]"
        code, text, left = self.saves(["out/u.npy"], APART="{}/out")
        self.assertEqual((code, left), (4, {}), text)
        self.assertRegex(text, told)
        code, text, _ = self.saves(["'out/u-{rank}.npy'"], APART="{}/out")  # a file of each rank needs none
        self.assertEqual(code, 0, text)
        code, text, _ = self.saves(["'out/u-{rank}.npy'"], "--verify", APART="{}/out")  # but process 0 would read it
        self.assertEqual(code, 4, text)
        self.assertRegex(text, told)
        code, text, left = self.saves(["out/u.npy"], "--mode", "serial", APART="{}/out")  # process 0 writes alone
        self.assertEqual((code, list(left)), (0, []), text)
        code, text, _ = self.saves(["out/u.npy"], APART="{}")  # nor is the spec there
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"\[E\d+\]")

    def test_what_cannot_is_refused(self):
        name = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        code, _, err = self.run_on(2, 1, "run", name, "--transport", "shm")
        self.assertEqual(code, 4, err)
        self.assertIn("[E313]", err)


if __name__ == "__main__":
    namespaces.enter("mpirun")
    main()
