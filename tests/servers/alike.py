"""Compares what a program does by itself with what it does in each of several contexts of one process."""

import re

# What is different each time: the first of these that matches is replaced.
VARYING = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,]\d+)?( ?[+-]\d{4})?", "TIME"),
    (r"\b\d\d/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d( [+-]\d{4})?", "TIME"),
    (r"\b\w+ \d\d, \d{4} - \d\d:\d\d:\d\d", "TIME"),
    (r"\b\d+(\.\d+)? ?(ms|s|seconds)\b", "SPAN"),
    (r"0x[0-9a-f]{4,}", "ADDRESS"),
    (r"\[\d+\]", "[PID]"),
    (r"\(\d{3,}\)", "(PID)"),
    (r"(?i)\b(pid|process|worker)([:= (-]+)\d+", r"\1\2PID"),
    (r"/servers-\w+", "/FOLDER"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\bForkPoolWorker-\d+", "ForkPoolWorker"),
    (r"\bcelery@\d\b", "celery@INDEX"),
    (r"/of-\d+\b", "/of-INDEX"),
)


class Run:
    """What a program said, and how it ended."""

    def __init__(self, lines, status, seconds, left=()):
        self.lines = lines
        self.status = status
        self.seconds = seconds
        self.left = list(left)  # processes that outlived it


def normal(text, ports):
    """The lines without what varies."""
    for pattern, replacement in VARYING:
        text = re.sub(pattern, replacement, text)
    for port in ports:
        text = re.sub(r"\b%d\b" % port, "PORT", text)
    # What the runtime says before a traceback.
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not re.fullmatch(r"context \d+:", line)]


def interleaved(merged, lines, copies):
    """None if `merged` is `copies` times `lines`, each in their order; else the line that is out of place."""
    states = {(0,) * copies}
    for line in merged:
        states = {
            tuple(sorted(s[:i] + (s[i] + 1,) + s[i + 1:]))
            for s in states for i in range(copies)
            if s[i] < len(lines) and lines[s[i]] == line and (i == 0 or s[i - 1] != s[i])
        }
        if not states:
            return line
    if (len(lines),) * copies not in states:
        return "<the end>"
    return None


def counted(lines, copies=1):
    counts = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + copies
    return counts


def line_faults(plain, contexts, copies, ordered):
    want, got = counted(plain, copies), counted(contexts)
    faults = ["said %d times, not %d: %s" % (got.get(line, 0), want.get(line, 0), line)
              for line in {**want, **got} if want.get(line) != got.get(line)]
    if ordered and not faults:
        wrong = interleaved(contexts, plain, copies)
        if wrong is not None:
            faults.append("in another order, from here on: " + wrong)
    return faults


def faults(plain, contexts, copies, ordered=True):
    """What differs."""
    found = line_faults(plain.lines, contexts.lines, copies, ordered)
    if plain.status != contexts.status:
        found.append("status %s, not %s" % (contexts.status, plain.status))
    if contexts.seconds > 3 * plain.seconds + 5:
        found.append("took %.1f s to end, not %.1f" % (contexts.seconds, plain.seconds))
    if contexts.left:
        found.append("left processes: %s" % contexts.left)
    return found
