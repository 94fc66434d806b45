#!/bin/bash
# Processes and threads use the same directories while sources are replaced: for EXTI_RACE_SECONDS, by default 6, or 20
# with EXTI_ALL=1.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
build=$(realpath "${EXTI_BUILD:-$ROOT/build}")
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
cc -O1 -I"$ROOT/include" -o threads "$ROOT/tests/races/threads.c" -L"$build" -lextisolate -Wl,-rpath,"$build" -pthread ||
    { echo 'not ok threads: it cannot be built'; exit 1; }
# Another version of a library and of an extension, of another size.
mkdir other && cp tree/*.so tree/*.so.1 other/ &&
    echo 'static char more[9999] = {1}; int inner(void); int inner(void) { return 1 + more[0]; }' >inner2.c &&
    cc -shared -fPIC -o other/libinner.so.1 inner2.c -Wl,-soname,libinner.so.1 &&
    cc -shared -fPIC -g3 -o other/one.cpython-311-x86_64-linux-gnu.so one.c tree/libouter.so.1 -Wl,-rpath,'$ORIGIN' ||
    { echo 'not ok other: it cannot be built'; exit 1; }
seconds=6
[ -z "${EXTI_ALL:-}" ] || seconds=20
python3 -I -S "$ROOT/tests/races/races.py" "$EXTISOLATE" "$T/threads" "$T" "${EXTI_RACE_SECONDS:-$seconds}"
