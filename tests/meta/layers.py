#!/usr/bin/env python3
"""layers.py [ROOT]: prints each include that breaks the rules of rooms.py.

Includes are named from the top folder.  The public header, <extisolate.h>, is open to all, and is all that
cli/, runtime/ and tests/api/ see of the library.
"""

import os
import re
import sys

import rooms

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]*)"')
API_TESTS = re.compile(r"tests/(support|isolation)/\w+\.h|tests/unit/pe/pe_toy\.h")


def files(root):
    for top in ("include", "base", "elf", "macho", "pe", "loader", "link", "runtime", "cli", "bindings", "tests", "bench"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def allowed(path, name):
    if path.startswith("tests/api/"):
        return API_TESTS.fullmatch(name) is not None
    if path.startswith(("tests/", "bench/")):
        return True
    return rooms.room_of(name) is not None and os.path.normpath(name) == name and rooms.may_use(path, name)


def faults(root):
    for path in sorted(files(root)):
        if not path.startswith(("tests/", "bench/")) and rooms.room_of(path) is None:
            yield f"{path}: is in no room that tests/meta/rooms.py knows"
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(f, 1):
                m = INCLUDE.match(line)
                if not m:
                    continue
                name = m.group(1)
                if not allowed(path, name):
                    yield f'{path}:{number}: must not include "{name}"'
                elif not os.path.isfile(os.path.join(root, name)):
                    yield f'{path}:{number}: "{name}" is not named from the top folder'


found = list(faults(sys.argv[1] if len(sys.argv) > 1 else "."))
print(*found, sep="\n", end="\n" if found else "")
sys.exit(bool(found))
