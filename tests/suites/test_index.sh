#!/bin/bash
# The suites of packages from the package index, in their newest versions, in two contexts at once and in the
# interpreter itself: the short ones, or with EXTI_SUITES=all each to its end.  EXTI_SUITES_ONLY names those to run,
# as PACKAGE or PACKAGE-PART.  Packages stay in the build folder; without network they are skipped.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/suites/lib.sh"
kept=${EXTI_BUILD:-$root/build}/suites
# shellcheck source=tests/support/index.bash
. "$root/tests/support/index.bash"
have_venv || exit 0
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# What one suite needs of pytest's plugins is not for the others.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1

short='h5py lxml'
long='pyzmq tornado joblib pytest scipy scikit-learn pandas'

needs() { # PACKAGE
    case $1 in
    h5py) echo h5py pytest-mpi ;;
    pyzmq) echo pyzmq source:pyzmq tornado pytest-asyncio ;;
    lxml) echo lxml source:lxml ;;
    pytest) echo pytest attrs source:pytest ;;
    scikit-learn) echo scikit-learn pandas ;;
    pandas) echo pandas scipy lxml ;;
    *) echo "$1" ;;
    esac
}

# part NAME ARGUMENT...: runs a part of the package's suite, if it is wanted, with pytest's arguments.
part() {
    local only
    for only in ${EXTI_SUITES_ONLY:-"$package"}; do
        [ "$only" != "$package" ] && [ "$only" != "$package-$1" ] && continue
        alike "$package-$version-$1" "$python" pytest "${@:2}"
        return
    done
}

parts() { # PACKAGE
    local source="$sources/$1" path
    case $1 in
    h5py) part all -p pytest_mpi --pyargs h5py ;;
    # faulthandler needs the file.
    joblib) part all --capture=no --pyargs joblib ;;
    tornado)
        # As its own runner has it.
        echo 'import logging; logging.getLogger("tornado.access").setLevel(logging.CRITICAL)' >"$tmp/quiet.py"
        PYTHONPATH=$tmp part all -p quiet -o 'python_files=*_test.py' --pyargs tornado.test
        ;;
    pyzmq) part all -p pytest_asyncio -c "$source/pytest.ini" "$source/tests" ;;
    lxml)
        # They are a part of the package.  Left out: classes that others are made of, and what is no test.
        cp -r "$source/src/lxml/tests" "$site/lxml" && part all --pyargs lxml.tests \
            -k "not (test_suite or TestCaseBase or _ElementSlicing or _XInclude or _XMLPull or _C14N)"
        ;;
    pytest)
        for path in "$source/testing"/{test_*.py,*/}; do
            part "$(basename "$path" .py)" --rootdir="$source" -c "$source/pyproject.toml" "$path"
        done
        ;;
    scipy | scikit-learn)
        for path in "$site/${1/scikit-learn/sklearn}"/*/; do
            [ -z "$(find "$path" -name 'test_*.py' -print -quit)" ] ||
                part "$(basename "$path")" -m 'not slow' "$path"
        done
        ;;
    pandas)
        for path in "$site/pandas/tests"/{test_*.py,*/}; do
            part "$(basename "$path" .py)" -m 'not slow and not network and not db and not single_cpu' "$path"
        done
        ;;
    esac
}

chosen=$short
[ -z "$whole${EXTI_SUITES_ONLY:-}" ] || chosen="$short $long"
for package in $chosen; do
    [[ " ${EXTI_SUITES_ONLY:-$package} " == *" $package"[\ -]* ]] || continue
    # shellcheck disable=SC2046
    if ! have pytest hypothesis $(needs "$package"); then
        echo "skip $package: cannot be had here: $why"
        continue
    fi
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    version=$("$python" -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' "$package")
    parts "$package"
done
