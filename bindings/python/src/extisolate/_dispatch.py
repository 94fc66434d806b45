"""What other interpreters call: functions by name or by value, and their outcome as a message."""

from __future__ import annotations
import __future__

import functools
import sys
import threading
from types import BuiltinFunctionType, FunctionType, SimpleNamespace

from . import _extisolate, _functions
from ._extisolate import InterpreterError
from ._message import PICKLED, PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable

DONE, RAISED = range(2)


_TARGETS_KEPT = 1024


def target_of(function: Callable[..., Any]) -> str | None:
    """Give the name by which any interpreter finds a function at once, or None."""
    if type(function) is not FunctionType or not _functions.importable(function):
        return None
    target = f"{function.__module__}:{function.__qualname__}"
    # From now on the extension module knows it.
    if len(_extisolate.targets) >= _TARGETS_KEPT:
        _extisolate.targets.clear()
    _extisolate.targets[function] = target.encode("utf-8", "surrogatepass")
    return target


@functools.lru_cache(maxsize=1024)
def _path_of(target: str) -> tuple[str, list[str]]:
    module, _, path = target.partition(":")
    return module, path.split(".")


def _resolve(target: str) -> Callable[..., Any]:
    module, path = _path_of(target)
    found: Any = _functions.import_named(module)
    for name in path:
        found = getattr(found, name)
    function: Callable[..., Any] = found
    return function


def _text(make: Callable[[], Any]) -> str:
    """Make a text of an exception, whose own methods may fail."""
    try:
        return str(make())
    except BaseException as e:
        return f"<{type(e).__name__} while this was made>"


def _pickled_exception(exception: BaseException) -> bytes | None:
    import pickle

    from . import _memory, _pickling

    try:
        kind, payload, _, _ = _pickling.pack(exception, _memory.COPY)
        if kind != PICKLED:
            return None
        pickle.loads(payload)  # many pickle well, and then cannot be made
    except BaseException:
        return None
    return bytes(payload)


def outer_frames_removed(found: TracebackType | None) -> TracebackType | None:
    """Begin a traceback after the package's own frames."""
    while found is not None and found.tb_frame.f_globals.get("__package__") == __package__:
        found = found.tb_next
    return found


def failed(e: BaseException, pickles: bool = True) -> tuple[Any, ...]:
    """Give what tells another interpreter of an exception, without its pickle if need be."""
    import traceback

    cls = type(e)
    found = e.__traceback__ = outer_frames_removed(e.__traceback__)
    formatted = _text(lambda: "".join(traceback.format_exception(cls, e, found)))
    return (
        RAISED,
        cls.__module__,
        cls.__qualname__,
        _text(lambda: e),
        formatted,
        _pickled_exception(e) if pickles else None,
    )


def unpack(what: str, *message: Any) -> Any:
    """Give the object of a message; NotShareableError: it cannot be made here."""
    from . import _pickling

    try:
        return _pickling.unpack(*message)
    except Exception as e:
        text = f"{what} not shareable: could not be unpickled: {type(e).__name__}: {e}"
        raise _pickling.NotShareableError(text) from e


# What eval() compiles has the features that its caller has, and not this module's.
_caller = (lambda _function, _args, _kwargs: _function(*_args, **_kwargs)).__code__
_caller = _caller.replace(co_flags=_caller.co_flags & ~__future__.annotations.compiler_flag)


