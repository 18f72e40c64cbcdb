# The command line itself: help, exit codes, hints, pages of diagnostics, JSON that parses.
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from common import HARD_LIMIT, PEAL, ROOT, SPECS, environment, main, peal, peal_json

VERBS = ["run", "check", "plan", "doctor", "schema", "explain", "version"]
HEAT = os.path.join(SPECS, "run", "heat.yaml")


def codes():
    """Every diagnostic's number and its name, from the lists."""
    found = {}
    lists = glob.glob(os.path.join(ROOT, "base", "diagnostics", "*.def"))
    for path in [os.path.join(ROOT, "base", "diagnostics.def"), *lists]:
        with open(path, encoding="utf-8") as text:
            found |= dict(re.findall(r"^PEAL_DIAGNOSTIC\((E\d+), (\w+),", text.read(), re.M))
    return found


class Help(unittest.TestCase):
    def test_every_help_fits_a_screen_and_has_an_example(self):
        for words in [["--help"]] + [[verb, "--help"] for verb in VERBS]:
            with self.subTest(words):
                code, out, err = peal(*words)
                self.assertEqual((code, err), (0, ""))
                self.assertLessEqual(len(out.splitlines()), 24)
                self.assertLessEqual(max(map(len, out.splitlines())), 90)
                self.assertIn("peal ", out.splitlines()[-1])

    def test_no_verb_is_a_usage_error(self):
        self.assertEqual(peal()[0], 2)

    def test_help_names_every_verb(self):
        out = peal("--help")[1]
        for verb in VERBS:
            self.assertRegex(out, rf"\n  {verb} ")

    def test_help_of_a_verb(self):
        for verb in VERBS:
            self.assertEqual(peal("help", verb), peal(verb, "--help"))
        code, _, err = peal("help", "rum")
        self.assertEqual(code, 2)
        self.assertIn("did you mean `peal run`?", err)

    def test_version(self):
        self.assertEqual(peal("--version"), peal("version"))
        self.assertRegex(peal("version")[1], r"^peal \d+\.\d+\.\d+\n")
        code, data, _ = peal_json("version", "--json")
        self.assertEqual((code, data["schema"]), (0, "peal.version/1"))


