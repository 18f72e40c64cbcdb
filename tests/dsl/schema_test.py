"""Specs, as peal's own reader turns them into JSON, are valid by peal's own schema; broken ones are not.

schema_test.py DESCRIBE SPEC-OR-FOLDER ... ; a spec whose name ends in .broken.yaml must be refused.
Of a folder the specs one level below are taken."""
import glob
import json
import os
import subprocess
import sys

import jsonschema


def output(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def expand(path):
    return sorted(glob.glob(path + "/*/*.yaml")) if os.path.isdir(path) else [path]


def main(describe, paths):
    specs = [spec for path in paths for spec in expand(path)]
    schema = output(describe, "schema")
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failed = 0
    for spec in specs:
        errors = list(validator.iter_errors(output(describe, "json", spec)))
        broken = spec.endswith(".broken.yaml")
        print(f"{spec}: {len(errors)} errors")
        for error in errors if not broken else []:
            print("   ", error.json_path, error.message[:300])
        failed += bool(errors) != broken
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
