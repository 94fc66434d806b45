"""What this interpreter can do, and what it lacks."""

import importlib.util
import platform
import sys

from . import _interpreters
from ._extisolate import InterpreterError


def _packages() -> str:
    names = ("cloudpickle", "numpy")
    return ", ".join(n for n in names if importlib.util.find_spec(n) is not None) or "none"


def main() -> int:
    """Print it, and return the exit status."""
    print(
        f"interpreter  {sys.executable} ({platform.python_implementation()} "
        f"{platform.python_version()})"
    )
    try:
        print("libpython   ", _interpreters._find()["libpython"])
        with _interpreters.create() as interp:
            version = interp.call(platform.python_version)
    except InterpreterError as e:
        print(f"contexts     no: {e}")
        return 1
    print(f"contexts     yes: one was started, with CPython {version}, and closed")
    print(f"useful too   {_packages()}")
    return 0
