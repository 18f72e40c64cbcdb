# The cache of compiled kernels, where it cannot be used or holds what it should not: the run goes on, with one warning,
# and runs the right code. Kernels and what they include: whose they are, who can change them, where they lie.
import fcntl
import glob
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

from common import PEAL, environment, main, peal

SPEC = """peal: 1
params: {value: VALUE}
kernels: k.c
buffers: {b: {count: 4, keep: true}, sum: {keep: true}}
step:
  - {task: fill, write: b, args: [4, value]}
  - {task: add, read: b, reduce: {sum: sum}}
  - {print: {sum: sum}}
"""
KERNELS = """#include "factor.h"
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, b), long n, long value)
{
    for (long i = 0; i < n; i++)
        b[i] = FACTOR * value;
}
PEAL_KERNEL(add)(peal_tile t, PEAL_READ(double, b), PEAL_REDUCE(double, sum))
{
    *sum = b[0] + b[1] + b[2] + b[3];
}
"""
OTHER = 65534


class Cache(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="peal-cache-")
        os.chmod(self.top, 0o755)
        self.folder = os.path.join(self.top, "spec")
        self.cache = os.path.join(self.top, "cache")
        os.mkdir(self.folder)
        self.write("s.yaml", SPEC.replace("VALUE", "3"))
        self.write("k.c", KERNELS)
        self.write("factor.h", "#define FACTOR 1\n")

    def tearDown(self):
        shutil.rmtree(self.top)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def run_spec(self, *more, prefix=(), cache=None, **changes):
        env = environment(PEAL_CACHE=cache or self.cache, **changes)
        return peal("run", os.path.join(self.folder, "s.yaml"), "-n", "1", "--mode", "sync", *more, prefix=prefix,
                    env=env)

    def assert_fine(self, result, value=12, warnings=0):
        code, out, err = result
        self.assertEqual(code, 0, err)
        self.assertIn(str(value), out.split(), out)
        self.assertEqual(err.count("[E207]"), warnings, err)
        self.assertNotIn("error:", err)

    def entries(self):
        return sorted(glob.glob(os.path.join(self.cache, "*.so")))

    def mounted(self, options):
        """Words that run a command with a tmpfs in the cache's place."""
        os.makedirs(self.cache, mode=0o700, exist_ok=True)
        prefix = ("unshare", "--mount", "bash", "-c", f'mount -t tmpfs -o mode=700,{options} none "{self.cache}" && '
                  'exec "$@"', "-")
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        return prefix


class Folders(Cache):
    def test_a_full_disk(self):
        for size in ["4k", "16k", "64k"]:
            with self.subTest(size):
                self.assert_fine(self.run_spec(prefix=self.mounted(f"size={size}")), warnings=1)

    def test_no_files_left(self):
        self.assert_fine(self.run_spec(prefix=self.mounted("nr_inodes=2")), warnings=1)

    def test_noexec(self):
        self.assert_fine(self.run_spec(prefix=self.mounted("noexec")), warnings=1)

    def test_read_only(self):
        self.assert_fine(self.run_spec(prefix=self.mounted("ro")), warnings=1)

    def test_no_home(self):
        env = environment(PEAL_CACHE=None, XDG_CACHE_HOME=None, HOME=None)
        code, _, err = peal("run", os.path.join(self.folder, "s.yaml"), "-n", "1", env=env)
        self.assertEqual((code, err.count("[E207]")), (0, 1), err)

    def test_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a folder away")
        os.mkdir(self.cache, 0o700)
        os.chown(self.cache, OTHER, OTHER)
        self.assert_fine(self.run_spec(), warnings=1)
        self.assertEqual(os.listdir(self.cache), [])

    def test_a_folder_that_others_can_rename(self):
        os.mkdir(self.cache, 0o700)
        os.mkdir(os.path.join(self.top, "open"))
        os.chmod(os.path.join(self.top, "open"), 0o777)
        self.assert_fine(self.run_spec(cache=os.path.join(self.top, "open", "cache")), warnings=1)
        self.assertEqual(glob.glob(os.path.join(self.top, "open", "cache", "*.so")), [])

    def test_what_killed_compiles_left(self):
        os.mkdir(self.cache, 0o700)
        for name in ["new-abcdef", "new-held00"]:
            os.makedirs(os.path.join(self.cache, name, "peal"), 0o700)
            with open(os.path.join(self.cache, name, "peal", "x"), "w", encoding="ascii"):
                pass
        held = os.open(os.path.join(self.cache, "new-held00"), os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_SH)
        self.assert_fine(self.run_spec())
        self.assertEqual([os.path.basename(p) for p in glob.glob(self.cache + "/new-*")], ["new-held00"])
        os.close(held)
        self.assert_fine(self.run_spec())
        self.assertEqual(glob.glob(self.cache + "/new-*"), [])


