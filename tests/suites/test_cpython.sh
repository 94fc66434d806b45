#!/bin/bash
# CPython's own tests of extension modules, in two contexts at once and in the interpreter itself.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/suites/lib.sh"

modules='ctypes json sqlite3 decimal zlib hashlib'
# These tests wait more than they compute.
waiting='ssl threading'

# Debian has the tests in a separate package, and only its files are needed here.  $tmp/debian
# becomes an environment of the system's interpreter in which it and its children find these files
# first.
with_debian_tests() {
    local package="lib$(basename "$(readlink -f $system)")-testsuite" lib
    lib=$($system -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
    mkdir "$tmp/deb" "$tmp/tests"
    (cd "$tmp/deb" && { apt-get download -qq "$package" ||
        { apt-get update -qq && apt-get download -qq "$package"; }; }) >"$tmp/log" 2>&1 &&
        dpkg -x "$tmp"/deb/*.deb "$tmp/deb" && cp -r "$lib/test" "$tmp/tests" &&
        cp -r "$tmp/deb$lib/test" "$tmp/tests" && cp -r "$tmp/deb$lib/ctypes" "$tmp/tests" &&
        $system -m venv --without-pip --system-site-packages "$tmp/debian" &&
        echo "import sys; sys.path.insert(0, '$tmp/tests')" \
            >"$(echo "$tmp"/debian/lib/*/site-packages)/tests.pth"
}

has_file() { "$1" -c "import importlib.util as u; assert u.find_spec('$2')" 2>/dev/null; }

has_all() {
    "$1" -c "
import ctypes, os
ctypes.__path__.append(os.environ.get('EXTI_SUITES_TESTS', '') + '/ctypes')
import $2" 2>/dev/null || has "$1" "$2"
}

suite() { # EXE MODULE
    local exe=$1 module=test.test_$2 label
    label=$(version "$exe")-$2
    has_file "$exe" "$module" || module=test.test_${2%3}
    if ! has_file "$exe" "$module"; then
        echo "skip $label: $exe has no test.test_$2"
    elif ! has_all "$exe" "$module"; then
        echo "skip $label: $exe was built without what $module imports"
    else
        alike "$label" "$exe" unittest "$module"
    fi
}

# The system's interpreter and the newest one; or all.
chosen() {
    if [ -n "$whole" ]; then
        pythons
    else
        { pythons | head -n 1; pythons | tail -n 1; } | uniq
    fi
}

for exe in $(chosen); do
    unset EXTI_SUITES_TESTS
    if ! has "$exe" test.test_json; then
        if [ "$exe" != $system ] || ! command -v apt-get >/dev/null || ! with_debian_tests; then
            echo "skip $(version "$exe"): $exe lacks CPython's tests, and they cannot be fetched"
            continue
        fi
        exe=$tmp/debian/bin/python
        export EXTI_SUITES_TESTS=$tmp/tests
    fi
    for m in $waiting; do
        suite "$exe" "$m" >"$tmp/said-$m" 2>&1 &
    done
    for m in $modules; do
        suite "$exe" "$m"
    done
    wait
    for m in $waiting; do
        cat "$tmp/said-$m"
    done
done
