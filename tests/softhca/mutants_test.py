#!/usr/bin/env python3
# Mistakes in entries and doorbells, one by one: each is seen by the adapter (99), told by a completion, or found in what
# arrives; without one all is well in each form of the adapter.
#
#   mutants_test.py SOFTHCA LIBRARY ENTRIES
import subprocess
import sys
import unittest

SOFTHCA, LIBRARY, ENTRIES = sys.argv[1:4]
del sys.argv[1:4]
WRONG, DIFFERS, REFUSED = 99, 1, 2
CASES = [("number", "", WRONG, "it says queue"), ("queue", "", WRONG, "a doorbell for queue 0x2001"), ("key", "", REFUSED, ""),
         ("slot", "", DIFFERS, "byte 0 is wrong"), ("early", "--slow", DIFFERS, "is wrong"),
         ("order", "--steps", WRONG, "doorbell of entry 1 before its record, which says 0"),
         ("half", "--steps", WRONG, "or half of one"), ("overrun", "", WRONG, "overrun"), ("taken", "", WRONG, "is full"),
         ("reuse", "--late", WRONG, "was changed before it was acknowledged")]


class Mutants(unittest.TestCase):
    def entries(self, form, *words):
        done = subprocess.run([SOFTHCA, *([form] if form else []), LIBRARY, ENTRIES, "rung", *words], capture_output=True, text=True,
                              check=False, timeout=100)
        if done.returncode == 77:
            print(done.stderr, file=sys.stderr)
            sys.exit(77)
        return done

    def test_each_is_caught(self):
        for mutant, form, code, words in CASES:
            with self.subTest(mutant=mutant):
                done = self.entries(form, mutant)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)

    def test_none(self):
        for form in ("", "--threads", "--steps", "--late", "--shuffle"):
            done = self.entries(form)
            self.assertEqual((done.returncode, done.stderr), (0, ""), form)


if __name__ == "__main__":
    unittest.main()