class Mistakes(unittest.TestCase):
    def expect(self, words, number, hint):
        code, out, err = peal(*words)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn(f"[{number}]", err)
        self.assertIn(hint, err)

    def test_hints(self):
        self.expect(["rum"], "E400", "did you mean `peal run`?")
        self.expect(["run", HEAT, "--verfy"], "E401", "did you mean --verify?")
        self.expect(["check", HEAT, "--verify"], "E401", "an option of `peal run`")
        self.expect(["run", HEAT, "-x"], "E401", "--help")
        self.expect(["run", HEAT, "--steps", "-3"], "E402", "a number of steps")
        self.expect(["run", HEAT, "--steps=-3"], "E402", "a number of steps")
        self.expect(["run", HEAT, "--mode", "fast"], "E402", "serial, sync, stream")
        self.expect(["run", HEAT, "--mode", "strem"], "E402", "did you mean stream?")
        self.expect(["run", HEAT, "--backend=cud"], "E402", "did you mean cuda?")
        self.expect(["run", HEAT, "--transport", "p2p:vvm"], "E402", "did you mean p2p:vmm?")
        self.expect(["run", "--backned", "host", HEAT], "E401", "did you mean --backend?")
        self.expect(["run", HEAT, "--ranks"], "E402", "number of ranks")
        self.expect(["run", HEAT, "-n", "0"], "E402", "not '0'")
        self.expect(["run", HEAT, "-n", "4x"], "E402", "not '4x'")
        self.expect(["run", HEAT, "--deadline", "10 parsecs"], "E402", "30s")
        self.expect(["run", HEAT, "--lower", "foo=1"], "E665", "signal=")
        self.expect(["run", HEAT, "--backend", "host", "--lower", "signl=memop"], "E665", "did you mean signal=")
        self.expect(["plan", HEAT, "--lower", "signal=memo"], "E665", "did you mean signal=memop?")
        self.expect(["tune", HEAT, "--lower", "lanes=3"], "E665", "from 1 to 2")
        self.expect(["run", HEAT, "--lower", "lanes=2x"], "E665", "from 1 to 2")
        self.expect(["run", HEAT, "--lower", "order=period"], "E665", "order=period is called order=paper now")
        self.expect(["run", HEAT, "--lower", "jitter=5"], "E665", "words are")
        self.expect(["run", HEAT, "--lower", "plain"], "E665", "at least 0")
        self.expect(["run", HEAT, "--lower", "tile=64,,steps=1"], "E665", "signal=")
        self.expect(["run", HEAT, "--set", "n"], "E402", "NAME=VALUE")
        self.expect(["run", HEAT, "--verify=yes"], "E402", "no value")
        self.expect(["run", HEAT, "more"], "E403", "too many")
        self.expect(["run"], "E403", "which spec")
        code, _, err = peal("run", HEAT[:-4] + "yml")
        self.assertEqual(code, 4, err)
        self.assertIn(f"did you mean {HEAT}?", err)
        self.expect(["doctor", "gpu"], "E403", "takes no argument")
        self.expect(["run", HEAT, "-n", "2", "--processes", "3"], "E404", "more ranks")
        self.expect(["plan", HEAT, "-n", "2", "--rank", "2"], "E404", "count from 0")
        self.expect(["plan", HEAT, "--machine", "nod:1"], "E406", "did you mean node?")
        self.expect(["plan", HEAT, "--machine", "node:2"], "E406", "machine file")
        self.expect(["plan", HEAT, "--machine", "core:many"], "E406", "process:4")
        self.expect(["explain", "E999"], "E407", "brackets")
        self.expect(["explain"], "E403", "E009")

    def test_several_mistakes_are_reported_at_once(self):
        err = peal("run", HEAT, "--verfy", "--mode", "fast", "-n", "-1")[2]
        self.assertEqual(sorted(re.findall(r"\[(E\d+)\]", err)), ["E401", "E402", "E402"])

    def test_no_spec_there(self):
        code, _, err = peal("check", "nowhere.yaml")
        self.assertEqual(code, 4)
        self.assertIn("[E411]", err)
        code, _, err = peal("check", SPECS)
        self.assertEqual(code, 4)
        self.assertIn("exactly one spec", err)

    def test_unwritable_output(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PEAL, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                  env=environment(), timeout=HARD_LIMIT)
        self.assertEqual(done.returncode, 4)
        self.assertIn("[E410]", done.stderr)

    def test_environment_variables(self):
        err = peal("version", env=environment(PEAL_CACH="/tmp"))[2]
        self.assertIn("[E405]", err)
        self.assertIn("did you mean PEAL_CACHE?", err)
        self.assertEqual(peal("version", env=environment(PEAL_LOG="info"))[2], "")


class Surroundings(unittest.TestCase):
    def test_log_levels(self):
        for level, lines in [("quiet", 0), ("error", 0), ("info", 2)]:
            err = peal("run", HEAT, "-n", "2", "-q", env=environment(PEAL_LOG=level))[2]
            self.assertEqual(err.count("peal: host "), lines, err)
        code, _, err = peal("run", HEAT, "-n", "2", "-q", env=environment(PEAL_LOG="inof"))
        self.assertEqual((code, err.count("[E405]")), (0, 1), err)

    def test_a_reader_that_has_seen_enough(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run([PEAL, "schema"], stdout=writer, stderr=subprocess.PIPE, check=False,
                                  env=environment(), timeout=HARD_LIMIT)
        finally:
            os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("exactly one spec, but 0", peal("check", folder)[2])
            shutil.copy(os.path.join(SPECS, "run", "kernels.c"), folder)
            shutil.copy(HEAT, os.path.join(folder, "one.yml"))
            self.assertEqual(peal("check", folder)[0], 0)
            shutil.copy(HEAT, os.path.join(folder, "two.yaml"))
            code, _, err = peal("check", folder)
            self.assertEqual(code, 4, err)
            self.assertIn("exactly one spec, but 2", err)

    def test_serial_is_the_reference(self):
        code, out, _ = peal("run", HEAT, "--mode", "serial", "--verify")
        self.assertEqual((code, out.splitlines()[-1]), (0, "Result: serial is the reference."))


class Pages(unittest.TestCase):
    def test_every_diagnostic_has_a_page(self):
        self.assertGreater(len(codes()), 10)
        for number, name in codes().items():
            with self.subTest(number):
                code, out, err = peal("explain", number)
                self.assertEqual((code, err), (0, ""))
                self.assertTrue(out.startswith(f"{number} {name}: "))
                self.assertGreater(len(out), 80, "a page says more than the title")
                self.assertLessEqual(max(map(len, out.splitlines()[2:])), 82)

    def test_numbers_and_names_may_be_small(self):
        page = peal("explain", "E140")
        for word in ["e140", "DUPLICATE_TAG", "duplicate_tag", "PEAL_E_DUPLICATE_TAG"]:
            self.assertEqual(peal("explain", word), page)

    def test_a_spec_may_have_the_name_of_a_diagnostic(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "deadlock"))
            shutil.copy(HEAT, os.path.join(folder, "deadlock"))
            self.assertIn("serial", peal("explain", "deadlock", cwd=folder)[1])
            self.assertIn(" DEADLOCK: ", peal("explain", "DEADLOCK", cwd=folder)[1])

    def test_json(self):
        code, data, _ = peal_json("explain", "E401", "--json")
        self.assertEqual((code, data["schema"], data["exit"]), (0, "peal.explain/1", 2))
        self.assertEqual((data["code"], data["name"]), ("E401", "UNKNOWN_OPTION"))


