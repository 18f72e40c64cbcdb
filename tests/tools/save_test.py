# What `save` leaves behind, whatever happens: a kill at any system call, a disk that is full at any of them, limits,
# links, rights, folders that it must not leave; and that all who save one file save it together.
import errno
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import unittest

from common import PEAL, environment, main, peal, share, strided

STEPPER = os.environ.get("PEAL_STEPPER", "")
NEW = ".peal-new-"
SPEC = """peal: 1
topology: {dims: [auto, auto]}
fields: {u: {type: i32, size: [5, 4]}}
setup: [{load: u, file: in.npy}]
step: [{save: u, file: "OUT"}]
"""


def npy(values, shape=(4, 5)):
    text = "{'descr': '<i4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    length = (10 + len(text) + 1 + 63) // 64 * 64 - 10
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + (text.ljust(length - 1) + "\n").encode() +
            struct.pack("<%di" % len(values), *values))


FRESH, OLD = npy(list(range(20))), npy([7] * 20)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)


class Save(unittest.TestCase):
    env = None

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="peal-save-")
        self.folder = os.path.join(self.top, "spec")
        os.mkdir(self.folder)
        write(self.path("in.npy"), FRESH)
        self.spec("out.npy")

    def tearDown(self):
        shutil.rmtree(self.top)

    def path(self, name):
        return os.path.join(self.folder, name)

    def spec(self, out, text=SPEC):
        write(self.path("s.yaml"), text.replace("OUT", out))

    def run_spec(self, *more, processes=1, ranks=2, prefix=(), mode="sync"):
        return peal("run", self.path("s.yaml"), "--processes", str(processes), "-n", str(ranks), "--mode", mode,
                    "--deadline", "20", *more, prefix=prefix, env=self.env)

    def names(self):
        return sorted(os.listdir(self.folder))

    def assert_clean(self):
        self.assertEqual([n for n in self.names() if n.startswith(NEW)], [])


class Names(Save):
    def test_a_file_of_each_rank(self):
        for name, files in (("u-{rank}.npy", ["u-0.npy", "u-1.npy"]), ("u-{rank:03}.npy", ["u-000.npy", "u-001.npy"]),
                            ("u-{{rank}}.npy", ["u-{rank}.npy"])):
            for processes in (1, 2):
                with self.subTest(name, processes=processes):
                    self.spec(name)
                    code, _, err = self.run_spec("--verify", processes=processes, mode="stream")
                    self.assertEqual(code, 0, err)
                    self.assertEqual([n for n in self.names() if n.startswith("u-")], files)
                    for file in files:
                        os.remove(self.path(file))


class Whole(Save):
    """Stepping through all system calls."""

    def step(self, action, number, *more, processes=1):
        write(self.path("out.npy"), OLD)
        return self.run_spec(prefix=(STEPPER, NEW, action, str(number), *map(str, more), "--"), processes=processes)

    def counts(self, processes):
        if not STEPPER:
            self.skipTest("no stepper")
        code, _, err = self.step("count", 0, processes=processes)
        if code == 77:
            self.skipTest("ptrace cannot be used here")
        self.assertEqual(code, 0, err)
        self.assertEqual(read(self.path("out.npy")), FRESH)
        return {k: int(v) for k, v in re.findall(r"(kill|fail|short) (\d+)", err)}

    def is_old(self):
        content = read(self.path("out.npy"))
        self.assertIn(content, [OLD, FRESH])
        return content == OLD

    def kill_at_each(self, processes, most=100):
        old = fresh = 0
        count = self.counts(processes)["kill"]
        for number in strided(count, most):
            with self.subTest(call=number):
                self.step("kill", number, processes=processes)
                if self.is_old():
                    old += 1
                else:
                    fresh += 1
        self.assertGreater(min(old, fresh), 0)  # the kills hit before and after the rename
        code, _, err = self.run_spec(processes=processes)
        self.assertEqual(code, 0, err)
        self.assert_clean()

    @share.sometimes(3)
    def test_a_kill_at_any_call(self):
        self.kill_at_each(1, 1000)

    @share.sometimes(3, 1)
    def test_a_kill_of_one_process_of_two(self):
        self.kill_at_each(2, 60)  # how often processes ask for each other depends on the machine

    def test_a_kill_of_one_host_of_two(self):
        self.env = environment(PEAL_TEST_HOSTS="2")
        self.kill_at_each(2, 14)

    @share.sometimes(3, 2)
    def test_any_call_fails(self):
        failed = 0
        count = self.counts(1)["fail"]
        for error in [errno.ENOSPC, errno.EIO, errno.EINTR]:
            for number in strided(count, 1000):
                with self.subTest(error=errno.errorcode[error], call=number):
                    code, _, err = self.step("fail", number, error)
                    old = self.is_old()
                    self.assertFalse(old and code == 0, err)
                    if code != 0:
                        failed += 1
                        self.assertRegex(err, r"error: .*\[E\d{3}\]")
                    else:
                        self.assert_clean()
        if share.ALL:  # a share of the calls may be calls whose failure changes nothing
            self.assertGreater(failed, 0, count)

    def test_any_write_is_short(self):
        count = self.counts(1)["short"]
        self.assertGreater(count, 2)
        for number in range(1, count + 1):
            code, _, err = self.step("short", number)
            self.assertEqual((code, self.is_old()), (0, False), err)


