"""The program extisolate, which comes with the package."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Become the program."""
    program = Path(__file__).with_name("bin") / "extisolate"
    os.execv(program, ["extisolate", *sys.argv[1:]])
