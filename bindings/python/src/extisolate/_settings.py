"""What an interpreter is started with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, TypedDict, Union

from . import _extisolate, _functions

if TYPE_CHECKING:
    from typing import Protocol

    class Writable(Protocol):
        """A text file, as far as output needs one."""

        def write(self, text: str, /) -> object:
            """Write text."""

    Output = Union[Writable, Callable[[str], object]]


class Settings(TypedDict, total=False):
    """Keywords of ``create()`` and of pools.  What is not given is as in the interpreter that asks.

    ``argv``, ``path`` and ``executable`` are what the module ``sys`` has under these names.
    ``isolated``, ``use_environment``, ``utf8_mode``, ``dev_mode``, ``optimization_level`` and
    ``hash_seed`` are those of CPython's ``PyConfig``, as by the options ``-I``, ``-E``,
    ``-X utf8``, ``-X dev``, ``-O``, and the variable ``PYTHONHASHSEED``.

    ``stdout`` and ``stderr`` are called with each line that is printed, a str, or have a method
    ``write`` that is: in the interpreter that asks, on the thread that prints, so maybe on several
    at once.  What they raise is logged.
    """

    argv: Sequence[str]
    path: Sequence[str]
    executable: str
    isolated: bool
    use_environment: bool
    utf8_mode: bool
    dev_mode: bool
    optimization_level: int
    hash_seed: int
    stdout: Output
    stderr: Output


def check(settings: Settings) -> None:
    """Refuse what is no setting, by TypeError."""
    for name in settings:
        if name not in Settings.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}")
    for name in ("argv", "path"):
        given: Any = settings.get(name, ())
        if isinstance(given, str) or not all(isinstance(item, str) for item in given):
            raise TypeError(f"{name} must be a sequence of str")
    if not isinstance(settings.get("executable", ""), str):
        raise TypeError("executable must be str")


def _own_numbers() -> dict[str, int]:
    flags = sys.flags
    own = {
        "isolated": flags.isolated,
        "utf8_mode": flags.utf8_mode,
        "dev_mode": int(flags.dev_mode),
        "optimization_level": flags.optimize,
    }
    numbers = {name: value for name, value in own.items() if value}
    if flags.ignore_environment:
        numbers["use_environment"] = 0
    return numbers


def numbers(settings: Settings) -> dict[str, int]:
    """Give those that CPython is initialised with, by their names in PyConfig."""
    found = _own_numbers()
    for name in ("isolated", "use_environment", "utf8_mode", "dev_mode", "optimization_level"):
        given: Any = settings.get(name)
        if given is not None:
            found[name] = int(given)
    seed = settings.get("hash_seed")
    if seed is not None:
        if not 0 <= seed < 1 << 32:
            raise ValueError(f"hash_seed must be from 0 to 4294967295, got {seed}")
        found.update(use_hash_seed=1, hash_seed=seed)
    return found


_START = """\
import sys
sys._extisolate = ({core}, {id})
sys.path[:] = {own_path!r}
sys.modules.pop("extisolate", None)  # what contexts have without this package
import extisolate._dispatch, extisolate._functions
extisolate._functions.main_path = {main!r}
vars(extisolate).update({place!r})
sys.path[:] = {path!r}
sys.argv[:] = {argv!r}
sys.executable = {executable!r}
for _stream in (sys.stdout, sys.stderr):
    if hasattr(_stream, "reconfigure") and not _stream.write_through:
        _stream.reconfigure(line_buffering=True)
del _stream, sys, extisolate
"""


def source(id: int, settings: Settings, place: dict[str, int]) -> str:
    """Give what the new interpreter runs first."""
    own_path = [p for p in sys.path if isinstance(p, str)]
    return _START.format(
        core=_extisolate.core(),
        id=id,
        own_path=own_path,
        path=list(settings.get("path", own_path)),
        argv=list(settings.get("argv", sys.argv)),
        executable=settings.get("executable", sys.executable),
        main=_functions.main_file(),
        place=place,
    )
