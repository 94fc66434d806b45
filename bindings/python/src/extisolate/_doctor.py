"""What this interpreter can do, and what it lacks."""

from __future__ import annotations

import importlib.util
import platform
import sys

from . import _extisolate, _interpreters
from ._extisolate import InterpreterError


def _packages() -> str:
    names = ("cloudpickle", "numpy")
    return ", ".join(n for n in names if importlib.util.find_spec(n) is not None) or "none"


def main(arguments: list[str]) -> int:
    """Print it, and return the exit status."""
    if arguments:
        wrong = arguments not in (["-h"], ["--help"])
        print("usage: extisolate doctor", file=sys.stderr if wrong else sys.stdout)
        return 2 if wrong else 0
    print(
        f"interpreter  {sys.executable} ({platform.python_implementation()} "
        f"{platform.python_version()})"
    )
    try:
        print("libpython   ", _interpreters._find()["libpython"])
        with _interpreters.create() as interp:
            version = interp.call(platform.python_version)
            shared = _extisolate.why_no_directory(interp.id)
    except InterpreterError as e:
        print(f"contexts     no: {e}")
        return 1
    print(f"contexts     yes: one was started, with CPython {version}, and closed")
    if shared is None:
        print("directory    each program that run() starts has its own, and its own umask")
    else:
        print(f"directory    all programs that run() starts share one: {shared}")
    print(f"useful too   {_packages()}")
    return 0
