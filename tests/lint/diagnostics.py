#!/usr/bin/env python3
# The registry of diagnostics (base/diagnostics.def and base/diagnostics/*.def) and the code agree. Each number has one
# name and each name one number; C code outside the registry says PEAL_E_NAME, never the number, and each name is used
# there. Each diagnostic has a test that provokes it: the number or the name stands in a test's source, or in the head of
# a broken spec, outside of comments and of tests that only print its page.
#   diagnostics.py ROOT [--self-check]
import os
import re
import sys

# Numbers that no test can provoke, each with its reason. An entry that a test does name is a mistake.
EXCEPTIONS = {}
ENTRY = re.compile(r"PEAL_DIAGNOSTIC\((E\d{3}), (\w+),")
COMMENT = {".c": re.compile(r"/\*.*?\*/|//[^\n]*", re.S), ".py": re.compile(r"^\s*#.*$", re.M)}
ABSENT = re.compile(r"^.*(?:NotIn|NotRegex|assert_null|!=).*$", re.M)  # says that a number is not reported
EXPLAIN = re.compile(r"""["']explain["'], ["']\w+["']""")
NAME = re.compile(r"\bPEAL_E_(\w+)")
# Strings, quotes and brackets may hold what users see.
QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`')
SKIPPED = {".git", "subprojects"}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read()


def declared(root):
    """(file, number, name) of each entry of the registry."""
    base = os.path.join(root, "base")
    names = ["diagnostics.def"] + sorted(os.path.join("diagnostics", n) for n in
                                         os.listdir(os.path.join(base, "diagnostics")) if n.endswith(".def"))
    return [(f"base/{name}", *entry) for name in names for entry in ENTRY.findall(read(os.path.join(base, name)))]


def sources(root):
    """Path and text of each file of C."""
    for folder, folders, names in os.walk(root):
        folders[:] = [n for n in folders if n not in SKIPPED and not n.startswith("build")]
        for name in names:
            if os.path.splitext(name)[1] in (".c", ".h", ".cu", ".cuh"):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, root), read(path)


def numbers_in_code(path, text):
    """(line, number) where C code says a number and should say the name. What users read may: comments of public
    headers, strings, quotes, [E001]."""
    is_public = path.startswith("include" + os.sep)
    spaces = QUOTED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    pattern = r"\bPEAL_(E\d{3})\b" if is_public else r"(?<![A-Za-z0-9_\[])(?:PEAL_)?(E\d{3})\b"
    return [(spaces.count("\n", 0, m.start()) + 1, m[1]) for m in re.finditer(pattern, spaces)]


def numbers_in(path, text, number_of):
    """The numbers that a test names. Of a spec: what its head says it expects."""
    ending = os.path.splitext(path)[1]
    if ending == ".yaml":
        return set(re.findall(r"^# expect: (E\d{3})\b", text, re.M))
    text = ABSENT.sub("", text)
    text = EXPLAIN.sub("", COMMENT[ending].sub("", text) if ending in COMMENT else text)
    by_name = {number_of[name] for name in NAME.findall(text) if name in number_of}
    return by_name | set(re.findall(r"(?<![A-Za-z0-9])(E\d{3})\b", text))


def provoked(root, number_of):
    found = set()
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        if os.path.basename(folder) == "lint":
            continue
        for name in names:
            if os.path.splitext(name)[1] in (".c", ".py", ".sh", ".yaml"):
                path = os.path.join(folder, name)
                found |= numbers_in(path, read(path), number_of)
    return found


def entries_wrong(entries):
    for what, column in (("number", 1), ("name", 2)):
        seen = {}
        for entry in entries:
            if entry[column] in seen:
                yield f"{entry[0]}: the {what} {entry[column]} is also in {seen[entry[column]]}"
            seen.setdefault(entry[column], entry[0])
    for file, number, name in entries:
        if not re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", name) or re.fullmatch(r"E\d+", name):
            yield f"{file}: {number}: {name} is no name"


def code_wrong(entries, files):
    name_of = {number: name for _, number, name in entries}
    used = set()
    for path, text in files:
        for line, number in numbers_in_code(path, text):
            yield f"{path}:{line}: say PEAL_E_{name_of.get(number, '...')}, not {number}"
        if not path.startswith("tests" + os.sep):
            used |= set(NAME.findall(COMMENT[".c"].sub("", text)))
    for file, number, name in entries:
        if name not in used:
            yield f"{file}: nothing reports PEAL_E_{name} ({number})"


def tests_wrong(entries, named, exceptions):
    file_of = {number: file for file, number, _ in entries}
    for number in sorted(file_of):
        if number not in named and number not in exceptions:
            yield f"{file_of[number]}: no test provokes {number}"
    for number in sorted(exceptions):
        if number in named:
            yield f"tests/lint/diagnostics.py: {number} is an exception, but a test names it"
        if number not in file_of:
            yield f"tests/lint/diagnostics.py: {number} is an exception, but not declared"


def self_check():
    known = [("a.def", "E001", "BAD"), ("a.def", "E002", "WORSE")]
    assert list(entries_wrong(known)) == []
    assert "number E001" in next(entries_wrong(known + [("b.def", "E001", "WORST")]))
    assert "name BAD" in next(entries_wrong(known + [("b.def", "E003", "BAD")]))
    assert "no name" in next(entries_wrong([("b.def", "E003", "E004")]))

    good = ("base/x.c", "peal_report(PEAL_E_BAD); peal_report(PEAL_E_WORSE); /* `peal explain E001` */")
    assert list(code_wrong(known, [good])) == []
    assert "E002" in next(code_wrong(known, [("base/x.c", "/* PEAL_E_WORSE */ PEAL_E_BAD")]))
    assert "E002" in next(code_wrong(known, [("base/x.c", "PEAL_E_BAD"), ("tests/x.c", "PEAL_E_WORSE")]))
    assert list(code_wrong(known, [good, ("base/y.c", "\n/* E002 */")])) == ["base/y.c:2: say PEAL_E_WORSE, not E002"]
    assert numbers_in_code("tests/x.c", "PEAL_E001 \"[E002]\" FE003 0xE004") == [(1, "E001")]
    assert numbers_in_code("include/x.h", "/* fails (E001) */ PEAL_E002") == [(1, "E002")]

    assert list(tests_wrong(known, {"E001", "E002"}, {})) == []
    assert "E002" in next(tests_wrong(known, {"E001"}, {}))
    assert list(tests_wrong(known, {"E001"}, {"E002": "why"})) == []
    assert len(list(tests_wrong(known, {"E001", "E002"}, {"E002": "why", "E003": "why"}))) == 2
    number_of = {name: number for _, number, name in known}
    assert numbers_in("x.c", "/* PEAL_E_BAD */ PEAL_E_WORSE, \"E003 text\" // E004\n FE005", number_of) == {"E002", "E003"}
    assert numbers_in("x.py", "# E001\nassertIn('[E002]')\npeal('explain', 'E003')", number_of) == {"E002"}
    assert numbers_in("x.py", "assertNotIn('[E001]', err)\nassertIn('[E002]')", number_of) == {"E002"}
    assert numbers_in("x.yaml", "# expect: E001 1:2\n# E002\n", number_of) == {"E001"}


def main():
    if "--self-check" in sys.argv:
        self_check()
        return 0
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    entries = declared(root)
    named = provoked(root, {name: number for _, number, name in entries})
    found = [*entries_wrong(entries), *code_wrong(entries, sources(root)), *tests_wrong(entries, named, EXCEPTIONS)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
