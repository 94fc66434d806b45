"""Proxies: what stands for an object that stays in its interpreter, anywhere else."""

from __future__ import annotations

import abc
import atexit
import builtins
import collections
import collections.abc
import contextlib
import io
import numbers
import operator
import os
import sys
import weakref
from types import AsyncGeneratorType, CoroutineType, GeneratorType

from . import _dispatch, _extisolate, _failures, _giving
from ._extisolate import InterpreterError, Proxy, special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_ABSTRACT: dict[str, Any] = {
    name: found
    for module in (collections.abc, numbers)
    for name, found in vars(module).items()
    if isinstance(found, abc.ABCMeta)
}

# Methods of its type that a proxy does not pass on: those by which an object is made and ended, is
# pickled, or has attributes, which is seen to otherwise; and protocols that need the object itself.
_NOT_PASSED_ON = {
    "__new__ __init__ __init_subclass__ __subclasshook__ __del__ __class__ __class_getitem__",
    "__getattribute__ __getattr__ __setattr__ __delattr__ __get__ __set__ __delete__ __set_name__",
    "__reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __getnewargs_ex__",
    "__copy__ __deepcopy__ __sizeof__ __dict__ __weakref__ __slots__ __prepare__",
    "__buffer__ __release_buffer__ __array_ufunc__ __array_function__ __array_wrap__",
    "__array_prepare__ __array_finalize__",
}
_KEPT_BACK = frozenset(name for line in _NOT_PASSED_ON for name in line.split())


# ---- where the object is ----


def _is_method(cls: type, name: str) -> bool:
    try:
        return callable(getattr(cls, name, None))
    except Exception:  # a descriptor that wants an instance
        return True


def _method_names(cls: type) -> tuple[str, ...]:
    found = {name for c in cls.__mro__ if c is not object for name in vars(c)}
    return tuple(
        sorted(
            name
            for name in found - _KEPT_BACK
            if name[:2] == name[-2:] == "__" and _is_method(cls, name)
        )
    )


