# Senders that are through a loop before their receiver comes to it: every mode ends, and equals serial; channels have as
# many slots as that takes.
import glob
import os
import re
import tempfile
import unittest

from common import SPECS, main, peal

FOLDER = os.path.join(SPECS, "run", "ahead")
# Slots of the channels into and out of rank 0 of three, those with two (one message is enough) left out.
SLOTS = {"loop": [3], "sweeps": [5], "rooted": [4, 4], "setup": [4, 5], "until": [40], "third": [7], "nested": [3, 9],
         "once": [4, 4], "never": []}


class Ahead(unittest.TestCase):
    def test_every_spec_is_known_here(self):
        found = {os.path.basename(path)[:-5] for path in glob.glob(os.path.join(FOLDER, "*.yaml"))}
        self.assertEqual(found, set(SLOTS))

    def test_every_mode_equals_serial(self):
        for name in SLOTS:
            for processes in ("3", "1"):
                with self.subTest(name, processes=processes):
                    code, out, err = peal("run", os.path.join(FOLDER, name + ".yaml"), "-n", "3", "--mode", "all",
                                          "--verify", "--deadline", "20s", "--processes", processes)
                    self.assertEqual(code, 0, err)
                    self.assertIn("every mode equal to serial", out)

    def test_slots(self):
        for name, slots in SLOTS.items():
            with self.subTest(name):
                code, out, err = peal("plan", os.path.join(FOLDER, name + ".yaml"), "-n", "3", "--mode", "sync", "--rank",
                                      "0")
                self.assertEqual(code, 0, err)
                counts = sorted(int(count) for count in re.findall(r"(\d+) slots", out))
                self.assertEqual([count for count in counts if count > 2], slots)

    def test_what_is_not_looked_at_is_said(self):
        spec = ("peal: 1\ntopology: {dims: [2]}\nbuffers: {x: {}, y: {keep: true}, t: {}}\nparams: {n: 50000}\nstep:\n"
                "  - {recv: t, from: 0, tag: 9, when: rank == 1}\n  - repeat: n\n    as: k\n    step:\n"
                "      - {send: x, to: 1, when: rank == 0 and k == 0}\n      - {recv: y, from: 0, when: rank == 1 and k == 0}\n"
                "  - {send: t, to: 1, tag: 9, when: rank == 0}\n")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(spec)
            file.flush()
            for count, said in [("50000", False), ("500000", True)]:
                code, out, err = peal("check", file.name, "-n", "2", "--set", "n=" + count)
                self.assertEqual(code, 0, err)
                self.assertEqual("of `repeat` 65536 iterations are looked at" in err, said, out + err)


if __name__ == "__main__":
    main()
