"""The rooms of the house, and which of them each may use.  docs/architecture.md says what they are for."""

import os

FORMATS = ("elf", "macho", "pe")
# Each uses those before it.
LOADER = ("image", "rewrite", "process", "resolve", "store", "track", "load", "interpose", "context")

CLI = ("cli/os", "cli/output", "cli/args", "cli/find", "cli/report", "cli/tree", "cli")


def room_of(path):
    """The room of a source or header named from the top folder, or None."""
    folder = os.path.dirname(path)
    return folder if folder in USES else None


def _uses():
    base = ["base"]
    uses = {
        "include": [],
        "include/extisolate": [],
        "base": base,
        "base/os": ["base", "base/os"],
        "link": base + ["link"],
        "runtime": ["runtime"],
        "runtime/embed": ["runtime", "runtime/embed"],
        "bindings/python/ext": ["bindings/python/ext"],
    }
    for f in FORMATS:
        uses[f + "/read"] = base + [f + "/read"]
        uses[f + "/edit"] = base + [f + "/read", f + "/edit"]
        # The checkers' worth rests on their knowing nothing of how edits are made.
        uses[f + "/check"] = base + [f + "/read", f + "/check"]
        uses[f] = base + [f, f + "/read", f + "/edit", f + "/check"]
    below = ["base", "base/os"]
    for room in LOADER:
        below = below + ["loader/" + room]
        uses["loader/" + room] = list(below)
    for room in ("image", "rewrite", "process", "resolve"):
        uses["loader/" + room] += FORMATS
    below = ["runtime"]
    for room in CLI:
        below = below + [room]
        uses[room] = list(below)
    return uses


USES = _uses()
# Single files of other rooms.  A format's header declares what its rooms offer the loader; hashing, which
# signatures need, differs between systems.
FILES = {f + "/read": [f"{f}/{f}_format"] for f in FORMATS}
FILES["macho/read"] += ["base/os/sha256"]
FILES["macho/edit"] = FILES["macho/check"] = ["base/os/sha256"]


def may_use(path, other):
    """Whether the file `path` may use the header `other`, both named from the top folder."""
    return room_of(other) in USES[room_of(path)] or os.path.splitext(other)[0] in FILES.get(room_of(path), ())


def may_call(path, other):
    """Whether the source `path` may refer to what the source `other` defines, both without their suffix."""
    room, target = room_of(path), room_of(other)
    # What a format's rooms define for the loader is declared in the format's one header.
    offered = target.split("/")[0] in FORMATS and target.split("/")[0] in USES[room]
    named = any(other.startswith(name) for name in FILES.get(room, ()))
    return target in USES[room] or offered or named
