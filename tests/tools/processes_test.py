# Processes that die, hang, stop or leave without a word, and launchers that do: every job ends with a cause and a code,
# and nothing of it is left.
import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from causes_test import KERNELS, SPEC
from common import HARD_LIMIT, PEAL, descendants, environment, is_alive, main, mpirun, peal, wait_until

FOREVER = 'static int told; if (!told++) fputs("stuck\\n", stderr); for (;;) sleep(1);'
SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ
# LeakSanitizer stops all threads by a tracer: what is killed, continued or forked meanwhile may hang it.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
SLOW = 'static int told; if (!told++) fputs("begun\\n", stderr); usleep(20000);'


# The number of the signal that the launcher's death is, when a process of a job has left main.
LAST = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
__attribute__((destructor)) static void last(void)
{
    const char *process = getenv("PEAL_LAUNCH_PROCESS");
    char name[16] = "";
    int number = -1;
    prctl(PR_GET_PDEATHSIG, &number);
    prctl(PR_GET_NAME, name);
    if (process && !strcmp(name, "peal"))
        fprintf(stderr, "last: %s by %d\\n", process, number);
}
"""


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def spec(self, what, repeat=10):
        path = os.path.join(self.folder, "spec.yaml")
        kernels = KERNELS.replace("WHAT", what).replace("#include <signal.h>",
                                                        "#include <pthread.h>\n#include <signal.h>")
        text = SPEC.replace("repeat: 10", f"repeat: {repeat}")
        for name, content in [("spec.yaml", text), ("kernels.c", kernels)]:
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(content)
        return path

    def script(self, text):
        path = os.path.join(self.folder, "script")
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o700)
        return path

    def start(self, *words, **more):
        job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=more.pop("env", environment()), **more)
        self.addCleanup(self.end, job)
        return job

    @staticmethod
    def end(job):
        for pid in [*descendants(job.pid), job.pid]:
            if is_alive(pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(pid, signal.SIGKILL)
        job.communicate()

    # ---- leaving without a word ----

    def test_a_process_that_ends_with_0(self):
        for call, code in [("_exit(0);", "E317"), ("exit(0);", "E415"), ("quick_exit(0);", "E415"),
                           ('execlp("true", "true", (char *)0);', "E317")]:
            path = self.spec(call)
            for words in [["--mode", "serial"], ["--mode", "fused"], ["-n", "3", "--processes", "1"]]:
                with self.subTest((call, words)):
                    rc, _, err = peal("run", path, *words)
                    self.assertEqual(rc, 5, err)
                    self.assertIn(code, err)

    def test_all_processes_end_with_0(self):
        rc, _, err = peal("run", self.spec(""), "-n", "2")
        self.assertEqual(rc, 0, err)
        path = self.spec("} _exit(0); {")
        for count in ["1", "3"]:
            rc, _, err = peal("run", path, "-n", count)
            self.assertEqual(rc, 5, err)

    def test_a_kernel_that_ends_its_thread(self):
        # AddressSanitizer has to be told of functions that are left without their end.
        path = self.spec("extern void __asan_handle_no_return(void) __attribute__((weak)); "
                         "if (__asan_handle_no_return) __asan_handle_no_return(); pthread_exit(0);")
        for mode, code in [("serial", "E415"), ("sync", "E319"), ("stream", "E319"), ("fused", "E319")]:
            with self.subTest(mode):
                rc, _, err = peal("run", path, "--mode", mode)
                self.assertEqual(rc, 5, err)
                self.assertIn(code, err)

    def test_a_kernel_that_raises_a_signal(self):
        """SIGTERM is blocked, and raise() is for one thread."""
        for call, code, number in [("raise(SIGTERM);", 143, "E414"), ("raise(SIGINT);", 130, "E413"),
                                   ("raise(SIGALRM);", 5, "E333")]:
            path = self.spec(call)
            for words in [["-n", "1"], ["-n", "3", "--mode", "serial"], ["-n", "3"], ["-n", "3", "--processes", "1"]]:
                with self.subTest((call, words)):
                    rc, _, err = peal("run", path, *words)
                    self.assertEqual(rc, code, err)
                    self.assertIn(number, err)

    def test_who_has_failed_says_so_before_it_takes_down_what_it_has(self):
        """That takes longer than the launcher waits behind the first process that has ended."""
        path = os.path.join(self.folder, "slow.yaml")
        with open(os.path.join(self.folder, "slow.c"), "w", encoding="utf-8") as file:
            file.write("#include <unistd.h>\nstatic int is_slow;\n"
                       "PEAL_KERNEL(mark)(peal_tile t, PEAL_WRITE(double, u))\n"
                       "{ PEAL_FOR_1D(t, x) PEAL_AT(u, x) = 1; is_slow |= t.lo[0] >= 4; }\n"
                       "__attribute__((destructor)) static void end(void) { if (is_slow) sleep(60); }\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write("peal: 1\nname: slow\ntopology: {dims: [auto]}\nkernels: slow.c\nfields: {u: {size: [8]}}\n"
                       "buffers: {k: {type: i64, keep: true}, i: {type: u8}}\nsetup:\n  - {task: mark, box: u, write: u}\n"
                       "repeat: 5\nstep:\n  - {set: k, value: k + 100 * rank}\n  - {set: i, value: k}\n")
        for verb in ("run", "tune"):
            with self.subTest(verb):
                rc, _, err = peal(verb, path, "-n", "2", "--processes", "2")
                self.assertEqual(rc, 3, err)
                self.assertRegex(err, r"rank 1, step 2: `i` is set to 300.*\[E371\]")

    def test_stopped_in_finish(self):
        """Nobody waits for a message of it: the others wait for it to finish."""
        path = os.path.join(self.folder, "spec.yaml")
        self.spec("")
        kernels = "\nPEAL_KERNEL(last)(peal_tile t, PEAL_UPDATE(double, a), long rank)\n{ if (rank == 1) raise(SIGSTOP); }\n"
        for name, text in [("spec.yaml", "finish: [{task: last, box: a, update: a, args: rank}]\n"),
                           ("kernels.c", kernels)]:
            with open(os.path.join(self.folder, name), "a", encoding="utf-8") as out:
                out.write(text)
        rc, _, err = peal("run", path, "-n", "3", "--deadline", "1s")
        self.assertEqual(rc, 6, err)
        self.assertIn("process 1 is stopped", err)

    def test_children_are_ignored(self):
        """Whoever starts the command may ignore SIGCHLD, and exec hands that on."""
        ignoring = ("env", "--ignore-signal=CHLD")
        for words in [["-n", "1"], ["-n", "3"]]:
            rc, _, err = peal("run", self.spec(""), *words, prefix=ignoring)
            self.assertEqual((rc, err), (0, ""))
        rc, _, err = peal("run", self.spec("wrong();"), "-n", "2", prefix=ignoring)
        self.assertEqual(rc, 3, err)
        self.assertRegex(err, r"wrong.*\[E200\]")

    def test_exit_handlers_are_not_continued(self):
        """LeakSanitizer stops the process there: what continues it would make it wait for ever."""
        if SANITIZED:
            self.skipTest("the sanitizers want to be loaded first")
        source, library = (os.path.join(self.folder, name) for name in ["last.c", "last.so"])
        with open(source, "w", encoding="ascii") as out:
            out.write(LAST)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        rc, _, err = peal("run", self.spec(""), "-n", "2", env=environment(LD_PRELOAD=library))
        self.assertEqual((rc, sorted(re.findall(r"last: .*", err))), (0, ["last: 0/2 by 0", "last: 1/2 by 0"]), err)

    def test_held_by_a_debugger_in_finish(self):
        """Such a process is stopped, too, but not by a signal."""
        libc = ctypes.CDLL(None, use_errno=True)
        path = os.path.join(self.folder, "spec.yaml")
        self.spec("")
        kernels = ("\nPEAL_KERNEL(last)(peal_tile t, PEAL_UPDATE(double, a), long rank)\n"
                   "{ if (rank == 1) { fprintf(stderr, \"pid %d\\n\", (int)getpid()); usleep(500000); } }\n")
        for name, text in [("spec.yaml", "finish: [{task: last, box: a, update: a, args: rank}]\n"),
                           ("kernels.c", kernels)]:
            with open(os.path.join(self.folder, name), "a", encoding="utf-8") as out:
                out.write(text)
        job = self.start(PEAL, "run", path, "-n", "3", "--deadline", "1s")
        pid = int(job.stderr.readline().split()[1])
        attach = 16  # PTRACE_ATTACH
        if libc.ptrace(attach, pid, None, None) != 0:
            job.kill()
            self.skipTest(f"ptrace cannot be used here: {os.strerror(ctypes.get_errno())}")
        os.waitpid(pid, 0)  # it is held
        wait_until(lambda: os.WIFSIGNALED(os.waitpid(pid, os.WNOHANG)[1]), "the job ends it")
        self.assertEqual(job.wait(timeout=HARD_LIMIT), 6)
        self.assertIn("process 1 is stopped", job.stderr.read())

    def test_closed_streams(self):
        """No file that is opened takes the number of standard output: what is printed would land there."""
        path = self.spec("")
        for words in ["-n 1", "-n 3", "-n 3 --processes 1"]:
            done = subprocess.run(["/bin/sh", "-c", f"exec {PEAL} run {path} {words} >&-"], env=environment(),
                                  stderr=subprocess.PIPE, text=True, timeout=HARD_LIMIT, check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertEqual(done.stderr.count("[E410]"), 1, done.stderr)

    def test_a_kernel_that_forks(self):
        for call, ranks in [("if (!fork()) exit(0);", "2"), ("if (!fork()) _exit(3);", "2"), ("fork();", "1")]:
            path = self.spec(call, repeat=2)
            for mode in ["serial", "fused"]:
                with self.subTest((call, mode)):
                    rc, out, err = peal("run", path, "-n", ranks, "--mode", mode)
                    self.assertEqual(rc, 0, err)
                    self.assertEqual(err, "")
                    self.assertEqual(out.count("2 steps in"), 1, out)

    def test_memory_of_all_ranks(self):
        """Each rank alone has room."""
        path = os.path.join(self.folder, "big.yaml")
        with open("/proc/meminfo", encoding="ascii") as lines:
            left = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        points = int((left / 8 * 1.5) ** 0.5)
        with open(path, "w", encoding="utf-8") as out:
            out.write("peal: 1\ntopology: {dims: [auto, auto], periodic: true}\n"
                      f"fields: {{a: {{size: [{points}, {points}], halo: 1}}}}\nstep: [{{exchange: a}}]\n")
        for words in [["-n", "4"], ["-n", "4", "--processes", "2"], ["-n", "4", "--processes", "1"]]:
            with self.subTest(words):
                rc, _, err = peal("run", path, *words)
                self.assertEqual(rc, 4, err)
                self.assertRegex(err, r"need \d+ bytes of memory together, they can have \d+ \(.*\) \[E300\]")

    # ---- launchers ----

    def check_launcher_killed(self, words, victim, env=None, asleep=False):
        """asleep: its processes are stopped, and nobody but the kernel continues them."""
        job = self.start(*words, env=env or environment(), start_new_session=True)
        while (line := job.stderr.readline()) not in ("stuck\n", "begun\n"):
            self.assertTrue(line, "it ended")
        members = descendants(job.pid)
        self.assertTrue(members)
        for pid in members if asleep else []:
            os.kill(pid, signal.SIGSTOP)
        os.kill(victim(job), signal.SIGKILL)
        for pid in members:
            wait_until(lambda p=pid: not is_alive(p), f"process {pid} ends")
        return job.stderr.read()

    def test_peal_run_killed(self):
        for what, repeat in [(FOREVER, 10), (SLOW, 10000)]:
            path = self.spec(what, repeat)
            for words in [["-n", "1"], ["-n", "3"], ["-n", "3", "--processes", "1"]]:
                for asleep in [False, True]:
                    with self.subTest((what, words, asleep)):
                        err = self.check_launcher_killed([PEAL, "run", path, *words], lambda job: job.pid,
                                                         asleep=asleep)
                        self.assertIn("[E315]", err)
                        self.assertNotRegex(err, "E414|E320")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun_killed(self):
        path = self.spec(FOREVER)
        self.check_launcher_killed([*mpirun(3), PEAL, "run", path], lambda job: job.pid)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun_killed_behind_a_shell(self):
        shell = self.script(f"{PEAL} run {self.spec(FOREVER)}\ntrue")
        self.check_launcher_killed([*mpirun(2), shell], lambda job: job.pid)

    def test_hangup(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and stays so in jobs
        job = self.start(PEAL, "run", self.spec(FOREVER), "-n", "2")
        signal.signal(signal.SIGHUP, before)
        self.assertEqual(job.stderr.readline(), "stuck\n")
        members = descendants(job.pid)
        job.send_signal(signal.SIGHUP)
        self.assertEqual(job.wait(timeout=HARD_LIMIT), 143)
        for pid in members:
            wait_until(lambda p=pid: not is_alive(p), f"process {pid} ends")

    def test_no_port(self):
        """peal run listens nowhere, and neither do its processes."""
        job = self.start(PEAL, "run", self.spec(FOREVER), "-n", "2")
        self.assertEqual(job.stderr.readline(), "stuck\n")
        inodes = set()
        for pid in [job.pid, *descendants(job.pid)]:
            for number in os.listdir(f"/proc/{pid}/fd"):
                try:
                    inodes.add(os.readlink(f"/proc/{pid}/fd/{number}"))
                except OSError:
                    pass
        self.assertTrue(any(name.startswith("socket:") for name in inodes))
        for table in ["tcp", "tcp6", "udp", "udp6"]:
            if os.path.exists(f"/proc/net/{table}"):
                with open(f"/proc/net/{table}", encoding="ascii") as lines:
                    for line in list(lines)[1:]:
                        self.assertNotIn(f"socket:[{line.split()[9]}]", inodes)

    def test_no_server(self):
        gone = environment(PMIX_NAMESPACE="gone@1", PMIX_RANK="0",
                           PMIX_SERVER_URI4="gone.0;tcp4://127.0.0.1:1",
                           PMIX_SERVER_URI41="gone.0;tcp4://127.0.0.1:1")
        for env in [gone, {k: v for k, v in gone.items() if k != "PMIX_RANK"},
                    environment(PMIX_NAMESPACE="gone@1", PMIX_RANK="0")]:
            rc, out, err = peal("run", self.spec(""), env=env)
            self.assertEqual((rc, out), (4, ""), err)
            self.assertRegex(err, "E314|E310")

    def test_a_silent_server(self):
        """It takes the connection and says nothing."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            uri = f"gone.0;tcp4://127.0.0.1:{server.getsockname()[1]}"
            env = environment(PMIX_NAMESPACE="gone@1", PMIX_RANK="0", PMIX_SERVER_URI4=uri,
                              PMIX_SERVER_URI41=uri, PMIX_SECURITY_MODE="native", PMIX_VERSION="4.2.2")
            rc, _, err = peal("run", self.spec(""), "--deadline", "1s", env=env)
        self.assertIn(rc, [4, 6], err)
        self.assertRegex(err, "E316|E314|E310")

    # ---- waits outside of the run ----

    def test_a_fifo(self):
        fifo = os.path.join(self.folder, "fifo.yaml")
        os.mkfifo(fifo)
        for words in [[fifo], [self.spec(""), "--machine", fifo]]:
            with self.subTest(words):
                rc, _, err = peal("run", *words, "--deadline", "300ms")
                self.assertEqual(rc, 6, err)
                self.assertRegex(err, r"waited .* s for the file .*fifo.yaml \[E304\]")

    def test_standard_input_that_never_ends(self):
        reader, writer = os.pipe()
        try:
            for words in [[], ["-n", "2"]]:
                job = subprocess.run([PEAL, "run", "-", "--deadline", "300ms", *words], stdin=reader, check=False,
                                     capture_output=True, text=True, timeout=HARD_LIMIT, env=environment())
                self.assertEqual(job.returncode, 6, job.stderr)
                self.assertIn("standard input", job.stderr)
        finally:
            os.close(reader)
            os.close(writer)

    def test_a_kernel_file_that_is_a_fifo(self):
        path = self.spec("")
        os.remove(os.path.join(self.folder, "kernels.c"))
        os.mkfifo(os.path.join(self.folder, "kernels.c"))
        rc, _, err = peal("run", path, "--deadline", "1s")
        self.assertIn(rc, [3, 4], err)

    def test_a_compiler_that_hangs(self):
        """And what it has started dies with it."""
        mark = os.path.join(self.folder, "pids")
        env = environment(CC=self.script(f"echo $$ >>{mark}\nsleep 1000 &\necho $! >>{mark}\nwait"),
                          PEAL_CACHE=os.path.join(self.folder, "cache"))
        for words in [["-n", "1"], ["-n", "3"]]:
            with self.subTest(words):
                rc, _, err = peal("run", self.spec(""), *words, "--deadline", "500ms", env=env)
                self.assertEqual(rc, 6, err)
                self.assertIn("[E303]", err)
                with open(mark, encoding="ascii") as pids:
                    for pid in map(int, pids.read().split()):
                        wait_until(lambda p=pid: not is_alive(p), f"process {pid} of the compiler ends")

    def test_killed_while_compiling(self):
        """By a signal that nobody can catch: the compiler goes, too."""
        mark = os.path.join(self.folder, "pids")
        env = environment(CC=self.script(f"sleep 1000 &\necho $$ $! >{mark}.new; mv {mark}.new {mark}\nwait"),
                          PEAL_CACHE=os.path.join(self.folder, "cache"))
        for victim in [lambda job: job.pid, lambda job: descendants(job.pid)[0]]:
            if os.path.exists(mark):
                os.remove(mark)
            job = self.start(PEAL, "run", self.spec(""), "-n", "2", env=env)
            wait_until(lambda: os.path.exists(mark), "the compiler runs")
            with open(mark, encoding="ascii") as pids:
                compiler = list(map(int, pids.read().split()))
            members = descendants(job.pid)
            os.kill(victim(job), signal.SIGKILL)
            for pid in [*compiler, *members]:
                wait_until(lambda p=pid: not is_alive(p), f"process {pid} ends")

    # ---- stopped ----

    def stop(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def test_all_processes_stopped(self):
        """With their launcher, for longer than the deadline: nobody is to blame, the job goes on."""
        for mode in ["sync", "stream", "fused"]:
            with self.subTest(mode):
                job = self.start(PEAL, "run", self.spec(SLOW, 25), "-n", "3", "--mode", mode, "--deadline", "1s")
                self.assertEqual(job.stderr.readline(), "begun\n")
                members = [job.pid, *descendants(job.pid)]
                self.stop(members)
                time.sleep(2)  # the deadline has to pass meanwhile
                for pid in members:
                    os.kill(pid, signal.SIGCONT)
                self.assertEqual(job.wait(timeout=HARD_LIMIT), 0, job.stderr.read())

    def test_all_but_the_launcher_stopped(self):
        for n in ("3", "1"):
            with self.subTest(n):
                job = self.start(PEAL, "run", self.spec(SLOW, 100000), "-n", n, "--mode", "sync", "--deadline", "1s")
                self.assertEqual(job.stderr.readline(), "begun\n")
                members = descendants(job.pid)
                self.stop(members)
                self.assertEqual(job.wait(timeout=HARD_LIMIT), 6)
                self.assertIn("[E325]", job.stderr.read())
                self.assertFalse([pid for pid in members if is_alive(pid)])

    def test_an_interrupt_that_the_parent_ignores(self):
        for n in ("2", "1"):
            job = self.start(PEAL, "run", self.spec(SLOW, 25), "-n", n, "--mode", "sync",
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
            self.assertEqual(job.stderr.readline(), "begun\n")
            for pid in [job.pid, *descendants(job.pid)]:
                os.kill(pid, signal.SIGINT)
            self.assertEqual(job.wait(timeout=HARD_LIMIT), 0, job.stderr.read())

    @unittest.skipIf(SANITIZED, "a sanitizer takes more before the command begins")
    def test_a_small_stack(self):
        job = self.start("/bin/sh", "-c", f"ulimit -s 64 && exec {PEAL} check {self.spec('')}")
        self.assertEqual(job.wait(timeout=HARD_LIMIT), 4)
        self.assertIn("[E417]", job.stderr.read())

    def test_one_process_stopped(self):
        job = self.start(PEAL, "run", self.spec(SLOW, 100000), "-n", "3", "--mode", "sync", "--deadline", "1s")
        self.assertEqual(job.stderr.readline(), "begun\n")
        self.stop([descendants(job.pid)[1]])
        self.assertEqual(job.wait(timeout=HARD_LIMIT), 6)
        self.assertIn("[E205]", job.stderr.read())


if __name__ == "__main__":
    main(side_by_side=4)