class Json(unittest.TestCase):
    def test_schemas(self):
        for words, schema in [(["check", HEAT, "--json"], "peal.check/1"), (["plan", HEAT, "--json"], "peal.plan/1"),
                              (["explain", HEAT, "--format", "json", "-n", "4"], "peal.explain/1")]:
            with self.subTest(words):
                code, data, err = peal_json(*words)
                self.assertEqual((code, data["schema"]), (0, schema), err)

    def test_check_lists_messages(self):
        code, data, _ = peal_json("check", os.path.join(SPECS, "broken", "unknown-key.yaml"), "--json")
        self.assertEqual(code, 3)
        message = data["messages"][0]
        self.assertEqual(message["severity"], "error")
        self.assertGreater(message["line"], 0)

    def test_counterexamples(self):
        """A deadlock is told as the circle that it is: in words, as JSON and as a picture."""
        path = os.path.join(SPECS, "broken", "deadlock.yaml")
        code, data, _ = peal_json("check", path, "-n", "2", "--json")
        self.assertEqual(code, 3)
        events, links = (data["messages"][0]["story"][key] for key in ("events", "links"))
        self.assertEqual([(e["rank"], e["step"], e["line"]) for e in events],
                         [(0, 0, 14), (1, 0, 15), (1, 0, 14), (0, 0, 15)])
        self.assertEqual([(k["from"], k["why"], k["to"]) for k in links],
                         [(0, "waits for", 1), (1, "stands below", 2), (2, "waits for", 3), (3, "stands below", 0)])
        _, _, err = peal("check", path, "-n", "2")
        for number, event in enumerate(events):
            self.assertIn(f"    {number + 1}. rank {event['rank']}, step 0, line {event['line']}: {event['event']}", err)
        code, dot, _ = peal("check", path, "-n", "2", "--format", "dot")
        self.assertEqual(code, 3)
        self.assertEqual(re.findall(r"e0_(\d) -> e0_(\d)", dot), [("1", "2"), ("2", "3"), ("3", "4"), ("4", "1")])
        self.assertEqual(re.findall(r'label="rank (\d)"', dot), ["0", "1"])
        self.assertEqual(dot.count("{"), dot.count("}"))
        self.assertEqual(peal("check", HEAT, "--format", "dot")[:2], (0, dot[:dot.index("  subgraph")] + "}\n"))

    def test_a_circle_has_a_step(self):
        """Of statements that do not happen in each step, the first in which they do together."""
        spec = """peal: 1
buffers: {a: {}, b: {}, c: {}}
repeat: 20
step:
  - {recv: b, from: 1 - rank, when: step % 2 == 1}
  - {send: a, to: 1 - rank, when: step % 2 == 1}
"""
        for text, step in [(spec, 1), (spec.replace("step % 2 == 1", "(step + 2) % 3 == 1"), 2)]:
            code, data, err = peal_json("check", "-", "-n", "2", "--json", stdin=text)
            self.assertEqual(code, 3, err)
            self.assertEqual({e["step"] for e in data["messages"][0]["story"]["events"]}, {step})

    def test_a_circle_of_many_ranks_is_told_in_short(self):
        path = os.path.join(SPECS, "broken", "deadlock.yaml")
        _, data, _ = peal_json("check", path, "-n", "100", "--json")
        story = data["messages"][0]["story"]
        self.assertEqual(len(story["events"]) + story["left_out"], 200)
        self.assertLess(len(story["events"]), 20)
        self.assertIn(f"... and {story['left_out']} more like these", peal("check", path, "-n", "100")[2])

    def test_strict_refuses_what_is_warned_of(self):
        path = os.path.join(SPECS, "broken", "overwritten-unread.yaml")
        self.assertEqual(peal("check", path, "-n", "2")[0], 0)
        code, out, err = peal("check", path, "-n", "2", "--strict")
        self.assertEqual((code, out), (3, "overwritten-unread: refused by --strict: 1 warning\n"))
        self.assertIn("[E165]", err)
        code, data, _ = peal_json("check", path, "-n", "2", "--strict", "--json")
        self.assertEqual((code, data["status"], data["errors"], data["warnings"]), (3, "error in the spec", 0, 1))
        self.assertEqual(peal("check", HEAT, "-n", "2", "--strict")[0], 0)

    def test_print_json_is_the_document(self):
        code, data, _ = peal_json("check", HEAT, "--print-json")
        self.assertEqual(code, 0)
        self.assertEqual(data["params"], {"n": 24, "steps": 60, "report": 20})


