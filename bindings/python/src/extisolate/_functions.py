"""Functions that another interpreter cannot import: by their code, and what that refers to."""

from __future__ import annotations

import builtins
import marshal
import os
import sys
import types
from types import BuiltinFunctionType, CellType, CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the main interpreter's program is called there, and where it is imported.
MAIN_NAMES = ("__main__", "__mp_main__")


def importable(named: FunctionType | BuiltinFunctionType | type) -> bool:
    """Tell whether other interpreters find it by its name."""
    if named.__module__ in MAIN_NAMES:
        return False
    found: Any = sys.modules.get(named.__module__)
    for name in named.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is named


# Values that pickle copies, and that nothing can change.
PLAIN = (type(None), bool, int, float, complex, str, bytes)


def is_named(value: Any) -> bool:
    """Tell whether a module, function or class is what others import by its name."""
    if type(value) is types.ModuleType:
        return value.__name__ not in MAIN_NAMES and sys.modules.get(value.__name__) is value
    named = isinstance(value, (type, FunctionType, BuiltinFunctionType))
    return named and importable(value)


def plain_annotations(function: FunctionType) -> dict[str, Any] | None:
    """Give its annotations; None: they have more than constants and names."""
    try:
        found = function.__annotations__
    except NameError:  # CPython 3.14: of what is defined later
        return None
    return found if all(type(v) in PLAIN or is_named(v) for v in found.values()) else None


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _cell_contents(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it has no value yet
        return ()


def _submodules(packages: set[str], names: set[str]) -> list[str]:
    """Give the modules that code with these names may reach as attributes of packages."""
    return [
        module
        for module in list(sys.modules)
        for package in packages
        if module.startswith(f"{package}.")
        and names.issuperset(module[len(package) + 1 :].split("."))
    ]


def reduce_function(function: FunctionType) -> Any:
    """Reduce for pickle: first a function without content, so that it can refer to itself."""
    used = {
        n: function.__globals__[n] for n in _names(function.__code__) & set(function.__globals__)
    }
    modules = {n: v.__name__ for n, v in used.items() if type(v) is types.ModuleType}
    submodules = _submodules(set(modules.values()), _names(function.__code__))
    state = {
        "globals": {n: v for n, v in used.items() if n not in modules},
        "modules": modules,
        "submodules": submodules,
        "cells": [_cell_contents(c) for c in function.__closure__ or ()],
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "attributes": {
            "__qualname__": function.__qualname__,
            "__doc__": function.__doc__,
            "__annotations__": plain_annotations(function) or {},
            **function.__dict__,
        },
    }
    made_of = (
        marshal.dumps(function.__code__),
        function.__name__,
        function.__module__,
        len(function.__closure__ or ()),
    )
    return new_function, made_of, state, None, None, fill_function


def import_named(name: str) -> types.ModuleType:
    """Import a module; waits for a thread that is importing it."""
    __import__(name)
    return sys.modules[name]


def new_function(code: bytes, name: str, module: str | None, cells: int) -> FunctionType:
    """Make a function of its code alone."""
    namespace = {"__builtins__": builtins, "__name__": module}
    closure = tuple(CellType() for _ in range(cells)) if cells else None
    return FunctionType(marshal.loads(code), namespace, name, None, closure)


def fill_function(function: FunctionType, state: dict[str, Any]) -> None:
    """Give the function what it refers to."""
    function.__globals__.update(state["globals"])
    for name in state["submodules"]:
        import_named(name)
    function.__globals__.update((n, import_named(m)) for n, m in state["modules"].items())
    for cell, contents in zip(function.__closure__ or (), state["cells"]):
        if contents:
            cell.cell_contents = contents[0]
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["kwdefaults"]
    for name, value in state["attributes"].items():
        setattr(function, name, value)


main_path: str | None = None  # the file of the main interpreter's program, if it has one


def main_file() -> str | None:
    """Give the file that other interpreters import the program from, if it has one."""
    if main_path is not None:
        return main_path
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(path) if path and os.path.exists(path) else None


def main_program() -> Any:
    """Give the main interpreter's program as a module, as multiprocessing does: it is run under the
    name __mp_main__, so that what it has under ``if __name__ == "__main__"`` is not.
    """
    module = sys.modules.get("__mp_main__")
    if module is None:
        if main_path is None:  # this is the main interpreter, or its program has no file
            raise AttributeError("the main interpreter's program has no file to import from")
        import runpy

        module = types.ModuleType("__mp_main__")
        sys.modules["__mp_main__"] = module
        try:
            namespace = runpy.run_path(main_path, run_name="__mp_main__")
        except BaseException:
            del sys.modules["__mp_main__"]
            raise
        module.__dict__.update(namespace)
    return module
