# Shared by the runtime tests.  $run is the command under test, $tmp a folder for each test script.
# shellcheck shell=bash disable=SC2034
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
run="${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate} run"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp LC_ALL=C.UTF-8
# With unbuffered output, contexts that print at the same time would mix their lines.
unset PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
unset PYTHONHOME PYTHONPATH PYTHONSAFEPATH OMP_NUM_THREADS OPENBLAS_NUM_THREADS
system=/usr/bin/python3

sanitizer=$(ldd "${run% run}" 2>/dev/null | sed -n 's/.*lib\([at]\)san\.so.*/\1/p') # a, t or nothing

ok() { echo "ok $1"; }
not_ok() { # NAME WHY...
    echo "not ok $1"
    shift
    printf '    %s\n' "$@"
}

# Prints each supported interpreter that is installed: the system's and pyenv's, or those of
# EXTI_ONLY_PYTHONS.  EXTI_PYTHON_LIMIT=1 leaves only the system's.
pythons() {
    every_python | head -n "${EXTI_PYTHON_LIMIT:-99}"
}
every_python() {
    local exe all=${EXTI_ONLY_PYTHONS:-}
    [ -n "$all" ] || all="$system $(echo "${HOME:-}"/.pyenv/versions/3.{9,1[0-9]}*/bin/python3)"
    for exe in $all ${EXTI_PYTHONS:-}; do
        [ -x "$exe" ] && "$exe" -c '' 2>/dev/null && echo "$exe"
    done
}
version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])'; }

# check NAME STATUS COMMAND...: the command ends with STATUS, and prints only `ok` lines, if any, to
# stdout.
check() {
    local name=$1 want=$2 rc
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    if [ $rc = "$want" ] && ! grep -qv '^ok' "$tmp/out"; then
        ok "$name"
    else
        not_ok "$name" "status $rc, not $want" "$(tail -n 20 "$tmp/out" "$tmp/err")"
    fi
}

# Whether interpreter $1 can import all modules $2...
has() {
    local exe=$1
    shift
    "$exe" -c "$(printf 'import %s\n' "$@")" 2>/dev/null
}

no_traces() { # NAME: waits for the helper to remove all folders of the program from $TMPDIR
    local left end=$((SECONDS + 600))
    while [ $SECONDS -lt $end ]; do
        left=$(find "$tmp" -maxdepth 1 -name 'extisolate-*' 2>/dev/null)
        [ -z "$left" ] && ok "$1" && return
        sleep 0.1
    done
    not_ok "$1" "still there: $left"
}
