"""``python -m extisolate``: the program extisolate, and ``doctor``."""

from . import _program

_program.main()
