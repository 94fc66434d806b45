"""Classes that another interpreter cannot import: by what they are made of."""

from __future__ import annotations

import abc
import contextlib
import itertools
import types
import weakref

from . import _extisolate, _functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a class gets anew when it is made.
_MADE = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl")
# CPython 3.14: a function that refers to the namespace of the class's body.
_COMPUTES_ANNOTATIONS = ("__annotate_func__", "__annotations_cache__")

# A class has one key, wherever it is, so that it comes back as the same.
_numbers = itertools.count()
_keys: weakref.WeakKeyDictionary[type, tuple[int, int]] = weakref.WeakKeyDictionary()
_known: weakref.WeakValueDictionary[tuple[int, int], type] = weakref.WeakValueDictionary()


def _key_of(cls: type) -> tuple[int, int]:
    key = _keys.get(cls)
    if key is None:
        key = _keys[cls] = (_extisolate.current(), next(_numbers))
        _known[key] = cls
    return key


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _content(cls: type) -> dict[str, Any]:
    left_out = {*_MADE, *_COMPUTES_ANNOTATIONS, *_slots(cls), "__slots__"}
    content = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    if "__annotate_func__" in cls.__dict__:
        with contextlib.suppress(NameError):  # of what is defined later
            content["__annotations__"] = cls.__annotations__
    return content


def is_own(cls: type) -> bool:
    """Tell whether a class is the program's, and no other interpreter can import the program."""
    return cls.__module__ == "__main__" and _functions.main_file() is None


def reduce_class(cls: type) -> Any:
    """Reduce for pickle: first a class without content, so that its methods can refer to it."""
    if type(cls) not in (type, abc.ABCMeta):
        raise TypeError(
            f"{cls.__qualname__} has a metaclass, and the program has no file to import it from: "
            "install cloudpickle"
        )
    own = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if "__slots__" in cls.__dict__:
        own["__slots__"] = _slots(cls)  # type: ignore[assignment]
    made_of = (_key_of(cls), type(cls), cls.__name__, cls.__bases__, own)
    return new_class, made_of, _content(cls), None, None, fill_class


def new_class(
    key: tuple[int, int], kind: Any, name: str, bases: tuple[type, ...], own: dict[str, Any]
) -> type:
    """Give the class that has come before, or make it without content."""
    found = _known.get(key)
    if found is None:
        found = types.new_class(name, bases, {"metaclass": kind}, lambda space: space.update(own))
        _known[key] = found
        _keys[found] = key
    return found


def _set_abstract(cls: Any) -> None:
    """Do what ABCMeta does when it makes a class with its content."""
    names = {n for base in cls.__mro__ for n in getattr(base, "__abstractmethods__", ())}
    names |= set(cls.__dict__)
    cls.__abstractmethods__ = frozenset(
        n for n in names if getattr(getattr(cls, n, None), "__isabstractmethod__", False)
    )


def fill_class(cls: type, content: dict[str, Any]) -> None:
    """Give the class its content, unless it has it."""
    for name, value in content.items():
        if name not in cls.__dict__ or name == "__doc__":
            setattr(cls, name, value)
    if isinstance(cls, abc.ABCMeta):
        _set_abstract(cls)


def reduce_part(obj: Any) -> Any:
    """Reduce what classes consist of beside functions, else give NotImplemented."""
    cls = type(obj)
    if cls is types.ModuleType:
        return _functions.import_named, (obj.__name__,)
    if cls in (staticmethod, classmethod):
        return cls, (obj.__func__,)
    if cls is property:
        return property, (obj.fget, obj.fset, obj.fdel, obj.__doc__)
    if cls is types.MappingProxyType:
        return proxy_of, (dict(obj),)
    if cls.__module__ == "dataclasses":
        import dataclasses

        # They are compared by what they are.
        for name, value in vars(dataclasses).items():
            if value is obj:
                return of_dataclasses, (name,)
    return NotImplemented


def proxy_of(content: dict[Any, Any]) -> Any:
    """Make a read-only view, whose type has no name to be pickled by."""
    return types.MappingProxyType(content)


def of_dataclasses(name: str) -> Any:
    """Give what that module has under the name."""
    import dataclasses

    return getattr(dataclasses, name)
