"""docs/spec-reference.md is what the key table says, docs/diagnostics.md what the lists of diagnostics say.
reference_test.py DESCRIBE reference|diagnostics PAGE [--update]"""
import subprocess
import sys

describe, what, page = sys.argv[1:4]
now = subprocess.run([describe, what], check=True, capture_output=True).stdout
if "--update" in sys.argv:
    with open(page, "wb") as file:
        file.write(now)
with open(page, "rb") as file:
    if file.read() != now:
        sys.exit(f"{page} is old; run this test with --update")
