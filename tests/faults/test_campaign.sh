#!/bin/bash
# Each system call of the program fails, once and for good.  EXTI_ALL=1: all of them, with each error.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
cc -shared -fPIC -O1 -o fail_at.so "$ROOT/tests/faults/fail_at.c" -ldl || { echo 'not ok shim: it cannot be built'; exit 1; }
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
python3 -I -S "$ROOT/tests/faults/campaign.py" "$EXTISOLATE" "$T/fail_at.so" "$T" \
    "$([ "${EXTI_ALL:-}" = 1 ] && echo all || echo some)" "$@"
