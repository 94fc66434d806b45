#!/usr/bin/env python3
"""run.py PATTERNS MODULE...: runs CPython's tests of these modules but for those that match a pattern, and
prints of each how it ended, and why."""

import concurrent.futures
import fnmatch
import importlib.util
import os
import sys
import unittest

import _interpreters
import extisolate


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.ended = set()

    def say(self, how, test, why=""):
        name = test.id()
        if name in self.ended:
            return
        self.ended.add(name)
        os.write(report, f"{how} {name.removeprefix('test.')} {' '.join(str(why).split())[-200:]}\n".encode())

    def addSuccess(self, test):
        self.say("ok", test)

    def addError(self, test, err):
        self.say("failed", test, repr(err[1]))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.say("failed", test, repr(err[1]))

    def addSkip(self, test, reason):
        self.say("skipped", test, reason)

    def addExpectedFailure(self, test, err):
        self.say("ok", test)

    def addUnexpectedSuccess(self, test):
        self.say("failed", test, "it was expected to fail")


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def left_out(test, patterns):
    return any(fnmatch.fnmatch(test.id().removeprefix("test."), p) for p in patterns)


def put_in_place():
    """What tests have from modules that are CPython's own."""
    concurrent.futures.InterpreterPoolExecutor = extisolate.InterpreterPoolExecutor
    path = os.path.join(os.path.dirname(concurrent.__file__), "interpreters", "_crossinterp.py")
    spec = importlib.util.spec_from_file_location("extisolate._crossinterp", path)
    extisolate._crossinterp = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extisolate._crossinterp)
    for name in ("NotShareableError", "InterpreterError", "InterpreterNotFoundError"):
        setattr(_interpreters, name, getattr(extisolate, name))


if __name__ == "__main__":
    report = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    put_in_place()
    loaded = unittest.defaultTestLoader.loadTestsFromNames(f"test.{n}" for n in sys.argv[2:])
    suite = unittest.TestSuite(t for t in each(loaded) if not left_out(t, sys.argv[1].split()))
    suite.run(Result())
    os._exit(0)
