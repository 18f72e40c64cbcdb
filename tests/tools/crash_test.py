# Kernels that crash: in every mode, on any rank, with threads and processes, the one that crashed is named, once, and
# the job ends; crashes outside of kernels are the system's.
import os
import resource
import signal
import subprocess
import unittest

from common import HARD_LIMIT, PEAL, descendants, environment, folder_of, kernel_cache, main, peal, wait_until

SPEC = """peal: 1
params: {n: 24, what: 0, who: 0, when: 3, in_setup: 0, in_finish: 0}
kernels: kernels.c
fields: {a: {size: [n, n], halo: 1}, b: {like: a}}
buffers: {s: {keep: true}}
setup:
  - {task: bad, box: a, update: a, args: [rank, in_setup, who, 1, what]}
repeat: 6
step:
  - {exchange: a}
  - {task: copy, box: a, read: {a: {star: 1}}, write: b, reduce: {s: sum}}
  - {task: bad, box: b, update: b, args: [rank, step, who, when, what]}
  - {allreduce: {s: sum}}
  - {swap: [a, b]}
finish:
  - {task: bad, box: a, update: a, args: [rank, in_finish, who, 1, what]}
"""
KERNELS = """#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static int deep(int n)
{
    volatile char room[4096];
    room[n % 7] = (char)n;
    return n > 0 ? deep(n + 1) + room[n % 5] : 0;
}

PEAL_KERNEL(copy)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b), PEAL_REDUCE(double, s))
{
    PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y);
    PEAL_PARTIAL(s, 1);
}

PEAL_KERNEL(bad)(peal_tile t, PEAL_UPDATE(double, b), long rank, long step, long who, long when, long what)
{
    volatile int zero = 0;
    if (rank != who || step != when)
        return;
    if (what == 0)
        *(volatile int *)(uintptr_t)16 = 1;
    if (what == 1)
        PEAL_AT(b, t.lo[0], t.lo[1]) = 7 / zero;
    if (what == 2)
        __builtin_trap();
    if (what == 3)
        PEAL_AT(b, t.lo[0], t.lo[1]) = deep(1);
    if (what == 4)
        abort();
    if (what == 6) {
        fputs("stuck\\n", stderr);
        for (;;)
            sleep(1);
    }
    if (what == 7) { /* the C library aborts within malloc */
        char *volatile p = malloc(60000);
        for (long k = 60000; k < 60064; k++)
            ((volatile char *)p)[k] = (char)0xff;
        char *volatile q = malloc(50000), *volatile r = malloc(120000);
        PEAL_AT(b, t.lo[0], t.lo[1]) = (q != NULL) + (r != NULL);
    }
    if (what == 8) { /* a fault within malloc: the list of free memory leads to nowhere */
        void **volatile p = malloc(5000), *volatile next = malloc(5000);
        free(p);
        ((void *volatile *)p)[1] = (void *)16;
        next = malloc(7000);
        PEAL_AT(b, t.lo[0], t.lo[1]) = next != NULL;
    }
    if (what == 5)
        *(volatile int *)((char *)mapped() + 8192) = 1;
}
"""
MAPPED = """#include <sys/mman.h>
static void *mapped(void)
{
    FILE *file = tmpfile();
    return mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
}
"""
KERNELS = KERNELS.replace("#include <stdlib.h>\n", "#include <stdio.h>\n#include <stdlib.h>\n" + MAPPED)
CAUSES = ["segmentation fault at address 0x10", "an integer was divided by zero", "illegal instruction",
          "segmentation fault: the stack has overflowed", r"abort\(\) was called", "bus error at address 0x"]


class Crashes(unittest.TestCase):
    def setUp(self):
        folder = folder_of({"spec.yaml": SPEC, "kernels.c": KERNELS}, "/tmp")
        self.path = os.path.join(folder, "spec.yaml")
        self.env = environment(XDG_CACHE_HOME=kernel_cache("/tmp"))

    def crash(self, *words, rank, when, cause, hint="`peal run --check-footprints` finds"):
        code, out, err = peal("run", self.path, *words, env=self.env)
        self.assertEqual(code, 3, out + err)
        self.assertEqual(err.count("error:"), 1, err)
        self.assertEqual(err.count("[E215]"), 1, err)
        self.assertRegex(err, rf"spec\.yaml:\d+:\d+: error: task 'bad' crashed: {cause}.* "
                              rf"\(rank {rank}, tile \[\d+, \d+\) x \[\d+, \d+\), {when}\) \[E215\]\n +{hint}")
        self.assertNotIn("[E3", err)

    def test_every_mode_rank_and_process(self):
        for mode in ["serial", "sync", "stream", "fused"]:
            for words in [["--processes", "1"], ["--processes", "1", "--threads", "6"], []]:
                for rank in [0, 2]:
                    with self.subTest((mode, words, rank)):
                        self.crash("-n", "3", *words, "--mode", mode, "--set", f"who={rank}", rank=rank,
                                   when="step 3", cause=CAUSES[0])

    def test_every_signal(self):
        for what, cause in enumerate(CAUSES):
            for words in [[], ["-n", "2", "--mode", "fused", "--set", "who=1"]]:
                with self.subTest((what, words)):
                    self.crash(*words, "--set", f"what={what}", rank=len(words) and 1, when="step 3", cause=cause)

    def test_setup_and_finish(self):
        self.crash("-n", "2", "--set", "in_setup=1", "--set", "who=1", rank=1, when="setup", cause=CAUSES[0])
        self.crash("--set", "in_finish=1", "--set", "when=9", rank=0, when="finish",
                   cause=CAUSES[0])

    def test_check_footprints_survives(self):
        for what, cause in enumerate(CAUSES):
            with self.subTest(what):
                self.crash("-n", "2", "--check-footprints", "--set", f"what={what}", "--set", "who=1", rank=1,
                           when="step 3", cause=cause, hint="none of its arrays is near")

    def test_check_footprints_ends_with_the_heap(self):
        """malloc keeps its lock when it crashes or aborts: the next one would wait for ever."""
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("the sanitizers have a malloc of their own")
        for what, cause in [(7, r"abort\(\) was called"), (8, "segmentation fault")]:
            for words in [[], ["-n", "2", "--set", "who=1"]]:
                with self.subTest((what, words)):
                    self.crash(*words, "--check-footprints", "--set", f"what={what}", rank=len(words) and 1,
                               when="step 3", cause=cause, hint="none of its arrays is near")

    def test_outside_of_kernels_it_is_the_systems(self):
        """Process 1 waits for a message of rank 0, whose kernel never returns, when a SEGV is sent to it."""
        job = subprocess.Popen([PEAL, "run", self.path, "-n", "2", "--mode", "sync", "--set", "what=6"], env=self.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        try:
            self.assertEqual(job.stderr.readline(), "stuck\n")
            os.kill(descendants(job.pid)[-1], signal.SIGSEGV)
            wait_until(lambda: len(descendants(job.pid)) < 2, "the process has gone")
            _, err = job.communicate(timeout=HARD_LIMIT)
            self.assertNotIn("[E215]", err)
            if "AddressSanitizer: SEGV" in err:  # it has a handler of its own, which was called
                self.assertNotEqual(job.returncode, 0, err)
                return
            self.assertEqual(job.returncode, 5, err)
            self.assertRegex(err, r"signal 11 \(Segmentation fault\) \[E333\]")
        finally:
            for pid in descendants(job.pid):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
