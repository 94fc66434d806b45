"""What interpreters and queues have in common: a number in the process."""

from __future__ import annotations


class Numbered:
    """An object that stands for what has its number."""

    _id: int

    @staticmethod
    def _check(id: object) -> None:
        if not isinstance(id, int):
            raise TypeError(f"id must be an int, got {id!r}")
        if id < 0:
            raise ValueError(f"id must be 0 or more, got {id!r}")
        if id >> 64:  # which C would take for its last 64 bits
            raise OverflowError(f"id must be below 2**64, got {id!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._id})"

    def __hash__(self) -> int:
        return hash(self._id)
