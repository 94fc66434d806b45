#!/bin/bash
# Each system call of the program fails, once and for good.  EXTI_ALL=1: all of them, with each error.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
faults_by fail_at campaign "$@"
