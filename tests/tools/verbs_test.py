# Messages by an RDMA adapter, on one of software (tests/softhca): what is computed and what is told when something goes wrong
# is as with shared memory.
import itertools
import os
import re
import tempfile
import unittest

from common import ROOT, SPECS, adapter, environment, main, peal, peal_json, share, spec_that_kills, why_no_verbs
from network_test import SAMPLES

JACOBI = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")


class WithoutAdapter(unittest.TestCase):
    def test_it_is_known(self):
        code, out, err = peal("plan", JACOBI, "-n", "2", "--transport", "verbs", "--rank", "0")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"out exchange .* verbs, 32768 bytes in 2 pieces \(2 staged\)")

    def test_what_cannot_be_is_told(self):
        found = {item["name"]: item for item in peal_json("doctor", "--json")[1]["findings"]}["network verbs"]
        if found["state"] == "ok":
            self.skipTest("there is an RDMA adapter")
        code, _, err = peal("run", JACOBI, "-n", "2", "--transport", "verbs")
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"transport verbs was asked for: (libibverbs finds no RDMA adapter here|libibverbs\.so\.1.*|"
                              r"peal was built without rdma-core's headers) \[E326\]")


@unittest.skipIf(why_no_verbs(), why_no_verbs())
class Verbs(unittest.TestCase):
    def run_with(self, *arguments, forms=(), **more):
        return peal(*arguments, prefix=adapter(*forms), **more)

    def agrees(self, name, ranks, sets=(), options=(), forms=(), env=None):
        words = [word for each in sets for word in ("--set", each)]
        code, out, err = self.run_with("run", name, "-n", str(ranks), "--mode", "all", "--verify", "--steps", "12", "--deadline", "20s",
                                       *words, *options, forms=forms, env=env)
        self.assertEqual(code, 0, f"{name} -n {ranks} {options} {forms}: {out}{err}")
        self.assertIn("every mode equal to serial", out)

    def test_samples(self):
        for number, engine in enumerate(("verbs", "mlx5")):
            for spec in share.taken(sorted(SAMPLES), 3, number):
                with self.subTest(spec, engine=engine):
                    self.agrees(os.path.join(ROOT, "samples", spec + ".yaml"), 4, SAMPLES[spec], ["--transport", engine])

    def test_mixed_paths_and_slow_adapters(self):
        self.agrees(JACOBI, 4, SAMPLES["jacobi2d/jacobi2d"], env=environment(PEAL_TEST_HOSTS="2"), options=["--transport", "auto+verbs"])
        forms = ("--slow", "--threads", "--steps", "--late")  # --steps: stores to registers are looked at one by one
        for engine, form in share.taken(list(itertools.product(("verbs", "mlx5"), forms)), 3):
            with self.subTest(form, engine=engine):
                self.agrees(JACOBI, 2, SAMPLES["jacobi2d/jacobi2d"], ["--transport", engine], [form])

    def test_channels_with_many_slots(self):
        for engine, name in share.taken([(e, n) for e in ("verbs", "mlx5") for n in ("sweeps", "until", "third")], 3):
            with self.subTest(name, engine=engine):
                self.agrees(os.path.join(SPECS, "run", "ahead", name + ".yaml"), 3, options=["--transport", engine])

    def test_long_messages(self):
        name = os.path.join(SPECS, "run", "long", "long.yaml")
        for engine, ranks, words in (("verbs", 3, ()), ("mlx5", 3, ()), ("mlx5", 4, ("--processes", "2", "--threads", "8"))):
            with self.subTest(words, engine=engine):
                self.agrees(name, ranks, options=["--transport", engine, *words])

    def test_an_adapter_that_takes_short_messages(self):
        """40000 bytes: verbs sends up to 16 parts; with rings of our own a message is one entry."""
        name = os.path.join(SPECS, "run", "long", "long.yaml")
        for most in ("2500", "39999"):  # 16 parts; 2
            self.agrees(name, 3, options=["--transport", "verbs"], forms=[f"--most-bytes={most}"])
        for engine, most in (("verbs", "2499"), ("mlx5", "39999")):
            with self.subTest(most, engine=engine):
                code, _, err = self.run_with("run", name, "-n", "3", "--mode", "sync", "--transport", engine, forms=[f"--most-bytes={most}"])
                self.assertEqual(code, 4, err)
                self.assertRegex(err, r"a message of 40000 bytes is too long for RDMA adapter mlx5_0 \[E326\]")

    def test_packets_in_any_order(self):
        name = os.path.join(SPECS, "run", "long", "long.yaml")
        for engine in ("verbs", "mlx5"):
            with self.subTest(engine):
                self.agrees(name, 3, options=["--transport", engine], forms=["--shuffle", "--late"])

    def test_lost_packets_are_sent_again(self):
        for engine in ("verbs", "mlx5"):
            with self.subTest(engine):
                self.agrees(JACOBI, 2, SAMPLES["jacobi2d/jacobi2d"], ["--transport", engine], ["--lose=40"])

    def test_a_port_that_goes_down_is_told(self):
        for engine, mode in share.taken((("verbs", "sync"), ("mlx5", "stream")), 2):
            with self.subTest(engine):
                code, _, err = self.run_with("run", JACOBI, "-n", "2", "--mode", mode, "--transport", engine, "--deadline", "60s", forms=["--down=500"])
                self.assertEqual(code, 5, err)
                self.assertRegex(err, r"RDMA adapter mlx5_0: port error.*\[E320\]")

    def test_memory_that_is_refused_is_told(self):
        """One process learns it; the others, who connect to it or to each other, do not wait."""
        for number, engine in share.taken([(n, e) for n in range(1, 13) for e in ("verbs", "mlx5")], 8):
            with self.subTest(number, engine=engine):
                code, _, err = self.run_with("run", JACOBI, "-n", "3", "--mode", "sync", "--transport", engine, "--deadline", "60s",
                                             forms=[f"--refuse={number}"])
                self.assertEqual(code, 4, err)
                self.assertRegex(err, r"mlx5_0: \d+ bytes for messages cannot be registered: Cannot allocate memory \[E326\]")

    def test_the_adapter_that_is_wished_for(self):
        cases = (("mlx5_0:1:0", 0, "^$"), ("mlx5_0", 0, "^$"),
                 ("mlx5_7", 4, r"none of 1 RDMA adapters, by PEAL_RDMA only mlx5_7 (has|is an mlx5 with) a port that is up \[E326\]"),
                 ("mlx5_0:2", 4, r"only mlx5_0 (has|is an mlx5 with) a port that is up \[E326\]"),
                 ("mlx5_0:x", 4, r"PEAL_RDMA is neither NAME, NAME:PORT nor NAME:PORT:GID: mlx5_0:x \[E326\]"),
                 ("mlx5_0:1:2:3", 4, r"PEAL_RDMA is neither NAME.*: mlx5_0:1:2:3 \[E326\]"),
                 ("mlx5_0:1:250", 4, r"cannot find the GID that PEAL_RDMA names: No such file or directory \[E326\]"))
        for (name, code, told), engine in share.taken(list(itertools.product(cases, ("verbs", "mlx5"))), 5):
            with self.subTest(name, engine=engine):
                found, _, err = self.run_with("run", JACOBI, "-n", "2", "--mode", "sync", "--transport", engine, "--steps", "4",
                                              env=environment(PEAL_RDMA=name))
                self.assertEqual(found, code, err)
                self.assertRegex(err, told)

    def test_an_error_of_the_adapter_is_told(self):
        for number in share.taken(range(1, 21), 7):
            engine, mode = ("verbs", "mlx5")[number % 2], ("sync", "stream", "fused")[number % 3]
            with self.subTest(number, engine=engine, mode=mode):
                code, _, err = self.run_with("run", JACOBI, "-n", "3", "--mode", mode, "--transport", engine, "--deadline", "60s",
                                             forms=[f"--fail={number * 100}"])
                self.assertEqual(code, 5, err)
                self.assertRegex(err, r"the RDMA connection with process \d has ended: a message was not taken: .*\[E320\]")

    def test_an_adapter_that_is_gone_is_told(self):
        for engine in share.taken(("verbs", "mlx5"), 2, 1):
            with self.subTest(engine):
                code, _, err = self.run_with("run", JACOBI, "-n", "2", "--mode", "sync", "--transport", engine, "--deadline", "3s",
                                             forms=["--die=500"])
                self.assertEqual(code, 6, err)
                self.assertRegex(err, r"rank \d waits in `exchange .*` for (message|the credit of message) \d+ of edge exchange .* \[E205\]")

    def test_a_doorbell_and_two_entries_a_message(self):
        for engine in ("verbs", "mlx5"):
            words = ("run", JACOBI, "-n", "2", "--transport", engine, "--mode", "sync", "--set", "nx=64", "--set", "ny=66")
            counts = []
            for steps in ("200", "1000"):
                code, _, err = self.run_with(*words, "--steps", steps, env=environment(SOFTHCA_SAY="1"))
                self.assertEqual(code, 0, err)
                counts.append([int(n) for n in re.search(r"softhca: (\d+) doorbells, (\d+) entries", err).groups()])
            # In 800 steps each of two ranks sends a message a step and, 8 times, a partial norm and a credit. Two doorbells that
            # follow each other closely are one to who looks at memory, and ends of plans have entries of their own.
            doorbells, entries = (after - before for before, after in zip(*counts))
            self.assertLessEqual(doorbells, 2 * 800 + 2 * 2 * 8 + 8, engine)
            self.assertGreaterEqual(entries, 2 * 2 * 800, engine)
            self.assertLessEqual(entries, 2 * 2 * 800 + 3 * 2 * 8 + 8, engine)

    def test_a_killed_process_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = spec_that_kills(folder)
            for mode, engine in (("sync", "verbs"), ("stream", "mlx5"), ("fused", "mlx5")):
                with self.subTest(mode, engine=engine):
                    code, _, err = self.run_with("run", path, "-n", "2", "--mode", mode, "--transport", engine, "--deadline", "60s")
                    self.assertEqual(code, 5, err)
                    self.assertRegex(err, r"process 1 .*(killed|SIGKILL|signal 9)")


if __name__ == "__main__":
    main()
