#!/bin/sh
# Contexts in hosts that export the API themselves, or that RTLD_DEEPBIND could not serve.
set -u
# shellcheck source=tests/isolation/host.sh
. tests/isolation/host.sh
toys=$build/toys
PATH=$PATH:/sbin # a user may lack it, and with it ldconfig

if ! sh testdata/src/toy/build.sh "$toys"; then
    echo "not ok toys: they cannot be built"
    exit 1
fi

# host NAME FLAGS...
host()
{
    name=$1
    shift
    compile "$name" tests/isolation/host_toy.c "$@"
}

# check NAME COMMAND...: runs the command once for each flavour of the toy libraries.  In it {}
# stands for the flavour's folder, and [] for its name.
check()
{
    name=$1
    shift
    n=0
    while read -r flavour; do
        set -f
        command=$(printf '%s\n' "$*" | sed "s|{}|$toys/$flavour|g; s|\[\]|$flavour|g")
        # shellcheck disable=SC2086
        if ! env EXTI_BUILD="$build" $command >"$tmp/log" 2>&1; then
            sed 's/^/# /' "$tmp/log"
            echo "not ok $name with the toy libraries of flavour $flavour"
            return
        fi
        n=$((n + 1))
    done <"$toys/flavours"
    echo "ok $name ($n flavours)"
}

toy_host="-rdynamic -Itestdata/src/toy testdata/src/toy/toy_host.c"
# shellcheck disable=SC2086
host plain && host exporting $toy_host || {
    echo "not ok hosts: they cannot be built"
    exit 1
}

check no_api_in_host "$tmp/plain" [] 0
check private_names_asked_for "$tmp/plain" [] 1 rename
check host_exports_api "$tmp/exporting" [] 1
check original_opened_globally "$tmp/plain" [] 1 global {}/libtoy.so.1
check other_implementation_opened_globally "$tmp/plain" [] 1 global "$toys/libtoyhost.so.1"
check original_and_extension_opened_globally "$tmp/plain" [] 1 global {}/libtoy.so.1 \
    global {}/ext_a.so global {}/ext_cxx.so
check original_preloaded LD_PRELOAD={}/libtoy.so.1 "$tmp/plain" [] 1
check host_exports_api_bound_now LD_BIND_NOW=1 "$tmp/exporting" [] 1

# shellcheck disable=SC2086
# The leak sanitizer stops the process by ptrace, which qemu-user has not.
[ -z "${EXTI_EMULATED:-}" ] || export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
if host asan -fsanitize=address && host asan_exporting -fsanitize=address $toy_host; then
    check asan_host "$tmp/asan" [] 0
    check asan_host_exports_api "$tmp/asan_exporting" [] 1
else
    echo "skip asan_host: $cc has no address sanitizer here"
fi

jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc.so.2.* => //p' | head -n 1)
if [ -n "$jemalloc" ]; then
    check jemalloc_host "LD_PRELOAD=$jemalloc" "$tmp/plain" [] 0
    check jemalloc_host_exports_api "LD_PRELOAD=$jemalloc" "$tmp/exporting" [] 1
else
    echo "skip jemalloc_host: libjemalloc.so.2 is not installed (package libjemalloc2)"
fi

python=/usr/bin/python3
libpython=$(ldconfig -p | sed -n 's/.*libpython3\.[0-9]*\.so\.1\.0.* => //p' | head -n 1)
if [ -z "$libpython" ] || ! $python -c 'import numpy' 2>/dev/null; then
    echo "skip python_host: needs $python with numpy and a shared libpython"
    exit 0
fi
run_python()
{
    name=$1
    shift
    if EXTI_LIBRARY=$build/libextisolate.so EXTI_LIBPYTHON=$libpython EXTI_TMP=$tmp \
        timeout 1200 "$@" >"$tmp/log" 2>&1 && grep -q '^isolated$' "$tmp/log"; then
        echo "ok $name"
    else
        sed 's/^/# /' "$tmp/log"
        echo "not ok $name"
    fi
}
run_python python_host $python tests/isolation/host_python.py
if [ -n "$jemalloc" ]; then
    run_python python_host_with_jemalloc env LD_PRELOAD="$jemalloc" $python \
        tests/isolation/host_python.py
fi
if include=$($python -c 'import sysconfig; print(sysconfig.get_path("include"))') &&
    [ -f "$include/Python.h" ]; then
    if gcc -O1 -g -shared -fPIC -iquote . -I include -I"$include" tests/isolation/host_pyext.c \
        -o "$tmp/host_pyext.so" -L"$build" -lextisolate -Wl,-rpath,"$build"; then
        run_python extension_in_python_host env PYTHONPATH="$tmp" $python -c \
            'import host_pyext, os; host_pyext.check(os.environ["EXTI_LIBPYTHON"])'
    else
        echo "not ok extension_in_python_host: it cannot be built"
    fi
else
    echo "skip extension_in_python_host: Python.h is not installed (package python3-dev)"
fi
