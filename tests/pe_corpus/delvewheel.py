#!/usr/bin/python3
"""Does jobs like those of pe_rewrite with delvewheel's own function, in one process.

    delvewheel.py [--strip] <JOBS

Prints `made SOURCE COPY MICROSECONDS` or `refused SOURCE ERROR REASON`, separated by tabs.
delvewheel edits its file in place, so the file is copied first, which is not timed.  It changes
only the names of imports; other names in a job are ignored."""

import os
import shutil
import sys
import time

# This script's folder would hide the package of the same name.
sys.path = [p for p in sys.path if os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))]
from delvewheel import _dll_utils  # noqa: E402


def replace(copy, wanted, strip):
    """Works like delvewheel's command replace-needed."""
    needed = {x.lower() for x in _dll_utils.get_direct_needed(copy)}
    names = {old: new for old, new in wanted.items() if old in needed}
    if not names:
        raise ValueError("Dependency %s is not needed" % next(iter(wanted)))
    _dll_utils.replace_needed(copy, list(names), names, strip, True)


def main():
    strip = "--strip" in sys.argv
    for line in sys.stdin:
        source, copy, _, names = line.rstrip("\n").split("\t")
        wanted = {}
        for name in names.split("|"):
            old, new = name.split("=")
            wanted.setdefault(old.lower(), new)
        shutil.copyfile(source, copy)
        start = time.perf_counter()
        try:
            replace(copy, wanted, strip)
            took = time.perf_counter() - start
            print("made\t%s\t%s\t%.0f" % (source, copy, took * 1e6))
        except Exception as e:
            os.unlink(copy)
            print("refused\t%s\t%s\t%s" % (source, type(e).__name__, " ".join(str(e).split())))


main()
