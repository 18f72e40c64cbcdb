# What `meson install` has put into a folder that was moved since: the command, its samples, and the library by CMake and
# by pkg-config, from C and C++.
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from common import ROOT, main

BUILD = os.environ.get("PEAL_BUILD", "")
PREFIX = os.environ.get("PEAL_PREFIX", "")
LIBDIR = os.environ.get("PEAL_LIBDIR", "")

CMAKE_LISTS = """cmake_minimum_required(VERSION 3.16)
project(outside C CXX)
find_package(peal {version} CONFIG REQUIRED)
add_executable(embed {samples}/embed/embed.c)
target_link_libraries(embed PRIVATE peal::peal m)
add_executable(exchange {samples}/exchange/exchange.c)
target_link_libraries(exchange PRIVATE peal::peal m)
add_executable(plus plus.cpp)
target_link_libraries(plus PRIVATE peal::peal)
set_target_properties(plus PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
get_target_property(command peal::command LOCATION)
message(STATUS "command ${{command}}, version ${{peal_VERSION}}")
"""
PLUS = """#include <peal/peal.h>
#include <cstring>
static_assert(PEAL_VERSION_NUMBER >= PEAL_VERSION_NUMBER_OF(0, 1, 0), "older");
int main() { return std::strcmp(peal_version(), PEAL_VERSION_STRING); }
"""


def tell(*words, folder=None, **more):
    return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, **more}, check=False)


@unittest.skipUnless(BUILD, "no library to install, or one with sanitizers")
class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        first = os.path.join(cls.holder.name, "first")
        done = tell("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", DESTDIR=first)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = os.path.join(cls.holder.name, "moved")
        shutil.move(first + PREFIX, cls.prefix)
        shutil.rmtree(first)
        cls.libraries = os.path.join(cls.prefix, LIBDIR)
        cls.samples = os.path.join(cls.prefix, "share", "peal", "samples")

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def ok(self, *words, **more):
        done = tell(*words, **more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def needs(self, *tools):
        for tool in tools:
            if not shutil.which(tool):
                self.skipTest(f"no {tool}")

    def test_command_and_its_files(self):
        command = os.path.join(self.prefix, "bin", "peal")
        version = self.ok(command, "--version").split()[1]
        with open(os.path.join(self.prefix, "include", "peal", "version.h"), encoding="ascii") as file:
            self.assertIn(f'"{version}"', file.read())
        out = self.ok(command, "run", os.path.join(self.samples, "jacobi2d"), "-n", "2", "--backend", "host", "--steps", "4",
                      "--verify")
        self.assertIn("equal to serial", out)
        machine = os.path.join(self.prefix, "share", "peal", "machines", "h200x4.yaml")
        self.ok(command, "explain", os.path.join(self.samples, "heat3d"), "-n", "4", "--machine", machine)
        with open(os.path.join(self.samples, "peal.schema.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.ok(command, "schema"))
        self.assertFalse([name for _, _, names in os.walk(self.prefix) for name in names if name == "meson.build"])

    def cmake(self, version):
        folder = tempfile.mkdtemp(dir=self.holder.name)
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE_LISTS.format(version=version, samples=self.samples))
        with open(os.path.join(folder, "plus.cpp"), "w", encoding="ascii") as file:
            file.write(PLUS)
        return folder, tell("cmake", "-S", folder, "-B", os.path.join(folder, "b"), f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_cmake(self):
        self.needs("cmake", "c++")
        folder, done = self.cmake("0.1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"command {self.prefix}/bin/peal, version 0.1.0", done.stdout)
        self.ok("cmake", "--build", os.path.join(folder, "b"))
        for name in ("embed", "exchange", "plus"):
            self.ok(os.path.join(folder, "b", name))

    def test_cmake_refuses_other_versions(self):
        self.needs("cmake", "c++")
        for version in ("0.2", "0.0.9", "1.0", "0.1.1"):
            with self.subTest(version):
                _, done = self.cmake(version)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertRegex(re.sub(r"\s+", " ", done.stderr), "compatible with requested version")

    def test_pkg_config(self):
        self.needs("pkg-config")
        where = {"PKG_CONFIG_PATH": os.path.join(self.libraries, "pkgconfig")}
        flags = self.ok("pkg-config", "--cflags", "--libs", "peal", **where)
        self.assertIn("moved", flags, "not relocatable; was the build folder set up by an older meson.build?")
        program = os.path.join(self.holder.name, "embed")
        source = os.path.join(self.samples, "embed", "embed.c")
        self.ok("cc", source, "-o", program, *flags.split(), "-lm")
        self.ok(program, LD_LIBRARY_PATH=self.libraries)


if __name__ == "__main__":
    main()
