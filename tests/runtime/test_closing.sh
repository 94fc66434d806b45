#!/bin/bash
# `run` keeps its contexts mapped; who closes them gets everything back, whichever allocator CPython uses.
# test_cycles.sh closes many.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
# tests/lsan.supp knows the interpreter's leaks by the library, which is unloaded here.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

for malloc in pymalloc malloc pymalloc_debug; do
    PYTHONMALLOC=$malloc "${EXTI_BUILD:-$root/build}/tests/cycle" 2 $system 'import json, ssl' >out 2>err
    rc=$?
    if [ $rc = 0 ] && [ "$(grep -c '^cycle [01] status 0 left 0 ' out)" = 2 ]; then
        ok "closed_with_$malloc"
    else
        not_ok "closed_with_$malloc" "status $rc" "$(cat out err)"
    fi
done
