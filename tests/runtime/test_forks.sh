#!/bin/bash
# One context with OpenBLAS threads forks while another's OpenBLAS computes and others open and close
# libraries: no child dies or hangs, and each can compute and import (EXTI_FORKS: how many forks).
# OpenBLAS 0.3.21 deadlocks by itself if the context that forks is computing.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

if ! has $system numpy; then
    echo "skip children_of_one_context_live: $system has no numpy"
    exit 0
fi
if [ "$sanitizer" = a ]; then
    echo "skip children_of_one_context_live:" \
        "the address sanitizer's allocator may be locked in a forked child"
    exit 0
fi
n=${EXTI_FORKS:-${EXTI_ALL:+10000}}
cat >forks.py <<'END2'
import extisolate, numpy as np, os, sys, time
done = sys.argv[2]
a = np.random.default_rng(extisolate.index).random((200, 200))
a @ a

def compute():
    while not os.path.exists(done):
        a @ a

def fork(number):
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.close(0)
            b = a[:8, :8] @ np.eye(8)
            import _queue  # an extension that is not loaded yet
            code = 0 if (b == a[:8, :8]).all() else 4
        finally:
            os._exit(code)
    a @ a  # which starts the threads again
    deadline = time.monotonic() + 60
    while True:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            break
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return f"child {number} hangs"
        time.sleep(0.0005)
    return f"child {number} ended with {status}" if status else None

if extisolate.index == 0:
    try:
        wrong = [w for i in range(int(sys.argv[1])) if (w := fork(i))]
    finally:
        open(done, "w").close()
    print("wrong", len(wrong), wrong[:3], flush=True)
elif extisolate.index == 1:
    compute()
else:
    import _ctypes
    rounds = 0
    while not os.path.exists(done):
        _ctypes.dlclose(_ctypes.dlopen(sys.argv[3], 2))
        rounds += 1
    print("rounds", rounds > 10, flush=True)
END2
cat >plain.c <<'END2'
int plain;
END2
gcc -shared -fPIC -o plain.so plain.c
# shellcheck disable=SC2086
OPENBLAS_NUM_THREADS=2 timeout $((120 + ${n:-100})) $run --python $system --contexts 4 --prove \
    forks.py "${n:-100}" "$tmp/done" "$tmp/plain.so" >out 2>err
rc=$?
if [ $rc = 0 ] && grep -qx 'wrong 0 \[\]' out && [ "$(grep -c 'rounds True' out)" = 2 ]; then
    ok children_of_one_context_live
else
    not_ok children_of_one_context_live "status $rc" "$(cat out)" "$(tail -30 err)"
fi
