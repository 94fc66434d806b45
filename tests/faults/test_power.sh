#!/bin/bash
# What a power loss may leave of a copy is healed by a rerun.  EXTI_ALL=1: each state; else some.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
cc -shared -fPIC -O1 -o record.so "$ROOT/tests/faults/record.c" -ldl || { echo 'not ok shim: it cannot be built'; exit 1; }
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
python3 -I -S "$ROOT/tests/faults/power.py" "$EXTISOLATE" "$T/record.so" "$T" \
    "$([ "${EXTI_ALL:-}" = 1 ] && echo all || echo some)"
