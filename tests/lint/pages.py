#!/usr/bin/env python3
# Checks that pages name what there is: a link leads to a file, `folder/file.c` is in the tree (the end of a
# path is enough), and `peal_...` is a word of some source. Pages are the tree's Markdown files.
#
#   pages.py ROOT              check the tree; exit 1 and a line for each name that is nowhere
#   pages.py ROOT --self-check see that wrong names are found
import os
import re
import sys
import tempfile

SKIPPED = {".git", "subprojects", "node_modules"}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w./-]+\.(?:c|h|py|cu|cuh|def|md|pml|yaml))`")
WORD = re.compile(r"`(peal_\w+)(?:\(\))?`")
NUMBERED = re.compile(r"_(\d+|N|nD)$")  # a kernel's name as it is printed
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SOURCES = (".c", ".h", ".cu", ".cuh", ".cc", ".py", ".map", ".build", ".yaml")
# Files that a reader writes, that a command makes, or that are CUDA's.
ELSEWHERE = {"heat.c", "heat.yaml", "here.yaml", "kernels.c", "cuda.h", "nvrtc.h", "math.h", "relax.cu",
             "tune-KEY.yaml"}
# Pages with names of the past.
OLD = {"CHANGELOG.md", os.path.join("bench", "EXPERIMENTS.md")}


def tree(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED and not f.startswith("build")]
        for file in files:
            yield os.path.relpath(os.path.join(folder, file), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def problems(root):
    paths = sorted(tree(root))
    ends = {"/" + path for path in paths}
    words = set()
    for path in paths:
        if path.endswith(SOURCES):
            words.update(re.findall(r"\bpeal_\w+", read(root, path)))
    for page in (path for path in paths if path.endswith(".md")):
        text = read(root, page)
        for target in LINK.findall(FENCE.sub("", text)):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
                yield f"{page}: the link `{target}` leads nowhere"
        if page in OLD:
            continue
        for name in sorted(set(FILE.findall(text)) - ELSEWHERE):
            if not any(end.endswith("/" + name.removeprefix("../")) for end in ends):
                yield f"{page}: there is no file `{name}`"
        for name in sorted(set(WORD.findall(text)) - words):
            if NUMBERED.search(name) or any(word.startswith(name) for word in words if name.endswith("_")):
                continue
            yield f"{page}: no source has the word `{name}`"


def self_check():
    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, "a.c"), "w", encoding="utf-8") as file:
            file.write("int peal_there;\n")
        with open(os.path.join(root, "page.md"), "w", encoding="utf-8") as file:
            file.write("`a.c` [a](a.c) `peal_there` [b](b.c) `c.h` `peal_gone`\n")
        return len(list(problems(root))) == 3


def main():
    if "--self-check" in sys.argv:
        return 0 if self_check() else 1
    found = list(problems(sys.argv[1]))
    print("\n".join(found + [f"pages: {len(found)} problems"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
