# The JSON Schema accepts every sample and every valid spec, as peal's own reader understands them,
# and refuses keys that don't exist. Skipped where python3-jsonschema is missing.
import glob
import json
import os
import sys
import unittest

from common import ROOT, SPECS, main, peal

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is missing")
    sys.exit(77)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code, out, err = peal("schema")
        assert code == 0, err
        cls.schema = json.loads(out)

    def document(self, path):
        code, out, err = peal("check", path, "--print-json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_it_is_a_schema(self):
        self.assertIn("draft-07", self.schema["$schema"])
        jsonschema.Draft7Validator.check_schema(self.schema)

    def test_samples_and_valid_specs(self):
        paths = [*glob.glob(os.path.join(ROOT, "samples", "*", "*.yaml")),
                 *glob.glob(os.path.join(SPECS, "valid", "*.yaml")), *glob.glob(os.path.join(SPECS, "run", "*.yaml"))]
        self.assertGreater(len(paths), 3)
        for path in sorted(paths):
            with self.subTest(os.path.relpath(path, ROOT)):
                jsonschema.validate(self.document(path), self.schema)

    def test_unknown_keys_are_refused(self):
        for name in ["unknown-key", "unknown-key-in-field", "unknown-key-in-task"]:
            with self.subTest(name), self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(self.document(os.path.join(SPECS, "broken", name + ".yaml")), self.schema)

    def test_machine_files(self):
        code, out, err = peal("schema", "machine")
        self.assertEqual(code, 0, err)
        schema = json.loads(out)
        jsonschema.Draft7Validator.check_schema(schema)
        self.assertEqual(sorted(schema["properties"]), ["accelerator", "cache_bytes", "devices", "kernels", "links", "machine",
                                                        "modes", "nodes", "processes", "ranks", "workers"])
        jsonschema.validate({"machine": 1, "ranks": 4}, schema)
        times = {"machine": 1, "modes": {"sync": {"launch_s": 1e-6}}, "kernels": {"default": {"per_byte_s": 1e-12}},
                 "links": {"p2p": {"bytes_per_s": 1, "shared": "node"}}}
        jsonschema.validate(times, schema)
        for path in sorted(glob.glob(os.path.join(ROOT, "machines", "*.yaml"))):
            with self.subTest(os.path.relpath(path, ROOT)):
                jsonschema.validate(self.document(path), schema)
        for wrong in [{}, {"machine": 1, "rank": 4}, {"machine": 1, "ranks": 0}, {"machine": 1, "ranks": "4"},
                      {**times, "modes": {"fast": {}}}, {**times, "modes": {"sync": {"launch_s": -1}}},
                      {**times, "links": {"p2p": {}}}, {**times, "links": {"p2p": {"bytes_per_s": 0}}},
                      {**times, "kernels": {"default": {"per_flop_s": 1}}}]:
            with self.subTest(wrong), self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, schema)


if __name__ == "__main__":
    main()
