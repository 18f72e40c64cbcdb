# What is installed: the usual hardening of command and library, no global name but the interface's in the static
# library, and a test of misuse for every function of it.
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from common import PEAL, ROOT, main

LIBRARY = os.environ.get("PEAL_LIBRARY", "")
ARCHIVE = os.environ.get("PEAL_ARCHIVE", "")
PACKAGE = os.environ.get("PEAL_PACKAGE", "")  # folder of peal.pc
BUILD = os.environ.get("PEAL_HARDENED", "yes")  # no: without optimisation, or with sanitizers


def words(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def interface():
    with open(os.path.join(ROOT, "runtime", "peal.map"), encoding="ascii") as file:
        return re.findall(r"\b(peal_[a-z_*]+);", file.read().split("local:")[0])


def exported(path, *options):
    """Names that other objects see."""
    names = [line.split() for line in words("nm", *options, "--defined-only", "--extern-only", path).splitlines()]
    return {n[-1].split("@")[0] for n in names if len(n) == 3}


class Binaries(unittest.TestCase):
    def setUp(self):
        for tool in ["readelf", "nm", "pkg-config", "cc"]:
            if not shutil.which(tool):
                self.skipTest(f"no {tool}")
        if not LIBRARY:
            self.skipTest("no library named")

    def test_hardening(self):
        for path in [PEAL, LIBRARY]:
            with self.subTest(path):
                header, dynamic = words("readelf", "-hW", path), words("readelf", "-dW", path)
                segments = words("readelf", "-lW", path)
                self.assertRegex(header, r"Type:\s+DYN")  # position-independent
                self.assertIn("GNU_RELRO", segments)
                self.assertRegex(dynamic, r"BIND_NOW|FLAGS_1.*NOW")  # with it: full RELRO
                self.assertRegex(segments, r"GNU_STACK.* RW ")
                self.assertNotRegex(segments, r"LOAD.* RWE ")
                if BUILD != "yes":
                    continue
                symbols = words("nm", "-D", path)
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__\w+_chk@")  # FORTIFY

    def test_global_names(self):
        self.assertEqual([n for n in exported(ARCHIVE) if not n.startswith("peal_")], [])
        self.assertEqual(exported(ARCHIVE), exported(LIBRARY, "-D"))
        patterns = [re.compile(n.replace("*", ".*") + "$") for n in interface()]
        for name in exported(LIBRARY, "-D"):
            self.assertTrue(any(p.match(name) for p in patterns), name)

    def test_every_function_is_misused(self):
        with open(os.path.join(ROOT, "tests", "runtime", "test_misuse.c"), encoding="ascii") as file:
            text = file.read()
        for name in sorted(exported(LIBRARY, "-D")):
            self.assertRegex(text, rf"\b{re.sub('_(desc|at)$', '', name)}\b|\b{name}\b")

    def test_an_application_with_names_of_its_own(self):
        own = sorted(n for n in re.findall(r" [TDB] (\w+)$", words("nm", PEAL), re.M)
                     if not n.startswith(("_", "peal_")) and n not in ("main", "data_start"))
        self.assertGreater(len(own), 50)
        with tempfile.TemporaryDirectory(prefix="peal-static-") as folder:
            source, program = os.path.join(folder, "own.c"), os.path.join(folder, "own")
            with open(source, "w", encoding="ascii") as file:
                file.write("#include <peal/peal.h>\n#include <stdio.h>\n")
                file.writelines(f"int {name}(void);\nint {name}(void) {{ return 1; }}\n" for name in own)
                file.write("int main(void) {\n    peal_session *session = NULL;\n"
                           "    peal_status status = peal_session_create(NULL, &session);\n"
                           "    peal_session_destroy(session);\n    puts(peal_version());\n    return (int)status;\n}\n")
            with open(os.path.join(PACKAGE, "peal.pc"), encoding="ascii") as file:
                package = dict(line.strip().split(": ", 1) for line in file if ": " in line)
            needed = [re.split(r"[ >=]", name.strip())[0] for name in package["Requires.private"].split(",")]
            libraries = [ARCHIVE, *words("pkg-config", "--libs", *needed).split(), *package["Libs.private"].split()]
            built = subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", program, source, *libraries],
                                   capture_output=True, text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            self.assertRegex(words(program), r"^\d+\.\d+\.\d+\n$")

    def test_opened_by_dlopen(self):
        # Its thread-local memory has to be small: what glibc has left for libraries that come late.
        program = ("import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\n"
                   "library.peal_version.restype = ctypes.c_char_p\nprint(library.peal_version().decode())\n")
        if BUILD == "no":
            self.skipTest("a sanitizer's library has to be loaded first")
        self.assertRegex(words("/usr/bin/python3", "-c", program, LIBRARY), r"^\d+\.\d+\.\d+\n$")
        sections = words("readelf", "-lW", LIBRARY)
        size = int(re.search(r"^ *TLS(?: +0x[0-9a-f]+){4} +0x([0-9a-f]+)", sections, re.M).group(1), 16)
        self.assertLessEqual(size, 256)

    def test_a_build_that_is_not_installed(self):
        folder = os.path.join(os.path.dirname(PACKAGE), "meson-uninstalled")
        program = "#include <peal/peal.h>\nint main(void) { return !peal_version(); }\n"
        with tempfile.TemporaryDirectory(prefix="peal-uninstalled-") as built:
            source = os.path.join(built, "a.c")
            with open(source, "w", encoding="ascii") as file:
                file.write(program)
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "peal"], capture_output=True, text=True,
                                   check=True, env={**os.environ, "PKG_CONFIG_PATH": folder}).stdout.split()
            done = subprocess.run(["cc", "-o", os.path.join(built, "a"), source, *flags], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0 if BUILD != "no" else done.returncode, done.stderr)


if __name__ == "__main__":
    main()