class Entries(Cache):
    def two(self):
        """Entries of two specs; the second is in use."""
        self.assert_fine(self.run_spec())
        first = self.entries()[0]
        self.write("factor.h", "#define FACTOR 2\n")
        self.assert_fine(self.run_spec(), 24)
        return first, [e for e in self.entries() if e != first][0]

    def test_under_anothers_name(self):
        first, second = self.two()
        shutil.copyfile(first, second)
        self.assert_fine(self.run_spec(), 24)

    def test_damaged(self):
        _, second = self.two()
        for size in [0, 1, 100, os.path.getsize(second) - 1]:
            os.truncate(second, size)
            self.assert_fine(self.run_spec(), 24)

    def test_links_are_not_followed(self):
        first, second = self.two()
        victim = os.path.join(self.top, "victim")
        os.remove(second)
        os.symlink(first, second)
        self.assert_fine(self.run_spec(), 24)
        self.assertFalse(os.path.islink(second))
        os.remove(second)
        os.symlink(victim, second)
        self.assert_fine(self.run_spec(), 24)
        os.remove(second)
        claims = os.path.join(self.cache, ".claims")
        os.remove(claims)
        os.symlink(victim, claims)
        self.assert_fine(self.run_spec(), 24)
        self.assertFalse(os.path.exists(victim))

    def test_rights(self):
        self.assert_fine(self.run_spec(prefix=("bash", "-c", 'umask 000; exec "$@"', "-")))
        for path in glob.glob(self.cache + "/*") + [self.cache]:
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o022, 0, path)


# A compiler that changes factor.h between two of its runs for a spec: 1: to preprocess, 2: to build. Where OLD is set, it
# is one that knows no preprocessed text.
COMPILER = """#!/bin/sh
folder="$(dirname "$0")"
for word in "$@"; do
    [ -n "$OLD" ] && [ "$word" = cpp-output ] && exit 1
    [ "$word" = -shared ] && [ -f "$folder/next.h" ] && mv "$folder/next.h" "$folder/spec/factor.h"
done
exec gcc "$@"
"""


class Changes(Cache):
    """Of what is included, while it is compiled: an entry has the code of its own key."""

    def setUp(self):
        super().setUp()
        self.compiler = os.path.join(self.top, "compiler")
        with open(self.compiler, "w", encoding="ascii") as file:
            file.write(COMPILER)
        os.chmod(self.compiler, 0o755)

    def change(self, text):
        with open(os.path.join(self.top, "next.h"), "w", encoding="ascii") as file:
            file.write(text)

    def test_after_it_was_read(self):
        self.change("#define FACTOR 2\n")
        self.assert_fine(self.run_spec(CC=self.compiler), 12)
        self.assert_fine(self.run_spec(CC=self.compiler), 24)
        self.write("factor.h", "#define FACTOR 1\n")
        self.assert_fine(self.run_spec(CC=self.compiler), 12)

    def test_by_a_compiler_that_reads_the_source_only(self):
        self.assert_fine(self.run_spec(CC=self.compiler, OLD="1"), 12)
        self.assertEqual(len(self.entries()), 1)
        self.write("factor.h", "#define FACTOR 3\n")
        self.change("#define FACTOR 2\n")
        code, _, err = self.run_spec(CC=self.compiler, OLD="1")
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"error: .*has changed while it was compiled.*\[E200\]")
        self.assertEqual(len(self.entries()), 1)
        self.assert_fine(self.run_spec(CC=self.compiler, OLD="1"), 24)

    def test_places_of_errors(self):
        self.write("k.c", KERNELS.replace("b[0] +", "b[0] + PEAL_AT(b, 0) * wrong +"))
        column = 3 + KERNELS.splitlines()[8].index("b[0]") + len("b[0] + PEAL_AT(b, 0) *")
        for compiler in ["gcc", "clang"]:
            if shutil.which(compiler):
                code, _, err = self.run_spec(CC=compiler)
                self.assertEqual(code, 3, err)
                self.assertRegex(err, rf"k\.c:9:{column - 1}: error: .*wrong.*\[E200\]")

    def test_warnings_that_are_errors(self):
        """A comment that allows what the compiler warns of is not in the preprocessed text."""
        self.write("k.c", KERNELS.replace("    for", "    switch (n) {\n    case 4:\n        b[0] = 0;\n"
                                          "        /* fall through */\n    default:\n        b[0] = 1;\n    }\n    for"))
        for compiler in ["gcc -Wall -Wextra -Werror -Wno-unused-parameter", "clang -Wall -Wextra -Werror -Wno-unused-parameter"]:
            if shutil.which(compiler.split()[0]):
                self.assert_fine(self.run_spec(CC=compiler))

    def test_where_it_lies(self):
        self.assert_fine(self.run_spec())
        moved = os.path.join(self.top, "moved")
        os.rename(self.folder, moved)
        self.folder = moved
        self.assert_fine(self.run_spec())
        self.assertEqual(len(self.entries()), 1)


