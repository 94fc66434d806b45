# Shared by the tests of the package: environments that have it, and what pytest says of them.
# shellcheck shell=bash disable=SC2154
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
. "$root/tests/support/newer.bash"
kept=${EXTI_BUILD:-$root/build}/package
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONDONTWRITEBYTECODE=1
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

# Wheels for a CPython without pip, by the system's.
fetch_for() { # VERSION FOLDER PACKAGE...
    local v=$1 folder=$2
    shift 2
    timeout 600 "$system" -m pip install -q --retries 1 --target "$folder" --python-version "$v" --implementation cp \
        --abi "cp${v/./}" --abi abi3 --abi none --platform "manylinux_2_28_$(uname -m)" \
        --platform "manylinux2014_$(uname -m)" --only-binary :all: --ignore-requires-python "$@"
}

# For such a CPython: the packages for its version, and the wheel as it is.
unpack_for() { # PYTHON LABEL VENV WHEEL
    local site
    "$1" -m venv --clear --without-pip "$3" || return
    site=$("$3/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    fetch_for "${2%.*}" "$site" pytest numpy cloudpickle joblib tqdm || return
    "$system" -m zipfile -e "$4" "$site" && chmod +x "$site/extisolate/bin/extisolate"
}

# The package's tests, and the examples of the guides.
tests_in() { # LABEL VENV
    local guide
    cp -r "$source/tests" "$tmp/tests-$1"
    for guide in "$root"/docs/guide-*.md; do
        sed 's/^```.*//' "$guide" >"$tmp/tests-$1/$(basename "$guide" .md).txt"
    done
    (cd "$tmp/tests-$1" && EXTI_EXAMPLES=$root/examples timeout "${EXTI_PYTEST_TIMEOUT:-900}" \
        "$2/bin/python" -m pytest -v -p no:cacheprovider --doctest-glob='guide-*.txt' --color=no -W error::pytest.PytestUnhandledThreadExceptionWarning . >"$tmp/log" 2>&1)
    results "$1" "$tmp/log"
}

# A wheel of the checkout, by the environment's own setuptools, so that nothing is fetched.
build() { # PYTHON OUT
    rm -rf "$2"
    "$1" -m pip wheel -q --no-deps --no-build-isolation -w "$2" "$source"
}
