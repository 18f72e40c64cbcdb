#!/usr/bin/env python3
"""Line coverage of what reads bytes from outside: specs, machine files, arrays, cache, answers, what
processes say to each other. Fails if a reader has less than its share.

    coverage.py BUILD       a build folder with -Db_coverage=true in which tests have run"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = 85  # percent of a reader's lines
READERS = """
base/array_file.c base/cache.c base/included.c base/kernel_source.c base/npy.c base/template.c
dsl/document.c dsl/document_json.c dsl/document_scan.c dsl/expression_parser.c dsl/list_parser.c dsl/machine.c
dsl/reader.c dsl/reader_kinds.c dsl/reader_parts.c dsl/reader_statements.c dsl/reader_text.c
runtime/control/collective.c runtime/control/descriptor.c runtime/control/service.c runtime/control/tree.c
runtime/control/wire.c runtime/select/answer.c
""".split()


def lines_of(build, notes):
    """{file: {line: how often}} of some object files, by gcov."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcov", "--json-format", *[str(n) for n in notes]], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for path in Path(folder).glob("*.gcov.json.gz"):
            with gzip.open(path, "rt", encoding="utf-8") as text:
                data = json.load(text)
            for one in data["files"]:
                name = str((build / one["file"]).resolve())
                counts = found.setdefault(name, {})
                for line in one["lines"]:
                    number = line["line_number"]
                    counts[number] = max(counts.get(number, 0), line["count"])
    return found


def main():
    build = Path(sys.argv[1]).resolve()
    root = Path(__file__).resolve().parent.parent
    bad = []
    for reader in READERS:
        notes = [n for n in build.rglob("*.gcno") if n.name.endswith(f"_{Path(reader).name}.gcno") or
                 n.name == f"{Path(reader).name}.gcno"]
        notes = [n for n in notes if n.with_suffix(".gcda").exists()]
        counts = lines_of(build, notes).get(str(root / reader), {}) if notes else {}
        share = 100 * sum(1 for c in counts.values() if c) / len(counts) if counts else 0
        print(f"{reader:36}{len(counts):6} lines{share:7.1f} %{'' if share >= LEAST else '  TOO LITTLE'}")
        if share < LEAST:
            bad.append(reader)
            missing = sorted(n for n, c in counts.items() if not c)
            print(f"    never run: {', '.join(map(str, missing[:60]))}")
    print(f"{len(READERS) - len(bad)} of {len(READERS)} readers have at least {LEAST} %")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