class Kernels(Cache):
    def refused(self, code, number, words, *more, **changes):
        rc, _, err = self.run_spec(*more, **changes)
        self.assertEqual(rc, code, err)
        self.assertRegex(err, words + r".*\[" + number + r"\]")

    def test_who_can_write_them(self):
        for name in ["k.c", "factor.h"]:
            path = os.path.join(self.folder, name)
            os.chmod(path, 0o666)
            for more in [(), ("--allow-outside",)]:
                self.refused(4, "E230", rf"{name}` is not run: everybody can write it \(mode 0666\)", *more)
            os.chmod(path, 0o664)  # a group may share its files
            self.assert_fine(self.run_spec())
        os.chmod(self.folder, 0o777)
        self.refused(4, "E230", "everybody can write the folder")
        os.chmod(self.folder, 0o1777)
        self.assert_fine(self.run_spec())
        os.chmod(self.folder, 0o755)
        os.chmod(self.top, 0o777)
        self.refused(4, "E230", "everybody can write the folder")
        os.chmod(self.top, 0o755)

    def test_whose_they_are(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        for name in ["k.c", "factor.h"]:
            os.chown(os.path.join(self.folder, name), OTHER, OTHER)
            self.refused(4, "E230", rf"{name}` is not run: it belongs to user {OTHER}, not to user 0")
            self.assert_fine(self.run_spec(SUDO_UID=str(OTHER)))
            self.refused(4, "E230", "it belongs to user", SUDO_UID="1000")
            self.refused(4, "E230", "it belongs to user", SUDO_UID=f"{OTHER}x")
            os.chown(os.path.join(self.folder, name), 0, 0)

    def test_includes_outside(self):
        away = os.path.join(self.top, "away.h")
        with open(away, "w", encoding="ascii") as file:
            file.write("#define FACTOR 5\n")
        os.symlink(away, os.path.join(self.folder, "link.h"))
        for name in ['"../away.h"', f'"{away}"', f"<{away}>", '"link.h"', "NAME"]:
            with self.subTest(name):
                define = '#define NAME "../away.h"\n' if name == "NAME" else ""
                self.write("k.c", define + KERNELS.replace('"factor.h"', name))
                self.refused(3, "E231", r"(away|link).h`, which `.*k.c` includes, is outside the spec's folder")
                self.assert_fine(self.run_spec("--allow-outside"), 60)
                self.refused(3, "E231", "is outside the spec's folder")  # cached or not

    def test_includes_inside(self):
        os.mkdir(os.path.join(self.folder, "a b"))
        shutil.move(os.path.join(self.folder, "factor.h"), os.path.join(self.folder, "a b", "fac$tor.h"))
        self.write("k.c", "#include <math.h>\n" + KERNELS.replace("factor.h", "a b/../a b/fac$tor.h"))
        self.assert_fine(self.run_spec())


if __name__ == "__main__":
    main()
