#!/bin/bash
# The package's tests of proxies and tasks, and of calls and closes at once, with the libraries of a sanitizer's build
# and the extension module built for it, too.
# SAN names the sanitizer; EXTI_KEEP is for pytest's -k.  CPython's own accesses are not looked at.
# shellcheck source=tests/package/lib.sh
. "$(dirname "$0")/../lib.sh"
venv=$kept/venv-sanitized

prepare() {
    local package name
    "$system" -m venv --clear --system-site-packages "$venv" || return
    package=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/extisolate
    cp -r "$source/src/extisolate" "$package" && mkdir -p "$package/lib" "$package/bin" || return
    cp "$kept/../extisolate" "$package/bin/" || return
    for name in libextisolate libextisolate-link libextisolate-python; do
        cp "$kept/../$name.so" "$package/lib/$name.so.0" || return
    done
    # shellcheck disable=SC2046
    cc -shared -fPIC -O1 -g -std=c11 -fvisibility=hidden -fsanitize="$SAN" -iquote "$root" -I "$root/include" \
        $("$system" -c 'import sysconfig; print("-I" + sysconfig.get_path("include"))') -D_GNU_SOURCE \
        -DPy_LIMITED_API=0x030B0000 "$source"/ext/*.c -o "$package/_extisolate.abi3.so" \
        "$package"/lib/libextisolate*.so.0 -Wl,--disable-new-dtags,-rpath,"\$ORIGIN/lib"
}

# What a sanitizer cannot run, or would report though it is meant.
without=
leave_out() { # TEST WHY
    echo "skip ${SAN%%,*}-$1: $2"
    without="$without${without:+ and }not $1"
}

if [ -z "${SAN:-}" ]; then
    echo "skip proxies: SAN names no sanitizer"
elif ! prepare >"$tmp/log" 2>&1; then
    not_ok built "$(tail -n 30 "$tmp/log")"
else
    leave_out test_a_child_has_no_proxies 'it ends children that start threads'
    leave_out test_a_forked_child_that_has_threads_ends 'the same'
    leave_out test_objects_are_let_go_of_without_memory 'it needs memory of its own'
    leave_out test_faults_are_found 'the faults may end a process'
    [ "${SAN%%,*}" != address ] || leave_out test_memory_does_not_grow 'it keeps what is freed'
    cp -r "$source/tests" "$tmp/tests"
    (cd "$tmp/tests" && LD_PRELOAD=$(cc -print-file-name=lib"${SAN:0:1}"san.so) timeout "${EXTI_PYTEST_TIMEOUT:-3600}" \
        "$venv/bin/python" -m pytest -v -p no:cacheprovider --color=no -k "$without${EXTI_KEEP:+ and ($EXTI_KEEP)}" test_proxies.py \
        test_proxy_machine.py test_tasks.py \
        test_process.py::test_interpreters_are_called_interrupted_and_closed_at_once \
        >"$tmp/log" 2>&1) || [ $? = 1 ] || not_ok ends "$(tail -n 30 "$tmp/log")"
    results "${SAN%%,*}" "$tmp/log"
fi
exit 0 # what failed is said
