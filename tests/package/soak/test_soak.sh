#!/bin/bash
# Long use of the Python package: a pool of 4 that calls seven packages EXTI_CALLS times each, 10000 by default,
# and EXTI_INTERPRETERS interpreters, 1000, one after the other, with torch, or numpy where there is none.  By the
# system's CPython, by those of Debian's next release with its packages, and, with EXTI_ALL=1, by all others from 3.12
# on, with PyPI's packages but for torch, which is too large.
# shellcheck source=tests/package/lib.sh
. "$(dirname "$0")/../lib.sh"
export EXTISOLATE_BUILD=${EXTI_BUILD:-$root/build} OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export JE_ARROW_MALLOC_CONF=background_thread:false # the pool's interpreters are unloaded
jobs=$root/tests/package/soak

# The programs print results as tests/run.sh reads them, without a label.
soak() { # LABEL COMMAND...
    local label=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err" || not_ok "$label-$(basename "$2" .py)" "$(tail -n 20 "$tmp/err")"
    sed -E "s/^(ok|not ok|skip) /\1 $label-/" "$tmp/out"
    sed -n 's/^# /    /p' "$tmp/err"
}

all_of() { # LABEL PYTHON
    local with=numpy
    has "$2" torch && with=torch
    soak "$1" "$2" "$jobs/calls.py" "${EXTI_CALLS:-10000}"
    soak "$1" "$2" "$jobs/contexts.py" $with "${EXTI_INTERPRETERS:-1000}"
}

"$system" -m venv --system-site-packages "$tmp/venv" && build "$tmp/venv/bin/python" "$tmp/dist" >"$tmp/log" 2>&1 &&
    "$tmp/venv/bin/python" -m pip install -q --no-deps --no-index "$tmp/dist"/*.whl >"$tmp/log" 2>&1 || {
    not_ok package_is_installed "$(tail -n 20 "$tmp/log")"
    exit
}
has "$tmp/venv/bin/python" pyarrow || # the last for the numpy of Debian 12
    timeout 600 "$tmp/venv/bin/python" -m pip install -q --no-deps --only-binary :all: 'pyarrow<19' >"$tmp/log" 2>&1
all_of "$(version $system)" "$tmp/venv/bin/python"

others() {
    local exe
    [ -z "${EXTI_ALL:-}" ] || for exe in $(pythons); do
        "$exe" -c 'import sys; sys.exit(sys.version_info < (3, 12))' && echo "$exe"
    done
}

for exe in $(others); do
    label=$(version "$exe")
    venv=$tmp/venv-$label
    "$exe" -m venv "$venv" && timeout 1200 "$venv/bin/python" -m pip install -q --only-binary :all: numpy scipy \
        pandas pyarrow lxml scikit-learn cloudpickle "$tmp/dist"/*.whl >"$tmp/log" 2>&1 || {
        echo "skip $label: packages cannot be had here: $(tail -n 1 "$tmp/log")"
        continue
    }
    all_of "$label" "$venv/bin/python"
done

# Debian builds its packages for each of its CPythons, where they can be built; else PyPI may have them.
newer=$kept/newer-with-packages
newer_extra=(python3-numpy python3-scipy python3-pandas python3-pyarrow python3-lxml python3-torch python3-sklearn)
mkdir "$tmp/site" && "$system" -m zipfile -e "$tmp/dist"/*.whl "$tmp/site" &&
    chmod +x "$tmp/site/extisolate/bin/extisolate"
for exe in $(newer_pythons); do
    libraries=$newer/usr/lib/$(uname -m)-linux-gnu
    label=$(version "$exe")
    cat >"$tmp/python" <<EOF
#!$system
import os, sys
os.environ["LD_LIBRARY_PATH"] = "$libraries:$libraries/blas:$libraries/lapack:$newer/usr/lib"
os.environ["PYTHONPATH"] = "$tmp/site:$tmp/site-$label:$newer/usr/lib/python3/dist-packages"
os.execv("$exe", ["$exe", *sys.argv[1:]])
EOF
    chmod +x "$tmp/python"
    for module in pandas pyarrow lxml.etree; do
        has "$tmp/python" $module || fetch_for "${label%.*}" "$tmp/site-$label" --no-deps ${module%.*} >"$tmp/log" 2>&1
    done
    all_of "$label" "$tmp/python"
done
