"""What interpreters print, given to the interpreter that started them, by lines."""

from __future__ import annotations

import sys
from typing import Any, Callable

_STREAMS = {1: "stdout", 2: "stderr"}  # by their numbers in the library

# Of each interpreter that this one started: where the lines of its streams go.
_sinks: dict[int, dict[int, Callable[[str], object]]] = {}


def _write_to(target: Any) -> Callable[[str], object]:
    write = getattr(target, "write", target)
    if not callable(write):
        raise TypeError(f"expected a file or a callable for output, not {type(target).__name__}")
    sink: Callable[[str], object] = write
    return sink


def _write_to_own(name: str) -> Callable[[str], object]:
    """Follow the stream to wherever it leads when a line comes."""

    def write(text: str) -> None:
        stream = getattr(sys, name)
        if stream is not None:
            stream.write(text)

    return write


def _is_the_process_own(name: str) -> bool:
    stream = getattr(sys, name)
    if stream is None:
        return True
    if stream is not getattr(sys, f"__{name}__"):
        return False
    try:
        stream.fileno()
    except (OSError, ValueError):  # of io.UnsupportedOperation both
        return False
    return True


def sinks_for(stdout: Any, stderr: Any) -> dict[int, Callable[[str], object]]:
    """Give where the lines of each stream go, but for those that are the process's own."""
    sinks = {}
    for number, target in ((1, stdout), (2, stderr)):
        if target is not None:
            sinks[number] = _write_to(target)
        elif not _is_the_process_own(_STREAMS[number]):
            sinks[number] = _write_to_own(_STREAMS[number])
    return sinks


def begin(id: int, sinks: dict[int, Callable[[str], object]]) -> None:
    """Note where the lines of a new interpreter go."""
    if sinks:
        _sinks[id] = sinks


def deliver(id: int, stream: int, text: bytes) -> None:
    """Write a line; called by whatever thread printed it, with this interpreter's GIL."""
    sink = _sinks.get(id, {}).get(stream)
    if sink is None:
        return
    try:
        sink(text.decode("utf-8", "backslashreplace"))
    except Exception:  # whoever printed cannot help it
        import logging

        logging.getLogger(__package__).exception("cannot write what interpreter %d printed", id)


def end(id: int) -> None:
    """Forget where the lines of an interpreter went that is closed."""
    _sinks.pop(id, None)
