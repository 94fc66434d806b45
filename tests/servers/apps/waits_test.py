"""Tests for pytest, the last of which waits until somebody ends the run."""

import sys
import time

import pytest


@pytest.fixture(scope="module")
def resource():
    yield 7
    print("resource is given back")


@pytest.mark.parametrize("n", range(5))
def test_passes(n, resource):
    assert resource == 7


def test_fails():
    assert [1, 2, 3] == [1, 2, 4]


def test_waits(resource):
    # In one line, so that a traceback is the same whenever the signal comes.
    print("is ready", file=sys.__stdout__, flush=True) or time.sleep(600)