class Room(Save):
    def test_the_limit_of_file_sizes(self):
        size = 40000
        self.spec("out.npy", SPEC.replace("[5, 4]", f"[{size}]").replace("[auto, auto]", "[auto]"))
        write(self.path("in.npy"), npy([1] * size, (size,)).replace(b"(40000)", b"(40000,)"))
        write(self.path("out.npy"), OLD)
        for processes in [1, 2]:
            code, _, err = self.run_spec(processes=processes, prefix=("bash", "-c", 'ulimit -f 16; exec "$@"', "-"))
            self.assertEqual(code, 4, err)
            self.assertRegex(err, r"cannot (write|size) `.*out.npy` in step 0: File too large")
            self.assertIn("[E210]", err)
            self.assertEqual(read(self.path("out.npy")), OLD)
            self.assert_clean()

    def test_a_full_disk(self):
        mounted = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", self.folder],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("nothing can be mounted here")
        size = 40000
        spec = SPEC.replace("[5, 4]", f"[{size}]").replace("[auto, auto]", "[auto]").replace("OUT", "full/out.npy")
        write(self.path("s.yaml"), spec)
        write(self.path("in.npy"), npy([1] * size, (size,)).replace(b"(40000)", b"(40000,)"))
        os.mkdir(self.path("full"))
        write(os.path.join(self.top, "old.npy"), OLD)
        script = ('mount -t tmpfs -o size=64k none "$0/full" && cp "$1" "$0/full/out.npy" && shift && "$@"; '
                  'code=$?; cmp "$0/full/out.npy" "$0/../old.npy" && ls -A "$0/full" && exit $code')
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, self.folder,
                               os.path.join(self.top, "old.npy"), PEAL, "run", self.path("s.yaml"), "-n", "2"],
                              capture_output=True, text=True, check=False, env=environment())
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"cannot write `.*out.npy` in step 0: No space left on device .*\[E210\]")
        self.assertEqual(done.stdout.split()[-1:], ["out.npy"])


