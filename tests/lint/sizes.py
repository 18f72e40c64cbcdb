#!/usr/bin/env python3
# Checks that files stay below 500 lines (tests 750), functions below 80, and that each file begins with a
# comment that says what it does.
#
#   sizes.py ROOT              check the tree; exit 1 and a line for each violation
#   sizes.py ROOT --self-check make files that are too long, and see that they are found
import os
import sys
import tempfile

FILE_LINES = 500
TEST_LINES = 750  # one program a module, cases one after the other
FUNCTION_LINES = 80
SKIPPED = {".git", "subprojects"}
COMMENTS = {".c": "/*", ".h": "/*", ".cu": "/*", ".cuh": "/*", ".py": ("#", '"""'), ".sh": "#", ".build": "#"}
# Tables of text: one entry a diagnostic or a key.
TABLES = (".def",)


def functions(lines):
    """(first line, length) of each function: the formatter puts its braces alone at column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start + 1
            start = None


def problems_of(path, lines):
    kind = os.path.splitext(path)[1]
    if kind in TABLES:
        return
    limit = TEST_LINES if path.startswith("tests/") else FILE_LINES
    if len(lines) > limit:
        yield f"{path}: {len(lines)} lines, more than {limit}"
    first = next((line for line in lines if line and not line.startswith("#!")), "")
    if not first.startswith(COMMENTS[kind]):
        yield f"{path}:1: begin with a comment that says what the file does"
    if kind in (".c", ".h", ".cu", ".cuh"):
        for start, length in functions(lines):
            if length > FUNCTION_LINES:
                yield f"{path}:{start}: a function of {length} lines, more than {FUNCTION_LINES}"


def check(root):
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("build"))
        for name in sorted(files):
            if os.path.splitext(name)[1] not in COMMENTS:
                continue
            full = os.path.join(folder, name)
            with open(full, encoding="utf-8", errors="replace") as source:
                lines = source.read().splitlines()
            found.extend(problems_of(os.path.relpath(full, root), lines))
    return found


def self_check():
    long_function = "/* f */\nint f(void)\n{\n" + "    f();\n" * 80 + "}\n"
    files = {"long_file.c": "/* x */\n" + "int a;\n" * 500, "long_function.c": long_function,
             "no_comment.c": "int a;\n", "fine.c": "/* x */\nint f(void)\n{\n    return 1;\n}\n"}
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            with open(os.path.join(root, name), "w", encoding="utf-8") as out:
                out.write(text)
        found = "\n".join(check(root))
    wrong = [n for n in files if (n in found) != (n != "fine.c")]
    for name in wrong:
        print(f"self-check: wrong verdict on {name}")
    return 1 if wrong else 0


def main(arguments):
    if "--self-check" in arguments:
        return self_check()
    found = check(arguments[0])
    print("\n".join(found) if found else "sizes: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
