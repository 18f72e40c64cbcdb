# An application may set a locale whose decimal point is a comma: what peal reads and writes for programs stays as it is.
# The command is made such an application by a library that sets the locale before main; the locale is made here.
import os
import shutil
import subprocess
import tempfile
import unittest

from common import SPECS, environment, main, peal

SET = """#include <locale.h>
#include <stdio.h>
__attribute__((constructor)) static void set(void)
{
    char text[8];
    snprintf(text, sizeof(text), "%.1f", setlocale(LC_ALL, "comma") ? 0.5 : 0.25);
    if (text[1] != ',')
        fputs("no comma\\n", stderr);
}
"""
LOCALE = 'comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'
SPEC = """peal: 1
params: {h: 0.25, big: 1.5e10}
kernels: k.c
buffers: {x: {keep: true}}
repeat: 2
step:
  - {task: t, update: x, args: [h, 0.1 * big]}
  - {set: x, value: x + 0.1}
  - {save: x, file: "a-{h}.npy"}
"""
KERNEL = """#include <peal/kernel.h>
PEAL_KERNEL(t)(peal_tile t, PEAL_UPDATE(double, x), double h, double b) { PEAL_AT(x, 0) += h * b; }
"""


class Locale(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in [("set.c", SET), ("comma.src", LOCALE), ("s.yaml", SPEC), ("k.c", KERNEL)]:
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as out:
                out.write(text)
        os.mkdir(os.path.join(self.folder, "locales"))
        if not shutil.which("localedef"):
            self.skipTest("no localedef")
        # -c: categories that it does not define are taken as warnings, and its status is 1
        subprocess.run(["localedef", "-c", "-i", "./comma.src", "-f", "ANSI_X3.4-1968", "./locales/comma"],
                       cwd=self.folder, capture_output=True, check=False)
        library = os.path.join(self.folder, "set.so")
        compiler = os.environ.get("CC", "cc").split()[0]
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, "set.c"], cwd=self.folder, check=True)
        self.comma = environment(LD_PRELOAD=library, LOCPATH=os.path.join(self.folder, "locales"), LC_ALL="comma")
        if not os.path.isdir(os.path.join(self.folder, "locales", "comma")):
            self.skipTest("localedef makes no locale")

    def both(self, *arguments):
        """What a call prints in the usual locale and in the other one, and the files that it has made."""
        plain = peal(*arguments, cwd=self.folder)
        files = self.take_files()
        other = peal(*arguments, cwd=self.folder, env=self.comma)
        self.assertNotIn("no comma", other[2])
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual(other[0], 0, other[2])
        self.assertEqual(self.take_files(), files)
        self.made = list(files)
        return plain[1], other[1]

    def take_files(self):
        made = {}
        for name in os.listdir(self.folder):
            if name.endswith(".npy"):
                path = os.path.join(self.folder, name)
                with open(path, "rb") as file:
                    made[name] = file.read()
                os.remove(path)
        return made

    def test_names_of_files_and_results(self):
        self.both("run", "s.yaml", "--mode", "all", "--verify")
        self.both("run", "s.yaml", "--mode", "sync", "--set", "h=0.75")
        self.assertEqual(self.made, ["a-0.75.npy"])

    def test_code_for_gpus(self):
        plain, other = self.both("plan", "s.yaml", "--emit", "cuda", "--mode", "stream")
        self.assertEqual(plain, other)

    def test_machine_files(self):
        machine = os.path.join(os.path.dirname(os.path.dirname(SPECS)), "machines", "h200x4.yaml")
        self.both("explain", "s.yaml", "--machine", machine)


if __name__ == "__main__":
    main()