class Names(Save):
    def test_what_killed_writers_left_is_removed(self):
        left = self.path(NEW + "0123456789abcdef-0-0")
        write(left, b"half")
        held = self.path(NEW + "0123456789abcdef-0-1")
        write(held, b"half")
        with subprocess.Popen(["flock", "-s", held, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdin.write(b"x\n")
            holder.stdin.flush()
            holder.stdout.read(1)  # it has the lock
            code, _, err = self.run_spec()
            self.assertEqual(code, 0, err)
            self.assertFalse(os.path.exists(left))
            self.assertTrue(os.path.exists(held))  # somebody still writes it
            holder.stdin.close()
            holder.wait()
        self.assertEqual(self.run_spec()[0], 0)
        self.assert_clean()

    def test_mode_and_links_stay(self):
        os.mkdir(self.path("far"))
        write(self.path("far/real.npy"), OLD)
        os.chmod(self.path("far/real.npy"), 0o640)
        os.symlink("far/link.npy", self.path("out.npy"))
        os.symlink("real.npy", self.path("far/link.npy"))
        code, _, err = self.run_spec()
        self.assertEqual(code, 0, err)
        self.assertTrue(os.path.islink(self.path("out.npy")) and os.path.islink(self.path("far/link.npy")))
        self.assertEqual(read(self.path("far/real.npy")), FRESH)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("far/real.npy")).st_mode), 0o640)

    def test_a_new_file_has_the_mode_of_the_umask(self):
        self.assertEqual(self.run_spec(prefix=("bash", "-c", 'umask 027; exec "$@"', "-"))[0], 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("out.npy")).st_mode), 0o640)

    def test_what_is_no_file(self):
        os.mkfifo(self.path("out.npy"))
        code, _, err = self.run_spec()
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"neither a file nor a character device \[E229\]")
        self.spec("/dev/null")
        code, _, err = self.run_spec("--allow-outside")
        self.assertEqual(code, 0, err)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_folder_that_cannot_be_written(self):
        write(self.path("out.npy"), OLD)
        os.chmod(self.path("out.npy"), 0o666)
        os.chmod(self.top, 0o755)
        os.chmod(self.folder, 0o555)
        prefix = ()
        if os.geteuid() == 0:
            prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
            if subprocess.run([*prefix, PEAL, "version"], capture_output=True, check=False).returncode != 0:
                self.skipTest("no other user can run the command")
        code, _, err = self.run_spec(prefix=prefix)
        os.chmod(self.folder, 0o755)
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"cannot make a new file beside `out.npy`: its folder cannot be written \[E227\]")
        self.assertEqual(read(self.path("out.npy")), OLD)


