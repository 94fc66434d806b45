#!/bin/bash
# The Python package: a wheel is built from the checkout, is small and complete, and passes its tests in
# virtual environments.  EXTI_ALL=1: with each CPython that there is, and with what package indexes have of
# numpy, cloudpickle and others; else with the system's CPython and packages.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
. "$root/tests/support/newer.bash"
kept=${EXTI_BUILD:-$root/build}/package
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONDONTWRITEBYTECODE=1
export EXTISOLATE_BUILD=${EXTI_BUILD:-$root/build}
unset EXTISOLATE
source=$root/bindings/python

# Of pytest's lines to those of tests/run.sh.
results() { # LABEL LOG
    awk -v label="$1" '
        / PASSED( |$)/ { sub(/^[^:]*::/, ""); sub(/ PASSED.*/, ""); gsub(/ /, "_"); print "ok " label "-" $0; n++ }
        / (FAILED|ERROR)( |$)/ { sub(/^[^:]*::/, ""); sub(/ (FAILED|ERROR).*/, ""); gsub(/ /, "_")
            print "not ok " label "-" $0; n++; bad = 1 }
        / SKIPPED( |$)/ { name = $0; sub(/^[^:]*::/, "", name); sub(/ SKIPPED.*/, "", name)
            reason = $0; sub(/.* SKIPPED *\(?/, "", reason); sub(/\)? *\[.*/, "", reason)
            print "skip " label "-" name ": " reason; n++ }
        END { if (!n) print "not ok " label "-tests_run" }' "$2"
    grep -q ' FAILED\| ERROR' "$2" && sed 's/^/    /' "$2" | tail -n 80
}

environment() { # PYTHON FOLDER
    [ -x "$2/bin/python" ] || "$1" -m venv ${EXTI_ALL:+--clear} ${EXTI_ALL:---system-site-packages} "$2"
}

build() { # PYTHON OUT: by the environment's own setuptools, so that nothing is fetched
    rm -rf "$2"
    "$1" -m pip wheel -q --no-deps --no-build-isolation -w "$2" "$source"
}

# Each thing that has to be in it, and its size.
inspect() { # LABEL WHEEL
    local name listed
    listed=$(python3 -m zipfile -l "$2")
    for name in py.typed _extisolate lib/libextisolate-python.so.0 lib/libextisolate.so.0 lib/libelf.so.1 \
        lib/libnettle.so lib/libjansson.so.4 bin/extisolate licenses/LICENSE licenses/LGPL-3 licenses/GPL-3 \
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

# For a CPython without pip: the packages for its version, by the system's pip, and the wheel as it is.
unpack_for() { # PYTHON LABEL VENV WHEEL
    local site v=${2%.*}
    "$1" -m venv --clear --without-pip "$3" || return
    site=$("$3/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    timeout 600 "$system" -m pip install -q --retries 1 --target "$site" --python-version "$v" --implementation cp \
        --abi "cp${v/./}" --abi abi3 --abi none --platform "manylinux_2_28_$(uname -m)" \
        --platform "manylinux2014_$(uname -m)" --only-binary :all: --ignore-requires-python pytest numpy cloudpickle joblib || return
    "$system" -m zipfile -e "$4" "$site" && chmod +x "$site/extisolate/bin/extisolate"
}

tests_in() { # LABEL VENV
    cp -r "$source/tests" "$tmp/tests-$1"
    (cd "$tmp/tests-$1" && timeout "${EXTI_PYTEST_TIMEOUT:-900}" "$2/bin/python" -m pytest -v -p no:cacheprovider \
        --color=no -W error::pytest.PytestUnhandledThreadExceptionWarning . >"$tmp/log" 2>&1)
    results "$1" "$tmp/log"
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
    local exe=$1 label venv log
    label=$(version "$exe")
    venv=$kept/venv-$label
    log=$tmp/log
    if ! environment "$exe" "$venv" >"$log" 2>&1; then
        rm -rf "$venv"
        echo "skip $label: no virtual environment: $(tail -n 1 "$log")"
        return
    fi
    if [ -n "${EXTI_ALL:-}" ] && ! timeout 600 "$venv/bin/python" -m pip install -q --retries 1 \
        'setuptools>=61' wheel pytest numpy cloudpickle joblib >"$log" 2>&1; then
        echo "skip $label: packages cannot be had here: $(grep -v notice "$log" | tail -n 1)"
        return
    fi
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

suite $system
[ -z "${EXTI_ALL:-}" ] || read_sources "$kept/venv-$(version $system)"
if [ -n "${EXTI_ALL:-}" ]; then
    for exe in $(pythons | tail -n +2); do suite "$exe"; done
    for exe in $(newer_pythons); do newer_suite "$exe"; done
fi
