# Messages over sockets, on one host: --transport tcp takes each process for a host of its own, PEAL_TEST_HOSTS=k blocks of
# processes for k hosts. What is computed and what is told when something goes wrong is as with shared memory.
import os
import tempfile
import unittest

from common import ROOT, SPECS, environment, main, peal, peal_json, share, spec_that_kills, why_no_ucx

# Small ones; mesh and what has no parts for so many ranks are left out.
SAMPLES = {"jacobi2d/jacobi2d": ["nx=64", "ny=66"], "heat3d/heat3d": [], "cg/cg": ["n=64"], "halo/halo": [],
           "denoise/denoise": [], "particles/particles": [], "bfs/bfs": []}


class Network(unittest.TestCase):
    def agrees(self, name, ranks, sets=(), env=None, options=()):
        arguments = ["run", name, "-n", str(ranks), "--mode", "all", "--verify", "--steps", "12", "--deadline", "20s"]
        for word in sets:
            arguments += ["--set", word]
        code, out, err = peal(*arguments, *options, env=env)
        self.assertEqual(code, 0, f"{name} -n {ranks} {options}: {out}{err}")
        self.assertIn("every mode equal to serial", out)

    def test_samples(self):
        for spec, sets in SAMPLES.items():
            with self.subTest(spec):
                self.agrees(os.path.join(ROOT, "samples", spec + ".yaml"), 4, sets, options=["--transport", "tcp"])

    def test_mixed_paths(self):
        for spec, sets in list(SAMPLES.items())[:3]:
            with self.subTest(spec):
                self.agrees(os.path.join(ROOT, "samples", spec + ".yaml"), 4, sets, environment(PEAL_TEST_HOSTS="2"))
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        _, out, err = peal("run", name, "-n", "4", "--mode", "sync", "--steps", "3", env=environment(PEAL_TEST_HOSTS="2"))
        self.assertIn("messages by shm+tcp", out + err)
        self.agrees(name, 6, options=["--processes", "3", "--transport", "tcp"])

    def test_channels_with_many_slots(self):
        for name in ("sweeps", "until", "third"):
            with self.subTest(name):
                self.agrees(os.path.join(SPECS, "run", "ahead", name + ".yaml"), 3, options=["--transport", "tcp"])

    def test_long_messages(self):
        name = os.path.join(SPECS, "run", "long", "long.yaml")
        for ranks, words in ((3, ()), (3, ("--threads", "6")), (4, ("--processes", "2", "--threads", "8"))):
            with self.subTest(words):
                self.agrees(name, ranks, options=["--transport", "tcp", *words])

    def test_plan_and_check_know_it(self):
        name = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        code, out, err = peal("plan", name, "-n", "2", "--transport", "tcp", "--rank", "0")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"out exchange .* tcp, 32768 bytes in 2 pieces \(2 staged\)")
        code, out, err = peal("check", name, "-n", "2", "--transport", "tcp", "--mode", "stream")
        self.assertEqual(code, 0, err)
        code, out, err = peal("run", name, "-n", "2", "--transport", "udp")
        self.assertEqual(code, 2, err)
        self.assertIn("or tcp, ucx, verbs or mlx5 alone", err)
        for words in ("tcp+shm", "shm+", "+ucx", "shm+udp", "p2p:"):
            with self.subTest(words):
                code, out, err = peal("check", name, "-n", "2", "--transport", words)
                self.assertEqual(code, 2, err)

    def test_ucx(self):
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        code, out, err = peal("plan", name, "-n", "2", "--transport", "ucx", "--rank", "0")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"out exchange .* ucx, \d+ bytes")
        code, out, err = peal_json("explain", name, "--json", "--hosts", "a:2,b:2", "--transport", "auto+ucx")
        self.assertEqual({path["path"] for path in out["paths"]}, {"shm", "ucx"}, err)
        reason = why_no_ucx()
        if reason:
            code, out, err = peal("run", name, "-n", "2", "--transport", "ucx")
            self.assertEqual(code, 4, err)
            self.assertIn(reason, err)
            self.assertIn("E326", err)
            self.skipTest(reason)
        for spec in share.taken(sorted(SAMPLES), 4):
            with self.subTest(spec):
                self.agrees(os.path.join(ROOT, "samples", spec + ".yaml"), 4, SAMPLES[spec], options=["--transport", "ucx"])
        # All messages are fetched; memory within pretended hosts.
        _, out, err = peal("run", name, "-n", "4", "--mode", "sync", "--steps", "3", "--transport", "auto+ucx",
                           env=environment(PEAL_TEST_HOSTS="2"))
        self.assertIn("messages by shm+ucx", out + err)
        self.agrees(name, 4, env=environment(PEAL_TEST_HOSTS="2", UCX_RNDV_THRESH="0"), options=["--transport", "shm+ucx"])
        # Without a way to go.
        code, out, err = peal("run", name, "-n", "2", "--transport", "ucx", env=environment(UCX_TLS="none"))
        self.assertEqual(code, 4, err)
        self.assertRegex(err, "UCX cannot .*E326")

    def test_what_is_known_of_hosts_before_a_run(self):
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        code, out, err = peal("explain", name, "--hosts", "a:2,b,a")
        self.assertEqual(code, 0, err)
        self.assertIn("in 4 processes on 2 hosts\n", out)
        code, out, err = peal_json("explain", name, "--json", "--hosts", "a:2,b,a")
        self.assertEqual((code, out["hosts"]), (0, 2), err)
        # 0 and 1 are on a, 2 on b, 3 on a again: four ends of the ring's messages are between hosts.
        faces = {path["path"]: path["messages"] for path in out["paths"] if path["statement"].startswith("exchange")}
        code, here, err = peal_json("explain", name, "--json", "-n", "4")
        faces_here = {path["path"]: path["messages"] for path in here["paths"] if path["statement"].startswith("exchange")}
        self.assertEqual(set(faces), {"shm", "tcp"}, out["paths"])
        self.assertEqual(sum(faces.values()), faces_here["shm"])
        code, out, err = peal_json("explain", name, "--json", "--hosts", "a:2,b:2", "--backend", "cuda")
        self.assertEqual({path["path"] for path in out["paths"]}, {"p2p", "tcp"}, err)
        code, out, err = peal_json("plan", name, "--json", "--hosts", "a,b", "--mode", "sync")
        self.assertEqual(code, 0, err)
        ends = [{(put["word"], put["rank"], put["offset"], put["bytes"]) for put in schedule["puts"] if put["direction"] == way}
                for schedule, way in zip(out["schedules"], ("out", "in"))]
        self.assertEqual(ends[0], ends[1])
        self.assertTrue(any(put["bytes"] for put in out["schedules"][0]["puts"]))
        for words, code, text in ((["--hosts", "a,b:x"], 2, "--hosts needs a list"),
                                  (["--hosts", "a,b", "--processes", "3"], 2, "--processes 3, but --hosts a,b has 2")):
            for verb in ("check", "plan", "explain"):
                with self.subTest(verb, words=words):
                    status, _, err = peal(verb, name, *words)
                    self.assertEqual(status, code, err)
                    self.assertIn(text, err)

    def test_the_report_names_what_carries_messages(self):
        name = os.path.join(ROOT, "samples", "heat3d", "heat3d.yaml")
        for ranks, hosts, options, transport in (("4", "2", [], "shm+tcp"), ("2", "2", [], "tcp"), ("2", "0", [], "shm"),
                                                 ("2", "0", ["--transport", "tcp"], "tcp")):
            with self.subTest(transport, hosts=hosts):
                code, out, err = peal_json("run", name, "-n", ranks, "--mode", "sync", "--steps", "3", "--json", *options,
                                           env=environment(PEAL_TEST_HOSTS=hosts))
                self.assertEqual((code, out["transport"]), (0, transport), err)

    def test_what_several_hosts_cannot_is_refused(self):
        hosts = environment(PEAL_TEST_HOSTS="2")
        name = os.path.join(ROOT, "samples", "jacobi2d", "jacobi2d.yaml")
        code, _, err = peal("run", name, "-n", "2", "--transport", "shm", env=hosts)
        self.assertEqual(code, 4, err)
        self.assertRegex(err, r"transport shm was asked for, but the processes run on several hosts \[E313\]")

    def test_a_killed_process_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = spec_that_kills(folder)
            for mode in ("sync", "stream", "fused"):
                with self.subTest(mode):
                    code, _, err = peal("run", path, "-n", "2", "--mode", mode, "--transport",
                                        "tcp", "--deadline", "60s")
                    self.assertEqual(code, 5, err)
                    self.assertRegex(err, r"process 1 .*(killed|SIGKILL|signal 9)")


if __name__ == "__main__":
    main()