class Outside(Save):
    def refused(self, out):
        self.spec(out)
        for more in [(), ("--processes", "2")]:
            code, _, err = self.run_spec(*more)
            self.assertEqual(code, 3, err)
            self.assertRegex(err, r"s.yaml:5:\d+: error: `.*` is outside the spec's folder `.*` \[E228\]")
        self.said_before(5)

    def said_before(self, line):
        """What is known before a run is said by what runs nothing."""
        for verb in ("check", "explain", "plan"):
            with self.subTest(verb):
                code, _, err = peal(verb, self.path("s.yaml"))
                self.assertEqual(code, 3, err)
                self.assertRegex(err, rf"s.yaml:{line}:\d+: error: `.*` is outside the spec's folder `.*` \[E228\]")
                self.assertEqual(err.count("error: "), 1, err)
                code, _, err = peal(verb, self.path("s.yaml"), "--allow-outside")
                self.assertEqual(code, 0, err)

    def test_names(self):
        target = os.path.join(self.top, "away.npy")
        for name in ["../away.npy", target, "../spec-2/away.npy" if os.mkdir(self.top + "/spec-2") else "../away.npy"]:
            self.refused(name)
            self.assertFalse(os.path.exists(target))
        self.spec("../away.npy")
        code, _, err = self.run_spec("--allow-outside")
        self.assertEqual((code, read(target)), (0, FRESH), err)
        self.spec(self.path("inside.npy"))
        self.assertEqual(self.run_spec()[0], 0)

    def test_a_folder_whose_name_begins_the_same(self):
        os.mkdir(self.folder + "-2")
        self.refused("../spec-2/away.npy")

    def test_links(self):
        away = os.path.join(self.top, "away.npy")
        os.symlink(away, self.path("out.npy"))  # dangling
        self.refused("out.npy")
        self.assertFalse(os.path.exists(away))
        os.symlink(self.top, self.path("up"))
        self.refused("up/other.npy")

    def test_two_names_of_a_file_that_is_not_there_yet(self):
        os.mkdir(self.path("d"))
        os.symlink("d/there.npy", self.path("here.npy"))
        os.symlink("here.npy", self.path("also.npy"))
        write(self.path("s.yaml"), "peal: 1\nbuffers: {x: {}}\nstep:\n  - {save: x, file: also.npy, when: rank == 0}\n"
              "  - {save: x, file: d/there.npy, when: rank == 1}\n")
        code, _, err = peal("check", self.path("s.yaml"), "-n", "2")
        self.assertEqual(code, 3, err)
        self.assertIn("[E155]", err)

    def test_setup_loads_before_anybody_saves(self):
        """Ranks that come late to a file which rank 0 writes at its end; and what all load decides loops."""
        write(self.path("k.c"), "#include <time.h>\nPEAL_KERNEL(late)(peal_tile t, PEAL_UPDATE(double, w))\n{\n"
              "    struct timespec a = {0, 50000000};\n    nanosleep(&a, 0);\n    w[0] += 1;\n}\n")
        write(self.path("s.yaml"), "peal: 1\nkernels: k.c\nbuffers: {t: {type: i32}, w: {}}\nsetup:\n"
              "  - {task: late, update: w, when: rank > 0}\n  - {load: t, file: t.npy}\n"
              "  - {save: t, file: \"seen-{rank}.npy\"}\nrepeat: 5\nuntil: t >= 9\nstep:\n  - {set: t, value: t + 1}\n"
              "finish:\n  - {save: t, file: t.npy, when: rank == 0}\n")
        for mode in ("serial", "sync", "stream", "fused"):
            for processes in (["--processes", "1"], []) if mode != "serial" else ([],):
                with self.subTest((mode, processes)):
                    write(self.path("t.npy"), npy([7], (1,)))
                    code, _, err = peal("run", self.path("s.yaml"), "-n", "3", "--mode", mode, *processes)
                    self.assertEqual(code, 0, err)
                    for rank in range(3):
                        self.assertEqual(read(self.path("seen-%d.npy" % rank))[-4:], struct.pack("<i", 7))
                    self.assertEqual(read(self.path("t.npy"))[-4:], struct.pack("<i", 9))

    def test_links_behind_the_rank(self):
        """Names of several ranks that are one file by links, of files or of folders; and links that are sound."""
        text = "peal: 1\nbuffers: {{x: {{}}}}\nstep:\n  - {{save: x, file: \"{name}\"}}\n{more}"
        for name, links, more, wanted in [
                ("h-{rank}.npy", {"h-0.npy": "h.npy", "h-1.npy": "h.npy"}, "", 3), ("h-{rank}.npy", {"h-0.npy": "h-1.npy"}, "", 3),
                ("h-{rank}.npy", {"h-0.npy": "h.npy"}, "", 0), ("h-{rank}.npy", {"h-2.npy": "h-1.npy"}, "", 0),
                ("d-{rank}/h.npy", {"d-0": "d", "d-1": "d"}, "", 3), ("d-{rank}/h.npy", {"d-0": "d", "d-1": "e"}, "", 0),
                ("h-{rank:03}.npy", {"h-000.npy": "h.npy", "h-001.npy": "h.npy"}, "", 3),
                ("h-{rank:03}.npy", {"h-0.npy": "h.npy", "h-1.npy": "h.npy"}, "", 0),
                ("h-{rank}.npy", {"h-0.npy": "g-1.npy"}, "  - {load: x, file: \"g-{rank}.npy\"}\n", 3),
                ("h-{rank}.npy", {"h-0.npy": "g-0.npy"}, "  - {load: x, file: \"g-{rank}.npy\"}\n", 0)]:
            with self.subTest((name, links)):
                for folder in ("d", "e"):
                    os.makedirs(self.path(folder), exist_ok=True)
                for link, target in links.items():
                    os.symlink(target, self.path(link))
                write(self.path("s.yaml"), text.format(name=name, more=more))
                code, _, err = peal("check", self.path("s.yaml"), "-n", "2")
                self.assertEqual(code, wanted, err)
                self.assertEqual(err.count("links lead names of two ranks to one file") > 0, wanted == 3, err)
                for link in links:
                    os.remove(self.path(link))

    def test_leading_zeros(self):
        write(self.path("s.yaml"), 'peal: 1\nbuffers: {x: {}}\nrepeat: 12\nstep:\n  - {set: x, value: step}\n'
              '  - {save: x, file: "x-{rank:02}-{step:03}.npy", when: step % 11 == 0}\n')
        code, _, err = peal("run", self.path("s.yaml"), "-n", "2", "--mode", "sync", "-q")
        self.assertEqual(code, 0, err)
        saved = sorted(name for name in os.listdir(self.path("")) if name.startswith("x-"))
        self.assertEqual(saved, ["x-00-000.npy", "x-00-011.npy", "x-01-000.npy", "x-01-011.npy"])

    def test_a_name_that_only_the_run_knows(self):
        os.mkdir(self.path("d"))
        os.symlink(self.top, self.path("d/0"))
        self.spec("d/{step}/x.npy")
        code, _, err = self.run_spec()
        self.assertEqual(code, 3, err)
        self.assertIn("[E228]", err)

    def test_load(self):
        write(os.path.join(self.top, "in.npy"), FRESH)
        write(self.path("s.yaml"), SPEC.replace("in.npy", "../in.npy").replace("OUT", "out.npy"))
        code, _, err = self.run_spec()
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"s.yaml:4:\d+: error: `../in.npy` is outside the spec's folder `.*` \[E228\]")
        self.said_before(4)
        self.assertEqual(self.run_spec("--allow-outside")[0], 0)

    def test_constants(self):
        write(os.path.join(self.top, "c.npy"), npy([1, 2], (2,)).replace(b"(2)", b"(2,)"))
        write(self.path("s.yaml"), SPEC.replace("setup:", 'buffers: {c: {type: i32, file: "../c.npy"}}\nsetup:')
              .replace("OUT", "out.npy"))
        code, _, err = self.run_spec()
        self.assertEqual(code, 3, err)
        self.assertIn("[E228]", err)
        self.said_before(4)
        self.assertEqual(self.run_spec("--allow-outside")[0], 0)


