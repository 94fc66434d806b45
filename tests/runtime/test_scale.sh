#!/bin/bash
# Two hundred contexts with numpy in one process (EXTI_SCALE: another number).
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

if ! has $system numpy; then
    echo "skip contexts_with_numpy: $system has no numpy"
    exit 0
fi
cat >many.py <<'END'
import numpy as np, extisolate, sys, threading
a = np.arange(10000.0).reshape(100, 100)
assert (a @ np.eye(100) == a).all()
np.changed = extisolate.index
print("ok", extisolate.index, id(np.ndarray))
END
cat >measure.py <<'END'
import resource, subprocess, sys, time
start = time.time()
rc = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%.1f s, %.1f s of processor, %d MB at most" % (
    time.time() - start, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024), file=sys.stderr)
sys.exit(rc)
END

# The kilobytes that one context's copies take, and those that are free; a tenth of them stays free.
# shellcheck disable=SC2086
$run --python $system --contexts 1 --dir one many.py >out 2>err ||
    not_ok one_context "$(tail -30 err)"
each=$(du -sk one | cut -f1)
rm -r one
free=$(df -k --output=avail . | tail -1)
n=${EXTI_SCALE:-200}
if [ $((n * each)) -gt $((free / 10 * 9)) ]; then
    echo "skip contexts_with_numpy-$n: $free KB of disk, of which $n contexts take $((n * each))"
    n=$((free / 10 * 9 / each))
fi

# shellcheck disable=SC2086
$system measure.py $run --python $system --contexts "$n" --prove many.py >out 2>err
rc=$?
tail -1 err
if [ $rc = 0 ] && [ "$(cut -d' ' -f2 out | sort -un | wc -l)" = "$n" ] &&
    [ "$(cut -d' ' -f3 out | sort -un | wc -l)" = "$n" ] &&
    [ "$(awk '$4 == 0 && $2 > 15' err | wc -l)" = "$n" ]; then
    ok "contexts_with_numpy-$n"
else
    not_ok "contexts_with_numpy-$n" "status $rc" "$(tail -30 err)"
fi
[ -z "$(find "$tmp" -maxdepth 1 -name 'extisolate-*')" ] && ok contexts_leave_nothing ||
    not_ok contexts_leave_nothing
