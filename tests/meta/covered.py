#!/usr/bin/env python3
"""covered.py [ROOT]: prints each source without a test of its own that tests/covered.txt does not name one for,
and each line there that does not hold.

A source has a test of its own if tests/unit mirrors it: loader/store/manifest.c and
tests/unit/store/test_manifest.c, or test_manifest_<aspect>.c.  A line of covered.txt is `SOURCE: TEST...`.
"""

import os
import re
import sys

ROOMS = ("base", "elf", "macho", "pe", "loader", "runtime", "cli")


def sources(root):
    for top in ROOMS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(".c"):
                    yield os.path.relpath(os.path.join(folder, name), root)


def has_own_test(root, source):
    folder, name = os.path.split(source)
    mirror = os.path.join(root, "tests/unit", re.sub(r"^loader/", "", folder))
    pattern = re.compile(rf"test_{re.escape(name[:-2])}(_\w+)?\.(c|sh)")
    return os.path.isdir(mirror) and any(map(pattern.fullmatch, os.listdir(mirror)))


def faults(root):
    named = {}
    path = os.path.join(root, "tests/covered.txt")
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                source, _, tests = line.partition(":")
                named[source] = tests.split()
    wanted = set(sources(root))
    for source, tests in named.items():
        if source not in wanted:
            yield f"{source}: there is no such source"
        elif has_own_test(root, source):
            yield f"{source}: has a test of its own"
        elif not tests:
            yield f"{source}: no test is named"
        for test in tests:
            if not os.path.isfile(os.path.join(root, test)):
                yield f"{source}: there is no {test}"
    for source in sorted(wanted - set(named)):
        if not has_own_test(root, source):
            yield f"{source}: has no test of its own, and tests/covered.txt names none"


if __name__ == "__main__":
    found = list(faults(sys.argv[1] if len(sys.argv) > 1 else "."))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
