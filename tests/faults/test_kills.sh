#!/bin/bash
# The program is killed at its system calls; a rerun completes what it began.  EXTI_ALL=1: at each of them.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
build=$(realpath "${EXTI_BUILD:-$ROOT/build}")
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
cc -shared -fPIC -O1 -o fail_at.so "$ROOT/tests/faults/fail_at.c" -ldl || { echo 'not ok shim: it cannot be built'; exit 1; }
cc -O1 -I"$ROOT/include" -o copy_many "$ROOT/tests/faults/copy_many.c" -L"$build" -lextisolate -Wl,-rpath,"$build" ||
    { echo 'not ok copy_many: it cannot be built'; exit 1; }
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
python3 -I -S "$ROOT/tests/faults/kills.py" "$EXTISOLATE" "$T/copy_many" "$T/fail_at.so" "$T" \
    "$([ "${EXTI_ALL:-}" = 1 ] && echo all || echo some)"
