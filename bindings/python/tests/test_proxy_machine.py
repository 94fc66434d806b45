import os
import subprocess
import sys
from pathlib import Path

import pytest

MACHINE = Path(__file__).with_name("proxy_machine.py")


def machine(*args):
    return subprocess.run(
        [sys.executable, str(MACHINE), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_ends_early_and_nothing_is_left():
    done = machine(os.environ.get("EXTI_STEPS", 15000), os.environ.get("EXTI_SEED", 1))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 1000


@pytest.mark.parametrize(
    ("fault", "found"),
    [("uncounted", ""), ("missed", "are left")],
    ids=["a_reference_that_is_not_counted", "a_collection_that_is_missed"],
)
def test_faults_are_found(fault, found):
    done = machine(1000, 1, fault)
    assert done.returncode != 0
    assert found in done.stderr