class Plan(unittest.TestCase):
    MACHINE = ["-n", "4", "--machine", "process:2 core:2 cache:1MiB"]

    def test_same_input_same_bytes(self):
        for form in ["text", "json", "dot"]:
            for mode in ["serial", "sync", "stream", "fused"]:
                with self.subTest((form, mode)):
                    words = ["plan", HEAT, *self.MACHINE, "--mode", mode, "--format", form]
                    first = peal(*words)
                    self.assertEqual(first[0], 0, first[2])
                    self.assertGreater(len(first[1]), 100)
                    self.assertEqual(first, peal(*words))

    def test_credits_have_reasons(self):
        spec = """peal: 1
kernels: kernels.c
fields: {a: {size: [8, 8], halo: 1}, b: {like: a}}
buffers: {x: {keep: true}, y: {keep: true}}
step:
  - {exchange: a}
  - {task: relax, box: a, read: {a: {star: 1}}, write: b}
  - {send: x, to: 1, when: rank == 0}
  - {recv: y, from: 0, when: rank == 1}
  - repeat: 2
    step: [{send: x, to: 1 - rank, tag: 1, when: step > 0}, {recv: y, from: 1 - rank, tag: 1, when: step > 0}]
"""
        words = ["plan", "-", "-n", "2", "--rank", "0", "--mode", "fused"]
        code, text, err = peal(*words, stdin=spec)
        self.assertEqual(code, 0, err)
        _, data, _ = peal_json(*words, "--json", stdin=spec)
        reasons = {}
        for channel in data["schedules"][0]["channels"]:
            said = ("" if channel["credit"] else "no ") + "credit: " + channel["credit_why"]
            reasons[channel["edge"]] = said
            self.assertRegex(text, rf"(?m)^  \d+ +(in|out) +{re.escape(channel['edge'])} .*, {re.escape(said)}$")
        self.assertEqual(reasons["exchange a@6 0->1"], "no credit: exchange a@6 1->0 carries it")
        self.assertEqual(reasons["send x@8 0->1"], "no credit: exchange a@6 1->0 carries it")
        self.assertEqual(reasons["send x@11 0->1"], "credit: it is sent under a `when`")
        self.assertEqual(reasons["setup done 0->1"], "no credit: it is sent once")
        for name, why in [("sync", "credit: it is sent under a `when`"), ("serial", "no credit: one event runs at a time")]:
            self.assertIn(why, peal(*words[:-1], name, stdin=spec)[1])
        alone = spec[:spec.index("  - {exchange")] + "  - {send: x, to: 1, when: rank == 0}\n" \
            "  - {recv: y, from: 0, when: rank == 1}\n"
        self.assertIn(", credit: nothing goes back\n", peal(*words, stdin=alone)[1])
        apart = alone + "  - {repeat: 2, step: [{exchange: a}]}\n"
        self.assertIn(", credit: what goes back is in another body or under a `when`\n", peal(*words, stdin=apart)[1])

    def test_a_machine_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "two.yaml")

            def plan(text, *words):
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
                return peal("plan", HEAT, "--machine", path, *words)

            four = "machine: 1\nranks: 4\nprocesses: 2\ncache_bytes: 1048576\n"
            self.assertEqual(plan(four + "workers: 1\n"), peal("plan", HEAT, *self.MACHINE))
            self.assertNotEqual(plan(four + "workers: 3\n"), peal("plan", HEAT, *self.MACHINE))
            self.assertEqual(plan(four, "-n", "2", "--threads", "2"),
                             peal("plan", HEAT, "-n", "2", "--processes", "2", "--threads", "2"))
            for text, number, place in [
                    ("machine: 1\nrank: 4\n", "E012", "2:1"), ("ranks: 4\n", "E014", "1:1"),
                    ("machine: 2\n", "E015", "1:10"), ("[machine]\n", "E011", "1:1"),
                    ("machine: 1\nranks: four\n", "E013", "2:8"), ("machine: 1\nranks: [4]\n", "E013", "2:8"),
                    ("machine: 1\nworkers: 0\n", "E047", "2:10"),
                    ("machine: 1\ncache_bytes: 99999999999999999999\n", "E047", "2:14"),
                    ("machine: 1\nranks: 2\nprocesses: 3\n", "E047", "3:12"),
                    ("machine: 1\nranks: 1\nranks: 1\n", "E009", "3:1"),
                    ("machine: 1\nmodes: 3\n", "E013", "2:8"), ("machine: 1\nmodes: {quick: {}}\n", "E055", "2:9"),
                    ("machine: 1\nmodes: {sync: 2}\n", "E013", "2:15"),
                    ("machine: 1\nmodes: {sync: {start_s: 2}}\n", "E012", "2:16"),
                    ("machine: 1\nmodes: {sync: {launch_s: 2us}}\n", "E013", "2:26"),
                    ("machine: 1\nmodes: {sync: {launch_s: -2}}\n", "E047", "2:26"),
                    ("machine: 1\nmodes: {sync: {launch_s: 1e999}}\n", "E047", "2:26"),
                    ("machine: 1\nmodes: {fused: {apart: 1}}\n", "E013", "2:24"),
                    ("machine: 1\nkernels: {relax: {per_byte_s: []}}\n", "E013", "2:31"),
                    ("machine: 1\nkernels: {" + "k" * 64 + ": {}}\n", "E020", "2:11"),
                    ("machine: 1\nlinks: {p2p: {latency_s: 1}}\n", "E014", "2:14"),
                    ("machine: 1\nlinks: {p2p: {bytes_per_s: 0}}\n", "E047", "2:28"),
                    ("machine: 1\nlinks: {wire: {bytes_per_s: 1}}\n", "E055", "2:9"),
                    ("machine: 1\nlinks: {p2p: {bytes_per_s: 1, shared: all}}\n", "E055", "2:39"),
                    ("machine: 1\naccelerator: maybe\n", "E013", "2:14"), ("machine: 1\nnodes: 0\n", "E047", "2:8")]:
                with self.subTest(text):
                    code, _, err = plan(text)
                    self.assertEqual(code, 3, err)
                    self.assertRegex(err, rf"(?m)^{re.escape(path)}:{place}: error: .*\[{number}\]$")
            code, _, err = peal("plan", HEAT, "--machine", path + ".yaml")
            self.assertEqual((code, err.count("[E001]")), (2, 1), err)

    def test_one_rank_or_all(self):
        every = peal_json("plan", HEAT, *self.MACHINE, "--json")[1]["schedules"]
        self.assertEqual([s["rank"] for s in every], [0, 1, 2, 3])
        one = peal_json("plan", HEAT, *self.MACHINE, "--json", "--rank", "2")[1]["schedules"]
        self.assertEqual(one, [every[2]])

    def test_every_wait_has_its_write(self):
        every = peal_json("plan", HEAT, *self.MACHINE, "--json")[1]["schedules"]
        sent, received = [], []
        for schedule in every:
            for channel in schedule["channels"]:
                pair = (schedule["rank"], channel["peer"])
                (sent if channel["direction"] == "out" else received).append(
                    (*(pair if channel["direction"] == "out" else pair[::-1]), channel["bytes"]))
        self.assertGreater(len(sent), 0)
        self.assertEqual(sorted(sent), sorted(received))

    def test_graph_mode_is_refused_with_the_reason(self):
        code, out, err = peal("plan", HEAT, "--mode", "graph")
        self.assertEqual((code, out), (4, ""))
        self.assertIn("[E408]", err)

    def test_explain_lists_every_mode(self):
        code, data, _ = peal_json("explain", HEAT, "-n", "4", "--json")
        self.assertEqual(code, 0)
        modes = {m["mode"]: m["applicable"] for m in data["modes"]}
        self.assertEqual(modes, {"serial": True, "sync": True, "stream": True, "graph": False, "fused": True})
        self.assertGreater(sum(p["bytes"] for p in data["paths"]), 0)
        self.assertIn("graph", peal("explain", HEAT, "-n", "4")[1])

    def test_explain_says_what_the_run_decides(self):
        """What a graph cannot hold, and where the host waits for the GPU."""
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")

        def table(*words):
            _, data, err = peal_json("explain", *words, "--json", "--backend", "cuda")
            self.assertIn("modes", data, err)
            return data["auto"], {m["mode"]: " ".join(r["text"] + " " + r.get("change", "") for r in m["reasons"]) for m in data["modes"]}

        specs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu/specs")
        auto, notes = table(os.path.join(specs, "when.yaml"))
        self.assertEqual((auto, notes["graph"]), ("graph", ""))
        self.assertIn("waits for the GPU at each look at the `when` of line", notes["stream"])
        self.assertIn("`lag: 1` would not", table(os.path.join(ROOT, "samples/cg/cg.yaml"))[1]["stream"])
        self.assertEqual(table(HEAT)[1]["stream"], "")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "swap.yaml")
            for loop, words in (("when: k > 3", "swaps under a `when` that reads a buffer"),
                                ("until: k > 3", "may end where its `swap` has not come round")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write("peal: 1\nkernels: k.c\nfields: {u: {size: 8}, v: {like: u}}\nbuffers: {k: {type: i64}}\n"
                               f"step:\n  - repeat: 4\n    {loop}\n    step: [{{swap: [u, v]}}, {{set: k, value: k + 1}}]\n"
                               "finish: [{task: show, read: [u, v]}]\n")
                auto, notes = table(path)
                self.assertEqual(auto, "stream")
                self.assertIn(words, notes["graph"])

    def test_until_is_decided_last_in_graphs(self):
        """What comes after the verdict would not be done."""
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")
        spec = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu/specs/counted.yaml")
        last = {}
        for mode in ("stream", "graph"):
            code, out, err = peal("plan", spec, "-n", "2", "--mode", mode, "--backend", "cuda", "--rank", "0")
            self.assertEqual(code, 0, err)
            step = out[out.index("\nstep:"):out.index("\nfinish:")]
            last[mode] = step.strip().splitlines()[-1]
        self.assertIn("LAUNCH until", last["graph"])
        self.assertIn("LAUNCH accept", last["stream"])

    def test_many_tiles_are_apart_from_those_of_images(self):
        """On GPUs, in mode fused; but not where that would leave no tile, more than four boxes, or messages' tiles beside others."""
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")
        spec = ("peal: 1\nname: g\ntopology: {dims: [1, auto], periodic: [%s, true]}\nparams: {n: 8192}\n"
                "kernels: " + os.path.join(ROOT, "tests/gpu/specs/spread.c") + "\nfields: {a: {type: f32, size: [n, n], halo: 1}, b: {like: a}}\n"
                "buffers: {sum: {}}\nrepeat: 9\nstep:\n  - {task: relax, box: a, read: {a: {star: 1}}, write: b}\n"
                "  - {task: change, box: a, read: [a, b], reduce: {sum: sum}}\n  - {exchange: b}\n  - {allreduce: {sum: sum}}\n  - {swap: [a, b]}\n")
        for x_is_periodic, n, ranks, mode, apart in (("false", 8192, 1, "fused", {"relax"}), ("false", 1024, 1, "fused", set()),
                                                     ("false", 8192, 1, "graph", set()), ("true", 8192, 1, "fused", set()),
                                                     ("true", 8192, 2, "fused", {"relax"}), ("false", 8192, 2, "fused", {"relax"})):
            code, out, err = peal("plan", "-", "-n", str(ranks), "--set", f"n={n}", "--mode", mode, "--backend", "cuda", "--rank", "0",
                                  stdin=spec % x_is_periodic)
            self.assertEqual(code, 0, err)
            split = {line.split("LAUNCH ")[1].split()[0] for line in out.splitlines() if "(border)" in line}
            self.assertEqual(split, apart, (x_is_periodic, n, ranks, mode))

    def test_gpus_store_strided_faces_in_place(self):
        """Up to 16384 runs of a face, between processes and within one; CPUs pack them, and so does who shares no memory."""
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")
        spec = ("peal: 1\nname: f\ntopology: {dims: [2, 1]}\nparams: {n: 8}\nkernels: " + os.path.join(ROOT, "tests/gpu/specs/spread.c") +
                "\nfields: {a: {type: f32, size: [8, n], halo: 1}, b: {like: a}}\nrepeat: 9\nstep:\n"
                "  - {task: relax, box: a, read: {a: {star: 1}}, write: b}\n  - {exchange: {b: {star: 1}}}\n  - {swap: [a, b]}\n")
        for runs, staged, words in ((16384, 0, ("--backend", "cuda")), (16385, 1, ("--backend", "cuda")),
                                    (16384, 0, ("--backend", "cuda", "--processes", "1")), (16384, 1, ("--backend", "host")),
                                    (16384, 1, ("--backend", "cuda", "--transport", "shm"))):
            code, out, err = peal("plan", "-", "-n", "2", "--set", f"n={runs - 2}", "--mode", "fused", "--rank", "0", *words, stdin=spec)  # and a wall at each end
            self.assertEqual(code, 0, err)
            self.assertRegex(out, rf"out exchange b@\d+ 0->1 .* in 1 piece \({staged} staged\)", (runs, words))

    def test_backends_are_described_without_a_device(self):
        """plan, check and explain show what would run on GPUs, wherever they run."""
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")
        code, data, err = peal_json("explain", HEAT, "-n", "4", "--json", "--backend", "cuda")
        self.assertEqual((code, data["auto"]), (0, "graph"), err)
        self.assertEqual({m["mode"]: m["applicable"] for m in data["modes"]}["fused"], True)
        self.assertEqual({path["path"] for path in data["paths"]}, {"p2p"})
        code, data, _ = peal_json("explain", HEAT, "-n", "4", "--json", "--machine", "process:1", "--backend", "cuda")
        self.assertEqual({path["path"] for path in data["paths"]}, {"self"})
        code, data, err = peal_json("plan", HEAT, "-n", "2", "--json", "--backend", "cuda", "--mode", "graph")
        self.assertEqual((code, data["schedules"][0]["lanes"]), (0, 2), err)
        self.assertEqual(peal("check", HEAT, "-n", "2", "--backend", "cuda")[0], 0)
        code, _, err = peal("run", HEAT, "--backend", "gpu")
        self.assertEqual(code, 2)
        self.assertIn("--backend needs auto, host or cuda, not 'gpu'", err)

    def test_what_a_graph_cannot_hold(self):
        if "cuda" not in peal_json("version", "--json")[1]["backends"]:
            self.skipTest("built without CUDA's headers")
        spec = "peal: 1\nname: g\nbuffers: {x: {keep: true}}\nrepeat: 9\nstep:\n  - {set: x, value: step%s}\n%s"
        for when, more, reason in (
                (", when: step % 3 == 1", "", None), (", when: x < 3", "", None),
                (", when: step < 5", "", None), (", when: 2 * step % 4 == 0", "", None), (", when: (step + 1) % 100 < 3", "", None),
                (", when: step * step % 7 == 1", "", "`set x` in line 6 has a `when` whose value in later steps is not known"),
                ("", "  - {save: x, file: x.npy}\n", "in line 7 reads or writes a file"),
                ("", "  - {repeat: 2, as: k, step: [{save: x, file: x.npy}]}\n", "reads or writes a file"),
                ("", "  - {repeat: step, as: k, step: [{set: x, value: 1}]}\n", "depends on the step"),
                ("", "finish:\n  - {save: x, file: x.npy}\n", None)):
            code, out, err = peal("explain", "-", "--backend", "cuda", stdin=spec % (when, more))
            self.assertEqual(code, 0, err)
            line = [line for line in out.splitlines() if line.startswith("graph")][0]
            if reason:
                self.assertIn(reason, line)
            else:
                self.assertEqual(line.split(), ["graph", "yes"])


if __name__ == "__main__":
    main()
