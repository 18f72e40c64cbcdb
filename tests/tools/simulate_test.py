# `peal simulate`: what it prints of a machine whose times are round numbers, its curves, and what it refuses.
import os
import re
import shutil
import tempfile
import unittest
import xml.dom.minidom

from common import ROOT, main, peal, peal_json

SPEC = """peal: 1
name: line <1>
params: {n: 8, steps: 10}
topology: {dims: [auto]}
fields: {u: {size: [n * ranks], halo: 1}, v: {like: u}}
kernels: nowhere.c
repeat: steps
step:
  - {task: relax, box: u, read: {u: {star: 1}}, write: v}
  - {exchange: v}
  - {swap: [u, v]}
"""
# A step: a kernel (1 s and 8 points), a message (copy, 8 bytes, write, latency, wait, unpacked by the same link).
MACHINE = """machine: 1
accelerator: true
devices: 2
modes:
  sync: {kernel_s: 1, launch_s: 0.25, synchronize_s: 0.5, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}
  graph: {kernel_s: 1, copy_s: 0.5, write_s: 0.25, wait_s: 0.125}
kernels: {relax: {per_point_s: 0.125}}
links: {p2p: {latency_s: 2, bytes_per_s: 4}, network: {latency_s: 4, bytes_per_s: 2}}
"""


