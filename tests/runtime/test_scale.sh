#!/bin/bash
# Two hundred contexts with numpy in one process.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

if ! has $system numpy; then
    echo "skip two_hundred_contexts_with_numpy: $system has no numpy"
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
# shellcheck disable=SC2086
$system measure.py $run --python $system --contexts 200 --prove many.py >out 2>err
rc=$?
tail -1 err
if [ $rc = 0 ] && [ "$(cut -d' ' -f2 out | sort -un | wc -l)" = 200 ] &&
    [ "$(cut -d' ' -f3 out | sort -un | wc -l)" = 200 ] &&
    [ "$(awk '$4 == 0 && $2 > 15' err | wc -l)" = 200 ]; then
    ok two_hundred_contexts_with_numpy
else
    not_ok two_hundred_contexts_with_numpy "status $rc" "$(tail -30 err)"
fi
[ -z "$(find "$tmp" -maxdepth 1 -name 'extisolate-*')" ] && ok two_hundred_leave_nothing ||
    not_ok two_hundred_leave_nothing
