#!/bin/bash
# Allocations of the program, the shared library and what they are linked with fail: about 12 of
# each command's, with EXTI_ALL=1 each of them.
. "$(dirname "$0")/../cli/support.bash"

# The sanitizers have a malloc of their own.
case ${EXTI_BUILD:-} in *address*|*thread*) skip allocations "a sanitizer allocates"; exit ;; esac

here=$ROOT/tests/allocations
build=$(realpath "${EXTI_BUILD:-$ROOT/build}")
cc=${CC:-cc}

make_world() {
    cat >api.c <<'C'
static int n;
int Api_next(void) { return ++n; }
int Api_other(void) { return 7; }
C
    # Without thread-locals: glibc ends a process that has no memory for those of a library.
    cat >deep.c <<'C'
static int t;
int deep_next(void) { return t++; }
C
    cat >dep.c <<'C'
int deep_next(void);
static int n = 100;
int dep_next(void) { return ++n + deep_next(); }
C
    cat >ext.c <<'C'
int Api_next(void), dep_next(void);
int ext_next(void) { return Api_next() + dep_next(); }
int PyInit_ext(void) { return 0; }
C
    cat >ext2.c <<'C'
int Api_next(void);
int ext_next(void) { return Api_next(); }
int PyInit_ext2(void) { return 0; }
C
    $cc -shared -fPIC -Wl,-soname,libapi.so -o libapi.so api.c || return
    $cc -shared -fPIC -Wl,-soname,libdeep.so -o libdeep.so deep.c || return
    $cc -shared -fPIC -Wl,-soname,libdep.so -o libdep.so dep.c -L. -ldeep \
        -Wl,-rpath,"$PWD" || return
    $cc -shared -fPIC -o ext.so ext.c -L. -ldep -Wl,-rpath,"$PWD" || return
    $cc -shared -fPIC -o ext2.so ext2.c || return
    mkdir -p tree/sub && cp ext.so ext2.so tree/ && cp libdep.so tree/sub/ && echo text >tree/odd.so
    cat >rules.json <<'J'
{"extisolate_quirks": 1, "quirks": [
  {"id": "one", "match": {"file": "ext*.so"}, "rename": {"PyInit_ext": "PyInit_axt"},
   "environment": {"A": "1", "B": "2"}},
  {"id": "two", "match": {"exports": "ext_next"}, "note": "\u00e9 and more"}]}
J
    "$cc" -shared -fPIC -O1 -o fail_allocations.so "$here/fail_allocations.c" || return
    "$cc" -O1 -I"$ROOT/include" -o load "$here/load.c" -L"$build" -lextisolate \
        -Wl,-rpath,"$build"
}

make_world >out 2>err || { say 1 the_libraries_are_built; exit 1; }
steps=12
[ -z "${EXTI_ALL:-}" ] || steps=0
python3 "$here/campaign.py" fail_allocations.so "$EXTISOLATE" ./load . "$steps"