class Simulate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.write("line.yaml", SPEC)
        self.write("machine.yaml", MACHINE)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
            out.write(text)

    def simulate(self, *words):
        return peal("simulate", "line.yaml", "--machine", "machine.yaml", *words, cwd=self.folder)

    def points(self, *words):
        code, data, err = peal_json("simulate", "line.yaml", "--machine", "machine.yaml", "--json", *words, cwd=self.folder)
        self.assertEqual((code, err, data["schema"]), (0, "", "peal.simulate/1"))
        return data["points"]

    def test_stretched_kernels(self):
        usual = self.points("-n", "2", "--mode", "graph")[0]["seconds_per_step"]
        self.write("machine.yaml", MACHINE.replace("graph: {", "graph: {stretch: 3, "))
        self.assertEqual(self.points("-n", "2", "--mode", "graph")[0]["seconds_per_step"], usual + 2)

    def test_a_border_and_the_rest_are_one_launch(self):
        fused = "  fused: {kernel_s: 1, copy_s: 0.5, write_s: 0.25, wait_s: 0.125, apart: true}\n"
        self.write("machine.yaml", MACHINE.replace("kernels:", fused + "kernels:"))
        modes = ("graph", "fused")
        whole = [self.points("-n", "2", "--mode", mode)[0]["seconds_per_step"] for mode in modes]
        self.write("line.yaml", SPEC.replace("write: v}", "write: v, tile: [2]}"))
        cut = [self.points("-n", "2", "--mode", mode)[0]["seconds_per_step"] for mode in modes]
        self.assertEqual(cut[0], whole[0])  # messages leave when all blocks have ended
        self.assertEqual(cut[1], whole[1] - 6 * 0.125)  # behind the 2 of 8 points that they have

    def test_times_and_messages(self):
        serial, sync, graph = self.points("-n", "2", "--mode", "all")
        self.assertEqual([p["mode"] for p in (serial, sync, graph)], ["serial", "sync", "graph"])
        self.assertGreater(serial["seconds_per_step"], sync["seconds_per_step"])
        self.assertEqual(sync["seconds_per_step"], 0.25 + 1 + 1 + 0.5 + 0.5 + 2 + 0.25 + 2 + 0.125)
        self.assertEqual(graph["seconds_per_step"], 1 + 1 + 0.5 + 2 + 0.25 + 2 + 0.125)
        self.assertEqual((sync["seconds_without_messages"], graph["seconds_without_messages"]), (2.75, 2))
        self.assertEqual(graph["exposed_seconds"], graph["seconds_per_step"] - 2)
        self.assertEqual(graph["kernel_seconds"], 1)
        self.assertEqual((graph["steps"], graph["all_steps"]), (10, 10))
        self.assertEqual(graph["traffic"], [{"link": "p2p", "messages": 20, "bytes": 160}])
        self.assertEqual(self.points("-n", "2", "--steps", "4")[0]["steps"], 4)
        self.assertEqual(self.points("-n", "2", "--set", "n=16", "--steps", "3")[0]["kernel_seconds"], 2)

    def test_the_critical_path_is_told(self):
        path = self.points("-n", "2")[0]["path"]
        self.assertEqual(path["steps"], 10)
        self.assertEqual([(stop["what"], stop["end_s"] - stop["begin_s"]) for stop in path["last_step"]],
                         [("relax", 2), ("send exchange v@10", 2.5), ("write of exchange v@10", 0.25),
                          ("write of exchange v@10", 2), ("wait of exchange v@10", 0.125)])
        across = [stop for stop in path["last_step"] if "to" in stop]
        self.assertEqual(len(across), 1)
        self.assertEqual({across[0]["rank"], across[0]["to"]}, {0, 1})
        code, out, err = self.simulate("-n", "2")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"time per step +6\.88 s   \(10 steps\)")
        self.assertRegex(out, r"without messages +2 s: 4\.88 s exposed \(70\.9 %\)")
        self.assertRegex(out, r"messages a step +2 by p2p \(16 B\)")
        self.assertRegex(out, r"(?m)^    [01] -> [01] +2 s  write of exchange v@10: under way$")

    def test_same_input_same_output(self):
        for more in [[], ["--jitter", "0.5", "--seed", "3"]]:
            first = self.simulate("-n", "3,7,40", *more)
            self.assertEqual(first[0], 0, first[2])
            self.assertEqual(first, self.simulate("-n", "3,7,40", *more))
        late = self.points("-n", "7", "--jitter", "0.5")[0]
        self.assertGreater(late["seconds_per_step"], self.points("-n", "7")[0]["seconds_per_step"])
        self.assertNotEqual(late["seconds"], self.points("-n", "7", "--jitter", "0.5", "--seed", "1")[0]["seconds"])

    def test_curves(self):
        code, out, err = self.simulate("-n", "1,2,8,64", "--mode", "all", "--svg", "curves.svg")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(re.findall(r"(?m)^(\w+) +(\d+) ", out[out.rindex("speed-up"):]),
                         [(mode, n) for mode in ("serial", "sync", "graph") for n in ("1", "2", "8", "64")])
        picture = xml.dom.minidom.parse(os.path.join(self.folder, "curves.svg"))
        texts = [node.firstChild.data for node in picture.getElementsByTagName("text")]
        self.assertIn("line <1>: time of a step over ranks", texts)
        self.assertLessEqual({"sync", "graph", "1", "2", "8", "64"}, set(texts))
        lines = picture.getElementsByTagName("polyline")
        self.assertEqual([len(line.getAttribute("points").split()) for line in lines], [4] * 6)
        code, _, err = self.simulate("-n", "2", "--svg", "no/folder.svg")
        self.assertEqual(code, 4)
        self.assertIn("[E410]", err)

    def test_a_network_between_nodes(self):
        point = self.points("-n", "5")[0]
        self.assertEqual((point["nodes"], point["devices"]), (3, 6))
        self.assertEqual([(t["link"], t["messages"]) for t in point["traffic"]], [("p2p", 40), ("network", 40)])

    def test_many_ranks_have_few_schedules(self):
        point = self.points("-n", "10000", "--steps", "3")[0]
        self.assertLessEqual(point["schedules"], 7)
        self.assertEqual(sum(t["messages"] for t in point["traffic"]), 3 * 2 * 9999)
        self.assertLess(point["memory_bytes"], 10000 * 3000)

    def test_what_is_refused(self):
        def expect(code, number, text, *words):
            got, out, err = peal("simulate", "line.yaml", *words, cwd=self.folder)
            self.assertEqual((got, out), (code, ""), err)
            self.assertRegex(err, rf"\[{number}\]")
            self.assertIn(text, err)

        known = ["--machine", "machine.yaml"]
        expect(3, "E430", "needs a machine file")
        expect(3, "E430", "no times for mode stream", *known, "--mode", "stream")
        self.write("bare.yaml", "machine: 1\n")
        expect(3, "E430", "bare.yaml has no times", "--machine", "bare.yaml")
        self.write("other.yaml", MACHINE.replace("relax:", "other:"))
        expect(3, "E430", "no times for task `relax`", "--machine", "other.yaml")
        self.write("one.yaml", MACHINE.replace(", network: {latency_s: 4, bytes_per_s: 2}", ""))
        expect(3, "E430", "no link `network`, which lies between ranks 1 and 2", "--machine", "one.yaml", "-n", "4")
        self.write("host.yaml", MACHINE.replace("accelerator: true", "accelerator: false"))
        expect(4, "E408", "mode graph", "--machine", "host.yaml", "--mode", "graph")
        for words in [["-n", "2,1"], ["-n", "2,"], ["-n", "0"], ["--jitter", "-1"], ["--jitter", "much"], ["--seed", "x"],
                      ["--steps", "few"]]:
            with self.subTest(words):
                expect(2, "E402", words[0].replace("-n", "--ranks"), *known, *words)
        code, _, err = peal("plan", "line.yaml", "-n", "1,2", cwd=self.folder)
        self.assertEqual(code, 2)
        self.assertIn("`peal simulate` takes several", err)

    def test_machines_that_come_along(self):
        spec = os.path.join(ROOT, "samples", "heat3d")
        for name in sorted(n for n in os.listdir(os.path.join(ROOT, "machines")) if n.endswith(".yaml")):
            with self.subTest(name):
                code, data, err = peal_json("simulate", spec, "--machine", os.path.join(ROOT, "machines", name), "-n", "2",
                                            "--mode", "all", "--json")
                self.assertEqual((code, err), (0, ""))
                self.assertGreaterEqual(len(data["points"]), 3)
                for point in data["points"]:
                    self.assertGreater(point["seconds_per_step"], point["seconds_without_messages"])


if __name__ == "__main__":
    main()
