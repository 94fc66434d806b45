#!/bin/bash
# The Python package: a wheel is built from the checkout, is small and complete, and passes its tests in
# virtual environments.  EXTI_ALL=1: with each CPython that there is, and with what package indexes have of
# numpy, cloudpickle and others; else with the system's CPython and packages.
# shellcheck source=tests/package/lib.sh
. "$(dirname "$0")/lib.sh"
export EXTISOLATE_BUILD=${EXTI_BUILD:-$root/build}

environment() { # PYTHON FOLDER
    [ -x "$2/bin/python" ] || "$1" -m venv ${EXTI_ALL:+--clear} ${EXTI_ALL:---system-site-packages} "$2"
}

# Each thing that has to be in it, and its size.
inspect() { # LABEL WHEEL
    local name listed
    listed=$(python3 -m zipfile -l "$2")
    for name in py.typed _extisolate lib/libextisolate-python.so.0 lib/libextisolate.so.0 lib/libelf.so.1 \
        lib/libnettle.so bin/extisolate licenses/LICENSE licenses/LGPL-3 licenses/GPL-3 \
        licenses/THIRD-PARTY.md; do
        grep -q "^extisolate/$name" <<<"$listed" || { not_ok "$1-wheel_has_$name" "$listed"; return; }
    done
    ok "$1-wheel_is_complete"
    if [ "$(stat -c %s "$2")" -lt 3000000 ]; then
        ok "$1-wheel_is_below_3_MB"
    else
        not_ok "$1-wheel_is_below_3_MB" "$(ls -l "$2")"
    fi
}

# CPython's own tests of what the package has the interface of: they differ where oracle/differences says.
oracle() { # LABEL VENV
    local v=${1%.*} module log=$tmp/log reason how name why
    if ! newer_testsuites 2>"$log"; then
        echo "skip $1-oracle: its tests cannot be had here: $(tail -n 1 "$log")"
        return
    fi
    for module in test_interpreters.test_queues test_interpreters.test_lifecycle test_interpreters.test_api \
        test_concurrent_futures.test_interpreter_pool; do
        PYTHONPATH=$here/oracle:$newer.tests/$v timeout 600 "$2/bin/python" "$here/oracle/run.py" \
            "$(sed -n 's/^-\([^:]*\):.*/\1/p' "$here/oracle/differences" | tr '\n' ' ')" $module \
            >"$tmp/oracle" 2>"$log" || not_ok "$1-oracle-$module" "$(tail -n 5 "$log")"
        [ "$(grep -c ^ok "$tmp/oracle")" -gt 1 ] || not_ok "$1-oracle-$module-tests_run" "$(tail -n 5 "$log")"
        while read -r how name why; do
            reason=$(sed -n "s/^${name//./\\.}: //p" "$here/oracle/differences")
            case $how in
            skipped) echo "skip $1-oracle-$name: $why" ;;
            ok) if [ -z "$reason" ]; then ok "$1-oracle-$name"; else not_ok "$1-oracle-$name" "it differs no more"; fi ;;
            *) if [ -n "$reason" ]; then ok "$1-oracle-$name-differs"; else not_ok "$1-oracle-$name" "$why"; fi ;;
            esac
        done <"$tmp/oracle"
    done
}

# The system's wheel in a CPython that is newer than it.
newer_suite() { # PYTHON
    local label venv
    label=$(version "$1")
    venv=$kept/venv-$label
    if ! unpack_for "$1" "$label" "$venv" "$tmp/dist-$(version $system)"/extisolate-*.whl >"$tmp/log" 2>&1; then
        echo "skip $label: packages cannot be had here: $(grep -v notice "$tmp/log" | tail -n 1)"
        return
    fi
    tests_in "$label" "$venv"
    oracle "$label" "$venv"
}

suite() { # PYTHON
    local exe=$1 label venv log package
    label=$(version "$exe")
    venv=$kept/venv-$label
    log=$tmp/log
    if ! environment "$exe" "$venv" >"$log" 2>&1; then
        rm -rf "$venv"
        echo "skip $label: no virtual environment: $(tail -n 1 "$log")"
        return
    fi
    if [ -n "${EXTI_ALL:-}" ] && ! timeout 600 "$venv/bin/python" -m pip install -q --retries 1 \
        'setuptools>=61' wheel pytest numpy cloudpickle joblib tqdm >"$log" 2>&1; then
        echo "skip $label: packages cannot be had here: $(grep -v notice "$log" | tail -n 1)"
        return
    fi
    # Tests of what there is none of for this version are skipped.
    [ -z "${EXTI_ALL:-}" ] || for package in ipykernel pyarrow 'dask[array,dataframe] distributed'; do
        # shellcheck disable=SC2086
        timeout 600 "$venv/bin/python" -m pip install -q --retries 1 --only-binary :all: $package >"$log" 2>&1
    done
    if ! "$venv/bin/python" -c 'import pytest, setuptools, wheel' 2>"$log"; then
        echo "skip $label: $(tail -n 1 "$log")"
        return
    fi
    if ! build "$venv/bin/python" "$tmp/dist-$label" >"$log" 2>&1; then
        not_ok "$label-wheel_is_built" "$(tail -n 30 "$log")"
        return
    fi
    ok "$label-wheel_is_built"
    inspect "$label" "$tmp/dist-$label"/extisolate-*.whl
    "$venv/bin/python" -m pip install -q --no-deps --force-reinstall --no-index "$tmp/dist-$label"/*.whl >"$log" 2>&1 ||
        not_ok "$label-wheel_is_installed" "$(tail -n 5 "$log")"
    tests_in "$label" "$venv"
}

# What reads the sources.
read_sources() { # VENV
    if ! timeout 300 "$1/bin/python" -m pip install -q --retries 1 mypy ruff >"$tmp/log" 2>&1; then
        echo "skip types_and_style: mypy and ruff cannot be had here"
        return
    fi
    (cd "$source" && "$1/bin/python" -m mypy --cache-dir "$tmp/mypy") >"$tmp/log" 2>&1 &&
        ok types_are_strict || not_ok types_are_strict "$(cat "$tmp/log")"
    (cd "$source" && "$1/bin/python" -m ruff check --no-cache . && "$1/bin/python" -m ruff format --no-cache --check .) \
        >"$tmp/log" 2>&1 && ok style_is_kept || not_ok style_is_kept "$(tail -n 40 "$tmp/log")"
}

# The real ones have the same answer to this question.
free_threaded() {
    "$system" -c 'import runpy, sys, sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1
sys.argv = ["setup.py", "--version"]
runpy.run_path("'"$source"'/setup.py")' >"$tmp/out" 2>"$tmp/err"
    [ $? = 1 ] && [ ! -s "$tmp/out" ] && grep -q 'this is a free-threaded CPython, which needs none: use' "$tmp/err" &&
        ok free_threaded_builds_are_refused || not_ok free_threaded_builds_are_refused "$(cat "$tmp/out" "$tmp/err")"
}

free_threaded
suite $system
[ -z "${EXTI_ALL:-}" ] || read_sources "$kept/venv-$(version $system)"
if [ -n "${EXTI_ALL:-}" ]; then
    for exe in $(pythons | tail -n +2); do suite "$exe"; done
    for exe in $(newer_pythons); do newer_suite "$exe"; done
fi
