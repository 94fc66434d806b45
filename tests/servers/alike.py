"""Compares what copies of a program do by themselves with what they do in contexts of one process."""

import collections
import re

# What is different each time: the first of these that matches is replaced.
VARYING = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,]\d+)?( ?[+-]\d{4})?", "TIME"),
    (r"\b\d\d/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d( [+-]\d{4})?", "TIME"),
    (r"\b\w+ \d\d, \d{4} - \d\d:\d\d:\d\d", "TIME"),
    (r"\b\d+(\.\d+)?(e\+\d+)? ?(ns|µs|μs|us|ms|s|seconds)\b", "SPAN"),
    (r"\bSPAN \(\d:\d\d:\d\d\)", "SPAN"),
    (r"=+ (?=\d+ [a-z]+\b.* in SPAN)|(?<=SPAN) =+", "==="),
    (r"={4,}", "==="),
    (r"0x[0-9a-f]{4,}", "ADDRESS"),
    (r"\[\d+\]", "[PID]"),
    (r"\(\d{3,}\)", "(PID)"),
    (r"(?i)\b(pid|process|worker)([:= (-]+)\d+", r"\1\2PID"),
    (r"/servers-\w+", "/FOLDER"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{32}\b", "HASH"),
    (r"\bForkPoolWorker-\d+", "ForkPoolWorker"),
    (r"\bcelery@\d\b", "celery@INDEX"),
    (r"/of-\d+\b", "/of-INDEX"),
)


class Run:
    """What four copies of a program said, and how they ended."""

    def __init__(self, said, own, statuses, seconds, left=()):
        self.said = said    # the lines of each process
        self.own = own      # those of each copy's file
        self.statuses = statuses
        self.seconds = seconds
        self.left = list(left)  # processes that outlived them

    def text(self):
        return "\n".join(line for lines in self.said + self.own for line in lines)


def normal(text, ports, racy=()):
    """The lines without what varies, and without those in which the program races with itself."""
    for pattern, replacement in VARYING:
        text = re.sub(pattern, replacement, text)
    for port in ports:
        text = re.sub(r"\b%d\b" % port, "PORT", text)
    # What the runtime says before a traceback.
    text = re.sub("(?m)^(?:%s).*$" % "|".join((r"context \d+:$", *racy)), "", text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def interleaved(merged, parts):
    """None if `merged` has all lines of the parts, those of each in their order; else the line that is out of place."""
    states = {(0,) * len(parts)}
    for line in merged:
        states = {
            s[:i] + (s[i] + 1,) + s[i + 1:]
            for s in states for i, part in enumerate(parts)
            if s[i] < len(part) and part[s[i]] == line
        }
        # Which of several equal parts went on does not matter.
        if all(part == parts[0] for part in parts):
            states = {tuple(sorted(s)) for s in states}
        if not states:
            return line
    if tuple(map(len, parts)) not in states:
        return "<the end>"
    return None


def line_faults(plain, contexts, ordered):
    want = collections.Counter(line for lines in plain for line in lines)
    got = collections.Counter(line for lines in contexts for line in lines)
    faults = ["said %d times, not %d: %s" % (got[line], want[line], line)
              for line in {**want, **got} if want[line] != got[line]]
    if ordered and not faults:
        wrong = interleaved([line for lines in contexts for line in lines], plain)
        if wrong is not None:
            faults.append("in another order, from here on: " + wrong)
    return faults


def either(statuses):
    return " or ".join(map(str, sorted(statuses)))


def faults(plain, contexts, ordered=True):
    """What differs."""
    found = line_faults(plain.said, contexts.said, ordered)
    for index, (want, got) in enumerate(zip(plain.own, contexts.own)):
        found += ["context %d: %s" % (index, fault) for fault in line_faults([want], [got], ordered)]
    if not contexts.statuses <= plain.statuses:
        found.append("status %s, not %s" % (either(contexts.statuses), either(plain.statuses)))
    if contexts.seconds > 3 * plain.seconds + 5:
        found.append("took %.1f s to end, not %.1f" % (contexts.seconds, plain.seconds))
    if contexts.left:
        found.append("left processes: %s" % contexts.left)
    return found
