"""Functions that interpreters are called with again and again, and cannot import.

They travel by value, which takes a hundred times as long as the call.  Where that gives the same
function each time, it is kept over there the second time, and called by a name from then on.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from types import CodeType, FunctionType

from . import _extisolate, _functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    # Where it is kept, as what; functions, names and values of their attributes, one after the
    # other; the names that they use of their module, with the values, the names that it has not,
    # its dict.  The extension module compares all that before each call (ext/target.c).
    Entry = tuple[
        set[int],
        bytes,
        tuple[Any, ...],
        tuple[str, ...],
        tuple[Any, ...],
        tuple[str, ...],
        dict[str, Any],
    ]

# How many this interpreter has others keep; they are kept as long as it lives.
_LIMIT = 1024

# Code with these may change what it has of its own, or look at it.
_CHANGES_GLOBALS = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CHANGES_ATTRIBUTES = ("STORE_ATTR", "DELETE_ATTR")
_LOOKS = {"globals", "vars", "eval", "exec", "setattr", "delattr", "__dict__", "__globals__"}
_LOOKS |= {"f_globals", "_getframe", "currentframe", "stack", "__code__", "__defaults__"}

_seen: weakref.WeakSet[FunctionType] = weakref.WeakSet()
_numbers = itertools.count()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _has(function: FunctionType, names: tuple[str, ...]) -> bool:
    import opcode

    opcodes = {opcode.opmap[name] for name in names}
    return any(op in opcodes for c in _codes(function.__code__) for op in c.co_code[::2])


def _names(function: FunctionType) -> set[str]:
    return {name for c in _codes(function.__code__) for name in c.co_names}


def _is_constant(function: FunctionType) -> bool:
    """Tell whether each call finds the function itself as the first one did."""
    return (
        not function.__closure__
        and not function.__kwdefaults__
        and not function.__dict__
        and not getattr(function, "__type_params__", ())
        and _functions.plain_annotations(function) is not None
        and all(type(v) in _functions.PLAIN for v in function.__defaults__ or ())
        and not _names(function) & _LOOKS
        and not _has(function, _CHANGES_GLOBALS)
    )


def _family(function: FunctionType) -> list[FunctionType] | None:
    """Give the functions that it leads to; None: it leads to what may change."""
    space = function.__globals__
    found = [function]
    for one in found:  # grows meanwhile
        if one.__globals__ is not space or not _is_constant(one):
            return None
        for name in _names(one) & set(space):
            value = space[name]
            if type(value) in _functions.PLAIN or _functions.is_named(value):
                continue
            if type(value) is not FunctionType:
                return None
            if value not in found:
                found.append(value)
    if _refers_to_itself(found) and (
        any(_has(one, _CHANGES_ATTRIBUTES) for one in found)
        or any(name.startswith("__") for one in found for name in _names(one))
    ):
        return None
    return found


def _refers_to_itself(family: list[FunctionType]) -> bool:
    """Tell whether code of the family has a name for one of it, and with that its attributes."""
    space = family[0].__globals__
    uses = set().union(*map(_names, family))
    return any(space.get(n) is one for n in uses for one in family)


def is_closed(function: FunctionType) -> bool:
    """Tell whether a function leads to nothing but its like, and to what has a name or is plain."""
    return _family(function) is not None


def _attributes(function: FunctionType, named: bool) -> tuple[Any, ...]:
    """Give what a call depends on: without parameters, the code alone.

    A dict is to stay empty: that of a function which code has a name for.
    """
    code = function.__code__
    names = ["__code__"]
    if code.co_argcount or code.co_kwonlyargcount:
        names += ["__defaults__", "__kwdefaults__"]
    if named:
        names += ["__dict__"]
    return tuple(v for n in names for v in (function, n, getattr(function, n)))


def _make(function: FunctionType) -> Entry | None:
    space = function.__globals__
    module: Any = sys.modules.get(function.__module__)
    family = _family(function) if vars(module or type) is space else None
    if family is None:
        return None
    named = _refers_to_itself(family)
    names = set().union(*map(_names, family))
    present = tuple(sys.intern(n) for n in names if n in space)
    target = f"{__name__}:_{_extisolate.current()}_{next(_numbers)}"
    return (
        set(),
        target.encode(),
        tuple(v for one in family for v in _attributes(one, named)),
        present,
        tuple(space[n] for n in present),
        tuple(sys.intern(n) for n in names if n not in space),
        space,
    )


def entry_of(function: Any) -> Entry | None:
    """Give what is known of a function that can be kept, and was given before."""
    if type(function) is not FunctionType:
        return None
    known = _extisolate.kept
    if function in known:
        entry = known[function]
        if entry is not None and not _extisolate.unchanged(entry):
            entry = known[function] = None  # for ever: it may change again
        return entry
    if function not in _seen:
        _seen.add(function)
        return None
    if len(known) >= _LIMIT:
        return None
    known[function] = _make(function)
    return known[function]


def forget(id: int) -> None:
    """Forget what an interpreter has kept, which has ended."""
    for entry in list(_extisolate.kept.values()):
        if entry is not None:
            entry[0].discard(id)


def keep(target: str, function: FunctionType) -> None:
    """Keep a function that another interpreter has sent, as that target."""
    globals()[target.partition(":")[2]] = function
