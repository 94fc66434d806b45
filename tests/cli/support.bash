# Shared by the tests of the program.  Each test runs in a folder of its own that is removed afterwards.
set -u

EXTISOLATE=${EXTISOLATE:-${EXTI_BUILD:-build}/extisolate}
EXTISOLATE=$(realpath "$EXTISOLATE")
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export LC_ALL=C.UTF-8
unset NO_COLOR
unset PYTHONUNBUFFERED # two contexts would mix their lines
T=$(mktemp -d)
clean_up() {
    local rc=$?
    cd /
    for m in "$T"/*.mount; do
        [ ! -d "$m" ] || umount "$m" 2>/dev/null
    done
    chmod -R u+w "$T" 2>/dev/null
    rm -rf "$T"
    exit $rc
}
trap clean_up EXIT
cd "$T" || exit 1
failures=0
trap 'exit 1' INT TERM

x() { "$EXTISOLATE" "$@"; }

# Runs the program; its output is in $T/out and $T/err, its exit code in $rc.
run() {
    "$EXTISOLATE" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

say() {
    if [ "$1" = 0 ]; then
        echo "ok $2"
    else
        echo "not ok $2"
        failures=$((failures + 1))
        [ $# -lt 3 ] || printf '    %s\n' "${@:3}"
        sed 's/^/    out: /' "$T/out" | head -n 60
        sed 's/^/    err: /' "$T/err" | head -n 60
    fi
}

skip() { echo "skip $1: $2"; }

# check NAME EXIT_CODE [PATTERN...]: checks the last run; its output has to match each pattern.
check() {
    local name=$1 want=$2 bad=0 p
    shift 2
    [ "$rc" = "$want" ] || bad=1
    for p in "$@"; do
        cat "$T/out" "$T/err" | grep -qE -e "$p" || { bad=1; echo "    no '$p'"; }
    done
    say $bad "$name" "exit code $rc, expected $want"
}

# same NAME FILE EXPECTED_FILE
same() {
    if diff -u "$3" "$2" >"$T/diff"; then
        say 0 "$1"
    else
        sed 's/^/    /' "$T/diff"
        say 1 "$1"
    fi
}

# An API library, and an extension that uses it without naming it.
make_toy() {
    cat >toyapi.c <<'C'
int Toy_counter;
int Toy_Next(void);
int Toy_Next(void) { return ++Toy_counter; }
void Toy_Reset(void);
void Toy_Reset(void) { Toy_counter = 0; }
C
    cat >toyext.c <<'C'
extern int Toy_counter;
int Toy_Next(void);
int Py_Unknown(void);
__thread int slot[4];
int ext_step(void);
int ext_step(void) { slot[1]++; return Toy_Next() + Toy_counter; }
int ext_unused(void);
int ext_unused(void) { return Py_Unknown(); }
C
    cc -shared -fPIC -O1 -g -Wl,-soname,libtoyapi.so.1 -o libtoyapi.so toyapi.c &&
        cc -shared -fPIC -O1 -g -o toyext.so toyext.c
}

# Whether the context directory verifies and holds no temporary file.
sound() {
    "$EXTISOLATE" verify "$1" >"$T/verify" 2>&1 || { sed 's/^/    /' "$T/verify"; return 1; }
    [ -z "$(find "$1" -name '*.tmp*' -o -name '.*' ! -name .lock ! -path "$1" | head -n 1)" ]
}

DEBIAN_LIBPYTHON=$(ls /usr/lib/*/libpython3.*.so.1.0 2>/dev/null | head -n 1)
# numpy 2 has another name for the folder.
DEBIAN_NUMPY=$(ls /usr/lib/python3/dist-packages/numpy/{_core,core}/_multiarray_umath.*.so 2>/dev/null | head -n 1)

finish() { [ "$failures" = 0 ]; exit; }
