"""Specs, as peal's own reader turns them into JSON, are valid by peal's own schema; broken ones are not.

schema_test.py DESCRIBE SPEC ... ; a spec whose name ends in .broken.yaml must be refused."""
import json
import subprocess
import sys

import jsonschema


def output(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main(describe, specs):
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
