# Runs: every mode, several ranks, one process and many, under `peal run -n` and mpirun; what they
# print; processes that are killed, signals, mismatched specs; nothing is left behind.
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from common import (HARD_LIMIT, PEAL, SPECS, descendants, environment, is_alive, main, mpirun, peal, peal_json,
                    wait_until)

HEAT = os.path.join(SPECS, "run", "heat.yaml")
FICKLE = os.path.join(SPECS, "run", "fickle.yaml")
GREEDY = os.path.join(SPECS, "run", "greedy.yaml")
ENDLESS = [HEAT, "--set", "steps=2000000000", "--set", "report=500"]


def table(out):
    """The rows of the norms' table."""
    return [line for line in out.splitlines() if line.split() and line.split()[0].isdigit()
            and len(line.split()) == 2]


class Modes(unittest.TestCase):
    def test_all_modes_equal_serial(self):
        for ranks in [1, 2, 4, 7]:
            for processes in sorted({1, ranks}):
                with self.subTest((ranks, processes)):
                    code, data, err = peal_json("run", HEAT, "-n", str(ranks), "--processes", str(processes),
                                                "--mode", "all", "--verify", "--json")
                    self.assertEqual((code, data["schema"], data["ranks"], data["processes"]),
                                     (0, "peal.run/1", ranks, processes), err)
                    ran = {m["mode"]: m for m in data["modes"] if m["finished"]}
                    self.assertEqual(set(ran), {"serial", "sync", "stream", "fused"})
                    self.assertEqual(len({m["digest"] for m in ran.values()}), 1)
                    self.assertTrue(all(ran[m]["equal_to_serial"] for m in ["sync", "stream", "fused"]))
                    self.assertEqual({m["steps"] for m in ran.values()}, {60})
                    self.assertEqual([row["step"] for row in data["rows"]], [0, 20, 40])

    def test_the_answer_does_not_depend_on_ranks_but_for_the_reduction(self):
        digests = {peal_json("run", HEAT, "-n", n, "--json", "--processes", "1", "--set", "report=1000000")[1]
                   ["modes"][0]["steps"] for n in ["1", "3"]}
        self.assertEqual(digests, {60})

    def test_exposed_communication(self):
        """The time of a step and of the same without messages; results, rows and verdict stay."""
        words = ("run", HEAT, "-n", "2", "--exposed", "--verify")
        code, data, err = peal_json(*words, "--mode", "all", "--json")
        self.assertEqual(code, 0, err)
        for mode in [m for m in data["modes"] if m["finished"]]:
            if mode["mode"] == "serial":
                self.assertEqual(mode["exposed_unmeasured"], "serial is the reference")
                self.assertNotIn("exposed_seconds_per_step", mode)
                continue
            self.assertTrue(mode["equal_to_serial"])
            step = mode["seconds_per_step"]
            self.assertEqual((min(step["parts"]), max(step["parts"])), (step["min"], step["max"]))
            without = mode["seconds_per_step_without_messages"]
            self.assertGreater(without, 0)
            self.assertAlmostEqual(mode["exposed_seconds_per_step"] + without, mode["seconds_per_step_with_messages"])
            self.assertGreaterEqual(mode["seconds_per_step_with_messages"], mode["seconds_per_step"]["median"])
        self.assertEqual([row["step"] for row in data["rows"]], [0, 20, 40])
        code, out, err = peal(*words, "--mode", "stream")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^exposed communication: .* \(.* a step without messages\)$")
        plain = peal_json("run", HEAT, "-n", "2", "--json")[1]["modes"][0]
        self.assertFalse([key for key in plain if "exposed" in key or "without" in key])

    def test_exposed_communication_that_cannot_be_measured(self):
        head = "peal: 1\nname: t\nbuffers: {x: {type: i64, keep: true}}\nrepeat: 8\n"
        for body, why in (
                ("until: x > 3\nstep: [{set: x, value: 1}, {allreduce: {x: sum}}, {set: x, value: 6 - 2 * x}]", None),
                ("step: [{repeat: 3, until: x > 1, step: [{set: x, value: x + 1}, {allreduce: {x: sum}}]}]", "inner `until`"),
                ("step: [{set: x, value: 1}, {allreduce: {x: max}}, {set: x, value: 0, when: x > 0}]", "a `when` in the loop")):
            code, out, err = peal_json("run", "-", "-n", "2", "--exposed", "--mode", "sync", "--json", stdin=head + body)
            self.assertEqual(code, 0, err)
            mode = out["modes"][0]
            if why:
                self.assertIn(why, mode["exposed_unmeasured"])
                self.assertNotIn("seconds_per_step_without_messages", mode)
            else:
                self.assertEqual(mode["steps"], 8)  # x is 2 each time; alone a rank has less before
                self.assertIn("`until` ends the loop after 1 steps", mode["exposed_unmeasured"])

    def test_text_output(self):
        code, out, err = peal("run", HEAT, "-n", "4", "--mode", "all", "--verify")
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(len(table(out)), 3)
        self.assertEqual(lines[-1], "Result: every mode equal to serial, bit for bit.")
        self.assertTrue(lines[-2].startswith("Next: "))
        for mode in ["serial", "sync", "stream", "graph", "fused"]:
            self.assertRegex(out, rf"(?m)^{mode} ")
        self.assertNotIn("\r", out + err, "no progress bar in a pipe")

    def test_one_mode(self):
        code, out, _ = peal("run", HEAT, "-n", "2", "--mode", "sync", "--verify")
        self.assertEqual(code, 0)
        self.assertIn("sync equal to serial, bit for bit", out.splitlines()[-1])
        self.assertEqual(peal("run", HEAT, "-q"), (0, "", ""))

    def test_steps(self):
        data = peal_json("run", HEAT, "--json", "--steps", "5")[1]
        self.assertEqual(data["modes"][0]["steps"], 5)

    def test_graph_mode_has_no_host(self):
        code, _, err = peal("run", HEAT, "--mode", "graph")
        self.assertEqual(code, 4)
        self.assertIn("graph", err)

    def test_standard_input(self):
        with open(HEAT, encoding="utf-8") as spec:
            text = spec.read()
        for processes in ["1", "3"]:
            code, out, err = peal("run", "-", "-n", "3", "--processes", processes, "--mode", "all", stdin=text,
                                  cwd=os.path.dirname(HEAT))
            self.assertEqual(code, 0, err)
            self.assertIn("every mode equal", out)

    def test_a_folder_is_a_spec(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["heat.yaml", "kernels.c"]:
                shutil.copy(os.path.join(SPECS, "run", name), folder)
            self.assertEqual(peal("run", folder, "-q")[0], 0)

    def test_a_result_that_differs(self):
        for more in [[], ["--verify"]]:
            with self.subTest(more):
                code, out, err = peal("run", FICKLE, "--mode", "all", *more)
                self.assertEqual(code, 1, err)
                self.assertRegex(err, r"\[E\d+\]" if more else r"\[E412\]")
                self.assertIn("DIFFERS", out)
                self.assertIn("Result: WRONG, 3 of 3", out.splitlines()[-1])

    def test_undeclared_accesses_are_found(self):
        code, _, err = peal("run", GREEDY, "--check-footprints")
        self.assertNotEqual(code, 0)
        self.assertIn("greedy", err)
        code, out, err = peal("run", HEAT, "--check-footprints", "-n", "2", "--processes", "1")
        self.assertEqual(code, 0, err)
        self.assertIn("only what its task declares", out)


class WithoutPmix(unittest.TestCase):
    """A launcher that serves no PMIx starts copies, which know nothing of each other."""

    def test_its_names(self):
        for count, rank, hint in [("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "--mpi=pmix"), ("PMI_SIZE", "PMI_RANK", "")]:
            for copies, me, warnings in [("4", "0", 1), ("4", "2", 0), ("1", "0", 0)]:
                with self.subTest((count, copies, me)):
                    code, _, err = peal("run", HEAT, env=environment(**{count: copies, rank: me}))
                    self.assertEqual((code, err.count("[E416]")), (0, warnings), err)
                    self.assertTrue(not warnings or ("4 processes" in err and hint in err), err)

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "MPICH isn't there")
    def test_mpich(self):
        code, out, err = peal("run", HEAT, prefix=("mpirun.mpich", "-n", "2"))
        self.assertEqual((code, err.count("[E416]"), out.count("1 rank ")), (0, 1, 2), out + err)


@unittest.skipUnless(shutil.which("mpirun"), "mpirun isn't there")
class UnderMpirun(unittest.TestCase):
    def test_processes_come_from_the_launcher(self):
        code, out, err = peal("run", HEAT, "--mode", "all", "--verify", "--json", prefix=mpirun(4))
        self.assertEqual(code, 0, err)
        data = json.loads(out)
        self.assertEqual((data["ranks"], data["processes"]), (4, 4))
        self.assertTrue(all(m.get("equal_to_serial", True) for m in data["modes"]))

    def test_more_ranks_than_processes(self):
        code, out, err = peal("run", HEAT, "-n", "5", "--mode", "all", "--verify", "--json", prefix=mpirun(2))
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["ranks"], 5)

    def test_contradictions(self):
        code, _, err = peal("run", HEAT, "-n", "2", prefix=mpirun(3))
        self.assertEqual(code, 2, err)
        self.assertIn("[E404]", err)

    def test_doctor(self):
        code, out, err = peal("doctor", prefix=mpirun(3))
        self.assertEqual(code, 0, err)
        self.assertEqual(len(re.findall(r"^launcher +ok +verified: between all", out, re.M)), 1, out)
        self.assertEqual(peal("doctor", "--quiet", prefix=mpirun(2))[:2], (0, ""))

    def test_different_specs_are_refused(self):
        try_it = subprocess.run([*mpirun(1), "true", ":", "-n", "1", "true"], capture_output=True, check=False,
                                env=environment(), timeout=HARD_LIMIT)
        if try_it.returncode:
            self.skipTest("this mpirun cannot start two programs in one job (that of Open MPI 5.0.7 crashes)")
        code, _, err = peal("run", HEAT, ":", "-n", "1", PEAL, "run", HEAT, "--set", "n=25", prefix=mpirun(1))
        self.assertEqual(code, 3, err)
        self.assertIn("differ", err)


class Ends(unittest.TestCase):
    """A job that is ended from outside leaves nothing behind."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.shm = set(os.listdir("/dev/shm"))
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            for pid in [*descendants(job.pid), job.pid]:
                if job.poll() is None or is_alive(pid):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            job.stdout.close()
            job.stderr.close()
            job.wait()
        shutil.rmtree(self.folder)

    def begin(self, *more, prefix=(), processes=3):
        """Starts a job that never ends by itself, and waits until it computes."""
        job = subprocess.Popen([*prefix, PEAL, "run", *ENDLESS, *more], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment(), cwd=self.folder)
        self.jobs.append(job)
        rows = 0
        while rows < 3:
            line = job.stdout.readline()
            self.assertTrue(line, "the job ended before it computed: " + (job.stderr.read() if not line else ""))
            rows += line.split()[:1] != [] and line.split()[0].isdigit()
        ours = [p for p in descendants(job.pid) if self.is_peal(p)]
        self.assertGreaterEqual(len(ours), processes if processes > 1 else 0)
        return job, ours

    @staticmethod
    def is_peal(pid):
        try:
            return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(PEAL)
        except OSError:
            return False

    def end(self, job, ours):
        """Waits for the end; (exit code, what it said)."""
        _, err = job.communicate(timeout=HARD_LIMIT)
        wait_until(lambda: not any(is_alive(p) for p in ours), "all processes have gone")
        left = {n for n in set(os.listdir("/dev/shm")) - self.shm if "peal" in n}
        self.assertEqual(left, set(), "nothing in /dev/shm")
        self.assertEqual(os.listdir(self.folder), [], "nothing in the current folder")
        return job.returncode, err

    def test_a_killed_process_ends_the_job(self):
        for mode in ["sync", "stream", "fused"]:
            for victim in [0, -1]:
                with self.subTest((mode, victim)):
                    job, ours = self.begin("-n", "3", "--mode", mode)
                    os.kill(ours[victim], signal.SIGKILL)
                    code, err = self.end(job, ours)
                    self.assertEqual(code, 5, err)
                    self.assertRegex(err, r"rank|process")
                    self.assertRegex(err, r"SIGKILL|signal 9|[Kk]illed")

    def test_a_stopped_process_ends_the_job_by_its_deadline(self):
        job, ours = self.begin("-n", "3", "--mode", "stream", "--deadline", "2s")
        os.kill(ours[-1], signal.SIGSTOP)
        code, err = self.end_after_continuing(job, ours)
        self.assertEqual(code, 6, err)
        self.assertRegex(err, r"rank \d waits in `(exchange a|allreduce d)` for message") # as it was stopped in one or the other

    def end_after_continuing(self, job, ours):
        """A stopped process cannot leave: go on once the others have said why they end."""
        wait_until(lambda: job.poll() is not None or not any(is_alive(p) for p in ours[:-1]), "the others end")
        if is_alive(ours[-1]):
            try:
                os.kill(ours[-1], signal.SIGCONT)
            except ProcessLookupError:
                pass
        return self.end(job, ours)

    def test_signals(self):
        for number, expected in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            for count in [1, 3]:
                with self.subTest((number, count)):
                    job, ours = self.begin("-n", str(count), "--mode", "stream", processes=count)
                    job.send_signal(number)
                    code, err = self.end(job, ours)
                    self.assertEqual(code, expected, err)
                    self.assertIn("[E413]" if number == signal.SIGINT else "[E414]", err)

    def test_a_signal_to_a_rank(self):
        job, ours = self.begin("-n", "3")
        os.kill(ours[1], signal.SIGTERM)
        code, err = self.end(job, ours)
        self.assertEqual(code, 143, err)

    def test_the_launching_process_killed(self):
        job, ours = self.begin("-n", "3")
        job.kill()
        job.communicate(timeout=HARD_LIMIT)
        wait_until(lambda: not any(is_alive(p) for p in ours), "the ranks end with their launcher")

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun isn't there")
    def test_killed_under_mpirun(self):
        job, ours = self.begin(prefix=mpirun(3))
        os.kill(ours[-1], signal.SIGKILL)
        code, err = self.end(job, ours)
        self.assertNotEqual(code, 0, err)


class Doctor(unittest.TestCase):
    def test_every_path_is_verified(self):
        code, data, err = peal_json("doctor", "--json")
        self.assertEqual((code, data["schema"]), (0, "peal.doctor/1"), err)
        states = {f["name"]: f["state"] for f in data["findings"]}
        self.assertEqual(states["path self"], "ok")
        self.assertIn(states["path shm"], ["ok", "off"])
        self.assertEqual(states["gpu"], "off")

    def test_what_is_off_has_a_reason(self):
        for finding in peal_json("doctor", "--json")[1]["findings"]:
            self.assertGreater(len(finding["text"]), 5)

    def test_the_network_is_looked_at_when_asked(self):
        code, data, err = peal_json("doctor", "--network", "--json")
        self.assertEqual(code, 0, err)
        found = {f["name"]: f for f in data["findings"]}
        self.assertRegex(found["TCP ports"]["text"], r"one of \d+ to \d+")
        self.assertIn("locked memory", found)
        self.assertRegex(found["hosts"]["text"], "start it by mpirun")
        for name, finding in found.items():
            if name.startswith("if ") and finding["state"] == "ok":
                self.assertRegex(finding["text"], r"^[0-9a-f].*; MTU \d+")
        self.assertNotIn("TCP ports", peal("doctor")[1])

    def test_a_missing_compiler_is_seen(self):
        out = peal("doctor", env=environment(CC="/nonexistent/cc"))[1]
        self.assertRegex(out, r"compiler +off")


if __name__ == "__main__":
    main(side_by_side=4)
