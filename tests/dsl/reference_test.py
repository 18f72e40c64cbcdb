"""docs/spec-reference.md is what the key table says. reference_test.py DESCRIBE PAGE [--update]"""
import subprocess
import sys

describe, page = sys.argv[1:3]
now = subprocess.run([describe, "reference"], check=True, capture_output=True).stdout
if "--update" in sys.argv:
    with open(page, "wb") as file:
        file.write(now)
with open(page, "rb") as file:
    if file.read() != now:
        sys.exit(f"{page} is old; run this test with --update")
