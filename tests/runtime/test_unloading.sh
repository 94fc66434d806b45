#!/bin/bash
# Of many contexts, those whose programs have ended are unloaded while others run.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
# tests/lsan.supp knows the interpreter's leaks by the library, which is unloaded here.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
# What is many goes by the processors.
run="taskset -c 0 $run"
many=24

# How many contexts have a libpython when the last one ends.
cat >count.py <<'END'
import extisolate, re
if extisolate.index == extisolate.count - 1:
    with open("/proc/self/maps") as maps:
        found = {m[1] for m in map(re.compile(r".*/(\d+)/libpython").match, maps) if m}
    with open("found", "w") as f:
        f.write(str(len(found)))
print("ok", extisolate.index)
END
check many_contexts_run_one_after_the_other 0 $run --python $system --contexts $many count.py
[ "$(sort -u out | wc -l)" = $many ] && ok each_has_printed || not_ok each_has_printed "$(sort -u out | wc -l)"
[ "$(cat found)" -lt $many ] && ok those_that_have_ended_are_unloaded ||
    not_ok those_that_have_ended_are_unloaded "$(cat found) of $many are loaded"
check few_contexts_run 0 $run --python $system --contexts 4 count.py
[ "$(cat found)" = 4 ] && ok control_few_contexts_stay || not_ok control_few_contexts_stay "$(cat found) of 4"

# What a context leaves behind keeps it mapped, and does the others no harm.
cat >leaves.py <<'END'
import atexit, ctypes, extisolate, os, signal, sys, threading, time
way = extisolate.index % 4
if way == 0:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
elif way == 1:
    signal.signal(signal.SIGUSR1, lambda *args: None)
    atexit.register(print, "ok atexit", extisolate.index, flush=True)
elif way == 2:
    # A thread that is not Python's.
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    assert not libc.pthread_create(ctypes.byref(thread), None, libc.sleep, ctypes.c_void_p(2))
sys.stdout.flush()
if way == 3 and extisolate.index % 8 == 3:
    os._exit(0)
END
check what_contexts_leave_behind_does_no_harm 0 $run --python $system --contexts $many leaves.py
[ "$(grep -c atexit out)" = $((many / 4)) ] && ok their_exit_functions_have_run ||
    not_ok their_exit_functions_have_run "$(cat out err)"

# A status is its context's, whether it was unloaded or not.
check a_status_of_many_is_kept 7 $run --python $system --contexts $many \
    -c 'import extisolate, sys; sys.exit(7 if extisolate.index == 1 else 0)'
no_traces nothing_is_left
