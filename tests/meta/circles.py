#!/usr/bin/env python3
"""circles.py OBJECTS: prints the arrows between object files that break the rules of rooms.py, and the
circles of files and of rooms that arrows make.

An arrow goes from an object to the one that defines what it refers to, as nm tells them; OBJECTS is the
folder that the Makefile compiles into, and mirrors the tree.
"""

import collections
import os
import subprocess
import sys

import rooms


def symbols(objects):
    """What each object defines, and what it lacks."""
    defined, lacking = {}, {}
    for folder, _, names in os.walk(objects):
        for name in names:
            stem = os.path.relpath(os.path.join(folder, name), objects)[:-2]
            if not name.endswith(".o") or rooms.room_of(stem) is None:
                continue
            lacking[stem] = set()
            listing = subprocess.run(
                ["nm", "-P", os.path.join(folder, name)], check=True, capture_output=True, text=True
            )
            for line in listing.stdout.splitlines():
                symbol, kind = line.split()[:2]
                if kind == "U":
                    lacking[stem].add(symbol)
                elif kind.isupper():
                    defined[symbol] = stem
    return defined, lacking


def arrows(objects):
    defined, lacking = symbols(objects)
    graph = {stem: collections.defaultdict(set) for stem in lacking}
    for stem, wanted in lacking.items():
        for symbol in wanted:
            if defined.get(symbol, stem) != stem:
                graph[stem][defined[symbol]].add(symbol)
    return graph


def circles(graph):
    """The strongly connected components of more than one node: Tarjan, without recursion."""
    index, low, stack, found = {}, {}, [], []
    for root in sorted(graph):
        work = [] if root in index else [(root, iter(sorted(graph[root])))]
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
    return found


def between_rooms(graph):
    merged = {}
    for stem, others in graph.items():
        room = merged.setdefault(rooms.room_of(stem), {})
        for other, names in others.items():
            merged.setdefault(rooms.room_of(other), {})
            if rooms.room_of(other) != rooms.room_of(stem):
                room.setdefault(rooms.room_of(other), set()).update(names)
    return merged


def faults(graph):
    for stem in sorted(graph):
        for other in sorted(graph[stem]):
            # Programs use the public interface, which any room may implement.
            public = all(name.lstrip("_").startswith("exti_") and "exti__" not in name for name in graph[stem][other])
            if not rooms.may_call(stem, other) and not (public and stem.startswith(("cli/", "runtime/"))):
                yield f"{stem} must not use {other}: {' '.join(sorted(graph[stem][other]))}"
    for what, nodes in (("files", graph), ("rooms", between_rooms(graph))):
        for circle in circles(nodes):
            yield f"circle of {what}: {' '.join(circle)}"


graph = arrows(sys.argv[1])
if not graph:
    sys.exit(f"{sys.argv[1]}: has no objects")
found = list(faults(graph))
print(*found, sep="\n", end="\n" if found else "")
sys.exit(bool(found))