def _has_memory(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    except Exception:
        return True  # an object of this type may have
    return True


def _abstract_names(cls: type) -> tuple[str, ...]:
    found = []
    for name, abstract in _ABSTRACT.items():
        with contextlib.suppress(Exception):  # of a metaclass
            if issubclass(cls, abstract):
                found.append(name)
    return tuple(found)


def _describe(obj: Any) -> tuple[Any, ...]:
    """Tell what the class of its proxies is to have."""
    cls = type(obj)
    return (
        getattr(cls, "__module__", ""),  # C's type() finds none
        cls.__qualname__,
        _method_names(cls),
        cls.__hash__ is not None,
        _has_memory(obj),
        _abstract_names(cls),
    )


def _next(obj: Any) -> tuple[bool, Any]:
    try:
        return True, next(obj)
    except StopIteration as e:
        return False, e.value


def _exception(failure: tuple[Any, ...]) -> tuple[Any, ...]:
    if not failure:
        return None, None, None
    exception = _failures.raised(*failure)
    return type(exception), exception, None


def _exit(obj: Any, *failure: Any) -> Any:
    return type(obj).__exit__(obj, *_exception(failure))


def _aexit(obj: Any, *failure: Any) -> Any:
    return type(obj).__aexit__(obj, *_exception(failure))


def _contains(obj: Any, item: Any) -> bool:
    return item in obj


def _describe_signature(obj: Any) -> tuple[Any, ...]:
    import inspect

    def given(value: Any) -> tuple[Any, ...]:
        return () if value is inspect.Signature.empty else (value,)

    found = inspect.signature(obj)
    parameters = (
        (p.name, int(p.kind), given(p.default), given(p.annotation))
        for p in found.parameters.values()
    )
    return tuple(parameters), given(found.return_annotation)


# What has to be of exactly a type on the other side, or is not simply a method.
_SPECIAL: dict[str, Callable[..., Any]] = {
    "describe": _describe,
    "signature": _describe_signature,
    "annotations": lambda obj: tuple(obj.__annotations__.items()),
    "__setattr__": setattr,
    "__delattr__": delattr,
    "__repr__": lambda obj: str.__str__(repr(obj)),
    "__str__": lambda obj: str.__str__(str(obj)),
    "__format__": lambda obj, spec: str.__str__(format(obj, spec)),
    "__dir__": lambda obj: tuple(str.__str__(name) for name in dir(obj)),
    "__hash__": hash,
    "__len__": len,
    "__length_hint__": operator.length_hint,
    "__bool__": bool,
    "__index__": operator.index,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__bytes__": bytes,
    "__fspath__": os.fspath,
    "__contains__": _contains,
    "__iter__": iter,
    "__next__": _next,
    "__exit__": _exit,
    "__aexit__": _aexit,
}


def _apply(obj: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Do with an object what a method of its proxy is for."""
    how = _SPECIAL.get(name)
    if how is not None:
        return how(obj, *args, **kwargs)
    for cls in type(obj).__mro__:
        if name in vars(cls):
            method = vars(cls)[name]
            bind = getattr(type(method), "__get__", None)
            return (method if bind is None else bind(method, obj, type(obj)))(*args, **kwargs)
    raise AttributeError(f"type object {type(obj).__name__!r} has no attribute {name!r}")


# ---- where the proxy is ----


def _repr(self: Proxy) -> str:
    home = _extisolate.home(self)
    try:
        return f"<proxy of {special(self, '__repr__')} in interpreter {home}>"
    except InterpreterError:
        return f"<proxy of an object of interpreter {home}, which is closed>"
    except ReferenceError as e:
        return f"<proxy of an object of interpreter {home}: {e}>"


def _eq(self: Proxy, other: object) -> Any:
    return True if self is other else special(self, "__eq__", other)


def _ne(self: Proxy, other: object) -> Any:
    return False if self is other else special(self, "__ne__", other)


def _forward_next(self: Proxy) -> Any:
    more, value = special(self, "__next__")
    if not more:
        raise StopIteration(value)
    return value


def _failure(exception: BaseException | None) -> tuple[Any, ...]:
    return () if exception is None else _failures.failed(exception)


def _forward_exit(self: Proxy, _: Any, exception: BaseException | None, __: Any) -> Any:
    return special(self, "__exit__", *_failure(exception))


def _forward_aexit(self: Proxy, _: Any, exception: BaseException | None, __: Any) -> Any:
    return special(self, "__aexit__", *_failure(exception))


def _own_array(numpy: Any, remote: Any) -> Any:
    if remote.dtype.kind in "mM":  # no buffer has these types
        return numpy.asarray(memoryview(remote.view("i8"))).view(remote.dtype.str)
    try:
        return numpy.asarray(memoryview(remote))
    except BufferError:  # there are objects in it
        made = numpy.empty(remote.size, object)
        for i, item in enumerate(remote.ravel()):
            made[i] = item
        return made.reshape(remote.shape)


def _array(self: Proxy, dtype: Any = None, copy: bool | None = None) -> Any:
    """Make an array of this interpreter, of what is one in the other."""
    import numpy

    made = _own_array(numpy, special(self, "__array__"))
    if dtype is not None and made.dtype != dtype:
        return made.astype(dtype)
    return made.copy() if copy else made


def _signature(self: Proxy) -> Any:
    """Give the signature, of the type that inspect knows, for callables."""
    import inspect

    def parameter(name: str, kind: int, default: Any, annotation: Any) -> inspect.Parameter:
        named = {"default": default, "annotation": annotation}
        given = {key: value[0] for key, value in named.items() if value}
        return inspect.Parameter(name, inspect._ParameterKind(kind), **given)

    try:
        parameters, returned = special(self, "signature")
    except (TypeError, ValueError) as e:  # it has none
        raise AttributeError(str(e)) from e
    annotation = returned[0] if returned else inspect.Signature.empty
    return inspect.Signature([parameter(*p) for p in parameters], return_annotation=annotation)


def _annotations(self: Proxy) -> dict[str, Any]:
    """Give a dict of this interpreter, as functions want one."""
    return dict(special(self, "annotations"))


def _annotate(self: Proxy) -> Any:
    """Give what computes them from CPython 3.14 on."""
    if sys.version_info < (3, 14):
        raise AttributeError("__annotate__")
    return lambda format, /: _annotations(self)


def _same(obj: Any) -> Any:
    return obj


def _reduce(self: Proxy, protocol: int) -> Any:
    return _same, (copied(self),)


_OWN: dict[str, Any] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__ne__": _ne,
    "__reduce_ex__": _reduce,
    "__annotations__": property(_annotations),
    "__annotate__": property(_annotate),
}
_FORWARDED: dict[str, Any] = {
    "__next__": _forward_next,
    "__exit__": _forward_exit,
    "__aexit__": _forward_aexit,
    "__array__": _array,
    **_OWN,
}


def _forwarder(name: str) -> Any:
    found = _FORWARDED.get(name)
    if found is None:

        def found(self: Proxy, *args: Any, **kwargs: Any) -> Any:
            return special(self, name, *args, **kwargs)

        found.__name__ = found.__qualname__ = name
        _FORWARDED[name] = found
    return found


_classes: weakref.WeakValueDictionary[tuple[Any, ...], type] = weakref.WeakValueDictionary()


def _content(module: str, qualname: str, names: tuple[str, ...], hashable: bool) -> dict[str, Any]:
    content = {name: _forwarder(name) for name in ("__str__", "__format__", "__dir__", *names)}
    if content.pop("__call__", None):  # CallableProxy has it
        content["__signature__"] = property(_signature)
    content.update(_OWN, __slots__=(), __module__=__package__)
    content["__hash__"] = _forwarder("__hash__") if hashable else None
    # So lists are lists, wherever it does not matter how they are made.
    builtin = getattr(builtins, qualname, None) if module == "builtins" else None
    if isinstance(builtin, type):
        content["__class__"] = property(lambda self: builtin)
    return content


def _new_class(name: str, bases: tuple[type, ...], content: dict[str, Any]) -> type:
    """Make a class.  Before CPython 3.12 calls make tuples where a class was made in Python, so the
    classes of what is called are C's.
    """
    if sys.version_info >= (3, 12) or _extisolate.CallableProxy not in bases:
        return type(name, bases, content)
    made = _extisolate.callable_class(bases)
    made.__name__ = name
    try:
        for key in content.keys() - {"__slots__"}:
            setattr(made, key, content[key])
    except (AttributeError, TypeError):  # as proxies of classes have methods that type itself has
        return type(name, bases, content)
    return made


def _gone_class() -> type:
    """Give the class of proxies whose objects were gone before anything was known of their type:
    whatever is done with one says so.
    """
    kinds = (complex, int, list, dict, set, io.FileIO)
    generators = (GeneratorType, CoroutineType, AsyncGeneratorType)
    names = {name for cls in (*kinds, *generators) for name in _method_names(cls)}
    bases = (_extisolate.CallableProxy, _extisolate.BufferProxy)
    return _new_class("Proxy", bases, _content("", "", tuple(names), True))


def _class_for(asker: Proxy) -> type:
    """Give the class of proxies of such objects as this is a proxy of, but without methods."""
    description = special(asker, "describe")
    found = _classes.get(description)
    if found is None:
        *what, memory, abstract = description
        bases: tuple[type, ...] = (_extisolate.CallableProxy,) if "__call__" in what[2] else ()
        bases += (_extisolate.BufferProxy,) if memory else ()
        name = f"Proxy[{what[1]}]"
        found = _new_class(name, bases or (Proxy,), {**_content(*what), "__qualname__": name})
        for base in abstract:
            if base in _ABSTRACT:
                _ABSTRACT[base].register(found)
        _classes[description] = found
    return found


# ---- for the program ----


def copied(proxy: Any) -> Any:
    """Give a copy of a proxy's object, as a call would give it by value.

    TypeError: it was shared with ``copies=False``.  NotShareableError: it cannot be pickled.
    """
    return _dispatch.unpack("object", *_extisolate.copy(proxy)[1:])


def share(obj: Any, *, copies: bool = True) -> Any:
    """Give something that is a proxy of the object wherever else it comes.

    It can be given to calls and queues of other interpreters, and returned from calls, alone or
    inside of other objects.  When it comes home it is the object itself.  ``copies=False``: pickle
    refuses to copy the object by its proxies.

    What it gives keeps the object, and is the same for the same object as long as there is one.  An
    object that keeps it itself, or is kept by what does, ends when ``collect()`` has run.

    >>> numbers = [1, 2]
    >>> with create() as interp:
    ...     interp.prepare_main(numbers=share(numbers))
    ...     interp.exec("numbers.append(3)")
    >>> numbers
    [1, 2, 3]
    """
    return _extisolate.share(obj, copies)


def evaluate(expression: str) -> Any:
    """Evaluate an expression in ``__main__``, and share what it gives."""
    return share(eval(expression, sys.modules["__main__"].__dict__))


def settle() -> None:
    """Let go of what no other interpreter has any more, and of all that was in circles with it."""
    import gc

    _extisolate.settle()
    gc.collect()
    _extisolate.settle()


_extisolate.set_proxies(
    _class_for,
    _apply,
    _failures.failed,
    _failures.raised,
    _extisolate.collect,
    _giving.data_kind,
    _giving.packed,
    _giving.unpacked,
    _gone_class(),
)
atexit.register(_extisolate.end_objects)
os.register_at_fork(after_in_child=_extisolate.forget_objects)
