#!/usr/bin/python3
"""Does jobs, as those for pe_rewrite, with delvewheel's own function, in one process.

    delvewheel.py [--strip] <JOBS

Prints `made SOURCE COPY MICROSECONDS` or `refused SOURCE ERROR REASON`, with tabs between.  delvewheel
edits the file that it is given, so that the copy comes first, for which the time does not count.  It
knows no names but those of imports: with others in a job it does the rest of it."""

import os
import shutil
import sys
import time

# Its own folder would stand before the package of that name.
sys.path = [p for p in sys.path if os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))]
from delvewheel import _dll_utils  # noqa: E402


def replace(copy, wanted, strip):
    """As its command replace-needed does it."""
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