def in_main(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what looks at its caller's variables, as eval() and globals() do, from ``__main__``."""
    variables = sys.modules["__main__"].__dict__
    if not args and not kwargs and function in (dir, locals, vars):
        return sorted(variables) if function is dir else variables
    if len(args) == 1 and not kwargs and function in (eval, exec):
        args = (*args, variables)
    return FunctionType(_caller, variables)(function, args, kwargs)


def adopt_thread() -> None:
    """Let threads that this thread starts be waited for, as those of a program are.

    To threading, a thread of another interpreter is a daemon, and passes that on.
    """
    thread = threading.current_thread()
    if isinstance(thread, threading._DummyThread):
        thread.__dict__["_daemonic"] = False


def _invoke(kind: int, target: str | None, message: tuple[Any, ...]) -> Any:
    if kind == PLAIN and target is not None:
        return _resolve(target)(*message[0])
    function, args, kwargs = unpack("args", kind, *message)
    if type(function) is BuiltinFunctionType:
        return in_main(function, args, kwargs)
    if function is None and target is not None:
        function = _resolve(target)
    elif target is not None:
        from . import _kept

        _kept.keep(target, function)
    return function(*args, **kwargs)


def dispatch(policy: int, target: str | None, kind: int, *message: Any) -> tuple[Any, ...]:
    """Call a function for another interpreter."""
    return answered(_invoke(kind, target, message), policy)


def answered(result: object, policy: int) -> tuple[Any, ...]:
    """Give what tells another interpreter of a result."""
    if _extisolate.plain(result, policy):
        return (DONE, PLAIN, result, (), 0)
    from . import _pickling

    return (DONE, *_pickling.pack(result, policy))


def call_each(function: Callable[..., Any], items: tuple[tuple[Any, ...], ...]) -> list[Any]:
    """Call a function with each of some argument lists."""
    return [function(*args) for args in items]


def interrupt(thread: int) -> None:
    """Raise KeyboardInterrupt in a thread that is in a call."""
    _extisolate.raise_in(thread, KeyboardInterrupt)


def calm(thread: int) -> None:
    """Take back what the call that has ended was not reached by."""
    _extisolate.raise_in(thread, None)


def run_source(source: str) -> None:
    """Run source text in the module ``__main__``."""
    exec(compile(source, "<string>", "exec", dont_inherit=True), sys.modules["__main__"].__dict__)


def run_code(code: bytes) -> None:
    """Run a marshalled code object in the module ``__main__``."""
    import marshal

    exec(marshal.loads(code), sys.modules["__main__"].__dict__)


def set_main(names: dict[str, Any]) -> None:
    """Set variables of the module ``__main__``."""
    vars(sys.modules["__main__"]).update(names)


class ExecutionFailed(InterpreterError):
    """An exception that nobody caught in the interpreter where it was raised.

    ``excinfo`` has its ``type`` (``__name__``, ``__qualname__``, ``__module__``), ``msg``,
    ``formatted``, and ``errdisplay``: the traceback as Python prints it.
    """

    def __init__(self, excinfo: SimpleNamespace) -> None:
        super().__init__(excinfo.formatted)
        self.excinfo = excinfo

    def __str__(self) -> str:
        return (
            f"{self.excinfo.formatted}\n\nUncaught in the interpreter:\n\n{self.excinfo.errdisplay}"
        )

    def __reduce__(self) -> Any:
        return type(self), (self.excinfo,)


class Remote:
    """What a call raised in another interpreter."""

    def __init__(self, excinfo: SimpleNamespace, pickled: bytes | None) -> None:
        self.excinfo = excinfo
        self.pickled = pickled


def remote(module: str, qualname: str, text: str, formatted: str, pickled: Any) -> Remote:
    """Make what a failure tells of."""
    name = qualname.rpartition(".")[2]
    cls = SimpleNamespace(__name__=name, __qualname__=qualname, __module__=module)
    return Remote(
        SimpleNamespace(
            type=cls,
            msg=text,
            formatted=f"{qualname}: {text}" if text else qualname,
            errdisplay=formatted.rstrip(),
        ),
        pickled,
    )


def _message_of(
    function: Callable[..., Any] | None,
    target: str | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: int,
) -> tuple[Any, ...]:
    """Give what ``dispatch`` is called with: to call the function, which is kept there as the
    target, if that is one; or without a function to call the target.
    """
    if function is None and not kwargs and _extisolate.plain(args, policy):
        return (policy, target, PLAIN, args)
    from . import _pickling

    given = (function, _pickling.light(args), kwargs)
    return (policy, target, *_pickling.pack(given, policy))


class Caller(_extisolate.Caller):
    """What stands for another interpreter, and calls it."""

    def _call_pickled(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        from . import _kept

        target = target_of(function)
        entry = _kept.entry_of(function) if target is None else None
        if entry is not None:
            target = entry[1].decode()
        known = target is not None and (entry is None or self._id in entry[0])
        message = _message_of(None if known else function, target, args, kwargs, self._policy)
        result = self._call_dispatcher(message)
        if entry is not None:
            entry[0].add(self._id)
        return result

    def _answered(self, answer: tuple[Any, ...]) -> Any:
        if answer[0] == DONE:
            return unpack("result", *answer[1:])
        raise self._raised(remote(*answer[1:]))

    def _raised(self, remote: Remote) -> BaseException:
        """Give what to raise for what was raised there."""
        raise NotImplementedError


def _begin() -> None:
    """Answer calls; in an interpreter that the package starts, of that which started it."""
    _extisolate.set_dispatch(dispatch, answered, failed, adopt_thread, in_main)
    given = sys.__dict__.pop("_extisolate", None)
    if given is not None:
        _extisolate.attach(*given)


_begin()
