"""Exceptions of other interpreters: what is told of one, and what is raised for it."""

from __future__ import annotations

import builtins
import contextlib
import functools
import pickle
from types import MemberDescriptorType

from . import _dispatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# ---- where it was raised ----


def _builtin_base(cls: type) -> str:
    return next(c.__name__ for c in cls.__mro__ if c.__module__ == "builtins")


_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # from CPython 3.11 on


@functools.cache
def _fields(base: type) -> tuple[str, ...]:
    """Name what exceptions of a class of builtins have beside their arguments and their dict."""
    return tuple(
        name
        for cls in base.__mro__
        if cls is not _GROUP
        for name, value in vars(cls).items()
        if type(value) is MemberDescriptorType and not name.startswith("_")
    )


def _attributes(e: BaseException, base: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        found.update((name, getattr(e, name)) for name in _fields(base))
        found.update(vars(e))
    notes = found.get("__notes__")
    if type(notes) is list:
        found["__notes__"] = tuple(notes)  # by value
    return {name: value for name, value in found.items() if value is not None}


def _arguments(e: BaseException) -> tuple[Any, ...] | None:
    if isinstance(e, _GROUP):
        return e.message, tuple(failed(each) for each in e.exceptions)
    return tuple(e.__reduce__()[1]) if type(e).__module__ == "builtins" else None


def failed(e: BaseException) -> tuple[Any, ...]:
    """Tell another interpreter of an exception: with the objects that it has, if that is possible
    without pickle.
    """
    cls = type(e)
    failure = _dispatch.failed(e, cls.__module__ != "builtins")
    base = _builtin_base(cls)
    if failure[-1] is not None:  # its pickle
        return (*failure, base, None, (), ())
    attributes = _attributes(e, getattr(builtins, base))
    return (*failure, base, _arguments(e), tuple(attributes), tuple(attributes.values()))


# ---- where it is raised again ----


def _made(pickled: bytes | None, base: type, text: str, args: tuple[Any, ...] | None) -> Any:
    if args is not None and issubclass(base, _GROUP):
        return base(args[0], [raised(*each) for each in args[1]])
    if args is not None:
        return base(*args)
    if pickled is not None:
        return pickle.loads(pickled)
    return base(text)


def _set_attributes(e: BaseException, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values):
        with contextlib.suppress(Exception):
            setattr(e, name, list(value) if name == "__notes__" else value)


def raised(*failure: Any) -> BaseException:
    """Give the exception to raise for one of another interpreter, which is its cause."""
    _, module, qualname, text, formatted, pickled, *more = failure
    base, args, *attributes = more or (qualname if module == "builtins" else "Exception", None)
    remote = _dispatch.remote(module, qualname, text, formatted, pickled)
    exception: BaseException | None = None
    with contextlib.suppress(Exception):
        made = _made(pickled, getattr(builtins, base, Exception), text, args)
        exception = made if isinstance(made, BaseException) else None
    if exception is None:
        exception = Exception(remote.excinfo.formatted)
    _set_attributes(exception, *(attributes or ((), ())))
    exception.__cause__ = _dispatch.ExecutionFailed(remote.excinfo)
    return exception
