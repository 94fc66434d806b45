#!/bin/bash
# CPythons that are newer than the system's have the configuration, output and exit status of the
# interpreter in contexts, and nothing is left of closed ones.
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/newer.bash"
. "$root/tests/runtime/cycles.bash"
cd "$tmp" || exit 1
unset PYTHONHASHSEED PYTHONDEVMODE PYTHONTRACEMALLOC PYTHONUTF8

newest=$(newer_pythons 2>&1)
if grep '^skip' <<<"$newest"; then exit; fi
newer_program "${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}" "$tmp/extisolate" || exit
newer_program "$cycle" "$tmp/cycle" || exit
cycle=$tmp/cycle
run="$tmp/extisolate run"

cat >work.py <<'END'
import asyncio, ctypes, decimal, hashlib, json, sqlite3, ssl, subprocess, sys, threading
assert "%d.%d.%d" % sys.version_info[:3] == sys.argv[1]
assert ctypes.pythonapi.Py_IsInitialized() == 1
assert sqlite3.connect(":memory:").execute("select 6 * 7").fetchone() == (42,)
assert asyncio.run(asyncio.sleep(0.01, 5)) == 5
assert subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True).stdout == b"7\n"
END

# All options of the configuration, but those that run sets otherwise on purpose.
cat >options.py <<'END'
import ctypes
api = ctypes.pythonapi
api.PyConfig_Names.restype = api.PyConfig_Get.restype = ctypes.py_object
own = {"configure_c_stdio", "configure_locale", "faulthandler", "install_signal_handlers",
       "parse_argv", "run_filename"}
for name in sorted(api.PyConfig_Names() - own):
    print(name, repr(api.PyConfig_Get(name.encode())))
END

same_options() { # NAME EXE SETTING
    local name=$1 exe=$2
    env "$3" "$exe" options.py >want.out 2>&1
    # The folder by which children find the module of contexts is one of the program's.
    env "$3" $run --python "$exe" options.py 2>&1 |
        sed -E "s%, '[^']*/extisolate-[A-Za-z0-9]{6}/[A-Za-z0-9]{6}/python'\]%]%" >got.out
    if grep -q '^hash_seed' want.out && cmp -s want.out got.out; then
        ok "$name"
    else
        not_ok "$name" "$(diff want.out got.out)"
    fi
}

# A version that no test knows.
cat >future.sh <<'END'
#!/bin/sh
"$REAL" "$@" | sed -z 's/^minor=.*/minor=99/; s/^version=.*/version=3.99.1/'
END
chmod +x future.sh

for exe in $newest; do
    v=$(version "$exe")
    check "$v-work" 0 $run --python "$exe" --contexts 2 --prove work.py "$v"
    check "$v-work-renamed" 0 $run --rename --python "$exe" --contexts 2 --prove work.py "$v"
    cycles "$v-nothing_is_left" 256 10 30 "$exe" "$stdlib"
    for setting in A=1 PYTHONDEVMODE=1 PYTHONHASHSEED=7 PYTHONHASHSEED=random PYTHONUTF8=0 \
        PYTHONTRACEMALLOC=3 PYTHONPERFSUPPORT=1 PYTHON_PERF_JIT_SUPPORT=1 \
        PYTHONINTMAXSTRDIGITS=700 PYTHON_CPU_COUNT=3 PYTHONSAFEPATH=1 \
        PYTHON_THREAD_INHERIT_CONTEXT=1 PYTHON_CONTEXT_AWARE_WARNINGS=1 \
        PYTHONNODEBUGRANGES=1 PYTHON_FROZEN_MODULES=off PYTHON_LAZY_IMPORTS=all \
        PYTHONMALLOC=debug PYTHONWARNDEFAULTENCODING=1 PYTHON_DISABLE_REMOTE_DEBUG=1 \
        PYTHONPYCACHEPREFIX=/x PYTHONOPTIMIZE=2 PYTHONUNBUFFERED=1 PYTHONIOENCODING=latin-1; do
        same_options "$v-options-$setting" "$exe" "$setting"
    done
    # What is not text in the locale's encoding arrives as it was given.
    # shellcheck disable=SC2016
    check "$v-arguments-of-any-bytes" 0 $run --python "$exe" -c 'import os, sys
assert [os.fsencode(a) for a in sys.argv[1:]] == [b"\xff", b"\xc3\xa9"], sys.argv
assert sys.orig_argv[-2:] == sys.argv[1:], sys.orig_argv' $'\xff' $'\xc3\xa9'
    export REAL=$exe
    check "$v-as-an-untested-version" 0 $run --python ./future.sh -c 1
    if grep -q '^extisolate: note: CPython 3.99.1 is newer than 3.15, ' err; then
        ok "$v-untested-version-is-noted"
    else
        not_ok "$v-untested-version-is-noted" "$(cat err)"
    fi
done
EXTISOLATE=$tmp/extisolate EXTI_ONLY_PYTHONS=$newest "$root/tests/runtime/test_semantics.sh"