class Together(Save):
    def test_what_a_rank_has_saved_it_can_load(self):
        text = SPEC.replace("u: {type", "v: {type: i32, size: [5, 4]}, u: {type") + \
            "repeat: 5\nfinish:\n  - {load: v, file: out.npy}\n  - {save: v, file: \"v-{rank}.npy\"}\n"
        text = text.replace('"OUT"}]', 'out.npy}, {save: u, file: "OUT"}, {load: v, file: "OUT"}]')
        self.spec("at-{step}.npy", text)
        for mode in ["serial", "sync", "stream", "fused"]:
            for processes in [1, 3]:
                with self.subTest(mode=mode, processes=processes):
                    code, _, err = self.run_spec(mode=mode, processes=processes, ranks=3)
                    self.assertEqual(code, 0, err)
                    for name in ["out.npy", *[f"at-{i}.npy" for i in range(5)]]:
                        self.assertEqual(read(self.path(name)), FRESH, name)
                        os.remove(self.path(name))
                    parts = [read(self.path(f"v-{rank}.npy")) for rank in range(3)]
                    whole = [max(p[i] for p in parts) for i in range(len(FRESH))]
                    self.assertEqual(bytes(whole), FRESH)  # each has its own points, else zeros
                    self.assert_clean()

    def test_what_a_rank_loads_is_its_own_last_save(self):
        """Ranks of a process that are ahead have saved under the same name since."""
        write(self.path("k.c"), "PEAL_KERNEL(next)(peal_tile t, PEAL_UPDATE(int32_t, u), long step)\n{\n"
              "    PEAL_FOR_2D(t, x, y)\n        PEAL_AT(u, x, y) = (PEAL_AT(u, x, y) * 7 + (int)step + x) % 1009;\n}\n")
        self.spec("", SPEC.replace("topology", "kernels: k.c\ntopology").replace("[5, 4]}", "[5, 4]}, v: {like: u}")
                  .replace("step: [", "repeat: 20\nstep: [{task: next, box: u, update: u, args: step}, ")
                  .replace('file: "OUT"}]', 'file: q.npy}, {load: v, file: q.npy}, {swap: [u, v]}]\n'
                           'finish: [{save: u, file: out.npy}]'))
        results = set()
        for mode in ["serial", "sync", "stream", "fused"]:
            for processes in [1, 2, 4]:
                with self.subTest(mode=mode, processes=processes):
                    code, _, err = self.run_spec(mode=mode, processes=processes, ranks=4)
                    self.assertEqual(code, 0, err)
                    results.add(read(self.path("out.npy")))
        self.assertEqual(len(results), 1)

    def test_two_jobs_at_once(self):
        jobs = [subprocess.Popen([PEAL, "run", self.path("s.yaml"), "-n", "2", "--processes", p], env=environment(),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for p in "1212"]
        for job in jobs:
            _, err = job.communicate()
            self.assertEqual(job.returncode, 0, err)
        self.assertEqual(read(self.path("out.npy")), FRESH)
        self.assert_clean()


if __name__ == "__main__":
    main()
