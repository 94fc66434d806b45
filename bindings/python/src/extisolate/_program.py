"""The program extisolate, which comes with the package, and what the package adds to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import _doctor

_HELP = (["-h"], ["--help"], ["help"])
_ADDED = """
of the Python package:
  doctor     tell whether this Python can have interpreters, and what it lacks
"""


def main() -> None:
    """Become the program, but for ``doctor``."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        sys.exit(_doctor.main(arguments[1:]))
    program = str(Path(__file__).with_name("bin") / "extisolate")
    if arguments not in _HELP:
        os.execv(program, ["extisolate", *arguments])
    status = subprocess.call([program, *arguments])
    if status == 0:
        print(_ADDED, end="")
    sys.exit(status)
