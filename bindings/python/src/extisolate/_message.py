"""What messages between interpreters are."""

from __future__ import annotations

TYPE_CHECKING = False  # the module typing takes longer to import than the rest of the package
if TYPE_CHECKING:
    from typing import Any

    # kind, payload, shared memory, and how much of that are buffers of the pickle's own.
    Message = tuple[int, Any, tuple[memoryview, ...], int]

PLAIN, PICKLED = range(2)
