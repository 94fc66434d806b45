#!/bin/bash
# `run` leaves the contexts of the last programs mapped, and unloads those that return before; who closes them gets
# everything back, whichever allocator CPython uses.  test_cycles.sh closes many.
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

# ---- programs that return while others wait for their turn ----

# One processor, so that they begin one by one.
cat >turns.py <<'END'
import atexit, ctypes, extisolate, sys, threading, time
import _ctypes

if len(sys.argv) > 1 and extisolate.index % 2:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
name = _ctypes.__file__.rpartition('/')[2].partition('.')[0]
with open('/proc/self/maps') as maps:
    mapped = {line.split()[-1] for line in maps if '/' + name + '.' in line and 'extisolate-' in line}
atexit.register(print, 'end of', extisolate.index, 'with', len(mapped))
END

turns() { # OPTIONS... -- ARGS...
    local options=()
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    # shellcheck disable=SC2086
    taskset -c 0 $run --python $system --contexts 12 "${options[@]}" turns.py "$@" >out 2>err
}

turns --
rc=$?
most=$(sed 's/.* with //' out | sort -n | tail -n 1)
if [ $rc = 0 ] && [ "$(grep -c '^end of' out)" = 12 ] && [ "$most" -le 6 ]; then
    ok contexts_of_programs_that_have_returned_are_unloaded
else
    not_ok contexts_of_programs_that_have_returned_are_unloaded "status $rc, $most mapped" "$(cat out err)"
fi

# A thread may run in their code.
turns -- threads
rc=$?
most=$(sed 's/.* with //' out | sort -n | tail -n 1)
if [ $rc = 0 ] && [ "$(grep -c '^end of' out)" = 12 ] && [ "$most" -ge 6 ]; then
    ok but_not_while_a_thread_of_theirs_lives
else
    not_ok but_not_while_a_thread_of_theirs_lives "status $rc, $most mapped" "$(cat out err)"
fi

# What copies have registered with a library that others use may be called.  Debian's libpython needs libexpat.
turns --share 'libexpat*' --
rc=$?
most=$(sed 's/.* with //' out | sort -n | tail -n 1)
if [ $rc = 0 ] && [ "$most" = 12 ]; then
    ok nor_while_a_shared_library_may_call_them
else
    not_ok nor_while_a_shared_library_may_call_them "status $rc, $most mapped" "$(cat out err)"
fi

# Those that have returned have ended well before the signal, so the process exits by the others' status.
cat >last.py <<'END'
import extisolate, os, signal, time

if extisolate.index == extisolate.count - 1:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
END
# shellcheck disable=SC2086
taskset -c 0 $run --python $system --contexts 8 last.py >out 2>err
rc=$?
if [ $rc = 143 ] && [ ! -s err ]; then
    ok a_program_ends_by_a_signal_when_others_have_been_unloaded
else
    not_ok a_program_ends_by_a_signal_when_others_have_been_unloaded "status $rc" "$(cat out err)"
fi
