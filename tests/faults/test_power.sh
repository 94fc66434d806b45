#!/bin/bash
# What a power loss may leave of a copy is healed by a rerun.  EXTI_ALL=1: each state; else some.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
faults_by record power
