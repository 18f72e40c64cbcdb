#!/usr/bin/env python3
# Every number in base/diagnostics.def and base/diagnostics/*.def has a test that provokes it: the number stands in a test's source or in the
# head of a broken spec, outside of comments and of tests that only print its page.
#   diagnostics.py ROOT [--self-check]
import os
import re
import sys

# Numbers that no test can provoke, each with its reason. An entry that a test does name is a mistake.
EXCEPTIONS = {}
ENTRY = re.compile(r"PEAL_DIAGNOSTIC\((E\d{3}),")
COMMENT = {".c": re.compile(r"/\*.*?\*/|//[^\n]*", re.S), ".py": re.compile(r"^\s*#.*$", re.M)}
ABSENT = re.compile(r"^.*(?:NotIn|NotRegex|assert_null|!=).*$", re.M)  # says that a number is not reported
EXPLAIN = re.compile(r"""["']explain["'], ["']E\d{3}["']""")


def declared(root):
    base = os.path.join(root, "base")
    names = ["diagnostics.def"] + sorted(os.path.join("diagnostics", n) for n in
                                         os.listdir(os.path.join(base, "diagnostics")) if n.endswith(".def"))
    return {number: name for name in names for number in ENTRY.findall(read(os.path.join(base, name)))}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read()


def numbers_in(path, text):
    """The numbers that a test names. Of a spec: what its head says it expects."""
    ending = os.path.splitext(path)[1]
    if ending == ".yaml":
        return set(re.findall(r"^# expect: (E\d{3})\b", text, re.M))
    text = ABSENT.sub("", text)
    text = EXPLAIN.sub("", COMMENT[ending].sub("", text) if ending in COMMENT else text)
    return set(re.findall(r"(?<![A-Za-z0-9])(?:PEAL_)?(E\d{3})\b", text))


def provoked(root):
    found = set()
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        if os.path.basename(folder) == "lint":
            continue
        for name in names:
            if os.path.splitext(name)[1] in (".c", ".py", ".sh", ".yaml"):
                path = os.path.join(folder, name)
                found |= numbers_in(path, read(path))
    return found


def complaints(all_numbers, named, exceptions):
    for number in sorted(all_numbers):
        if number not in named and number not in exceptions:
            yield f"base/{all_numbers[number]}: no test provokes {number}"
    for number in sorted(exceptions):
        if number in named:
            yield f"tests/lint/diagnostics.py: {number} is an exception, but a test names it"
        if number not in all_numbers:
            yield f"tests/lint/diagnostics.py: {number} is an exception, but not declared"


def self_check():
    known = {"E001": "a.def", "E002": "a.def"}
    assert list(complaints(known, {"E001", "E002"}, {})) == []
    assert "E002" in next(complaints(known, {"E001"}, {}))
    assert list(complaints(known, {"E001"}, {"E002": "why"})) == []
    assert len(list(complaints(known, {"E001", "E002"}, {"E002": "why", "E003": "why"}))) == 2
    assert numbers_in("x.c", "/* E001 */ PEAL_E002, \"E003 text\" // E004\n FE005 E0066") == {"E002", "E003"}
    assert numbers_in("x.py", "# E001\nassertIn('[E002]')\npeal('explain', 'E003')") == {"E002"}
    assert numbers_in("x.py", "assertNotIn('[E001]', err)\nassertIn('[E002]')") == {"E002"}
    assert numbers_in("x.yaml", "# expect: E001 1:2\n# E002\n") == {"E001"}


def main():
    if "--self-check" in sys.argv:
        self_check()
        return 0
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = list(complaints(declared(root), provoked(root), EXCEPTIONS))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
