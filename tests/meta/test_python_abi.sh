#!/bin/bash
# libextisolate-python: header, version map and exported symbols agree, and it calls nothing that prints or ends
# the process.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
build=${EXTI_BUILD:-build}
header=include/extisolate/python.h map=runtime/extisolate-python.map shared=$build/libextisolate-python.so
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

check() { # NAME WANTED HEADER MAP SHARED
    local got
    got=$("$here/abi.sh" "$3" "$4" "$5")
    if [ "$got" = "$2" ]; then
        echo "ok $1"
    else
        printf 'wanted: %s\ngot: %s\n' "$2" "$got"
        echo "not ok $1"
    fi
}
verdict() { # NAME, after the command it is about
    if [ $? = 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

check header_map_and_library_agree '' $header $map "$shared"
sed 's/^EXTI_API int extipy_leave(/EXTI_API int extipy_new_call(void);\n&/' $header >"$tmp/more.h"
check header_alone_is_noticed \
    'extipy_new_call: declared, but not in the version map
extipy_new_call: declared, but not exported' "$tmp/more.h" $map "$shared"
sed '/^ *extipy_leave;/d' $map >"$tmp/less.map"
check missing_in_map_is_noticed 'extipy_leave: declared, but not in the version map' $header "$tmp/less.map" \
    "$shared"

major=$(sed -n 's/^#define EXTI_VERSION_MAJOR //p' include/extisolate.h)
readelf -d "$shared" | grep 'SONAME' | grep -qF "[libextisolate-python.so.$major]"
verdict soname_has_the_major_version
# Threads that were in contexts call it when they end.
readelf -d "$shared" | grep FLAGS_1 | grep -q NODELETE
verdict it_stays_mapped
# Of the loader it uses what anyone may.
! nm -D --undefined-only "$shared" | grep -E ' exti__'
verdict it_stands_on_the_public_header

undefined() { nm -A -u "$build/libextisolate-python.a" | sed -E 's/^[^:]*:([^:]*): *U /\1 /'; }
printing='(__)?v?f?d?printf(_chk)?|puts|fputs|putchar|fputc|fwrite|perror|psignal|stdout|stderr'
ending='exit|_exit|_Exit|abort|quick_exit|raise|longjmp|__longjmp_chk|siglongjmp'
# Where code of a context ends that, a thread leaves it for its call.
undefined | grep -q ' pthread_create$' &&
    ! undefined | grep -v -E '^exiting\.o (__longjmp_chk|siglongjmp)$' | grep -E " ($printing|$ending)\$"
verdict library_never_prints_or_exits

# ---- what programs built before rely on ------------------------------------------------------------------

# tests/meta/extisolate-python.abi was made as tests/meta/extisolate.abi was, and structs that have grown since are
# named here for the same reason (test_abi.sh).
grown=extipy_opts
if ! command -v abidiff >/dev/null; then
    echo "skip only_additions_to_the_interface: no abidiff (package abigail-tools)"
    exit
fi
if [ "$("${CC:-cc}" -dumpmachine | cut -d - -f 1)" != x86_64 ]; then
    echo "skip only_additions_to_the_interface: the description is of x86-64"
    exit
fi

for struct in $grown; do
    printf '[suppress_type]\n  type_kind = struct\n  name = %s\n  has_data_member_inserted_at = end\n' "$struct"
    echo '  has_size_change = yes' # newer versions ask for it
done >"$tmp/grown"
compatible() { # NAME WANTED SED-COMMANDS [MESSAGE]: whether the header, so changed, is compatible
    local name=$1 wanted=$2 got=no
    sed -E "$3" $header >"$tmp/$name.h"
    if [ -n "$3" ] && cmp -s $header "$tmp/$name.h"; then
        echo "not ok $name: nothing is changed"
        return
    fi
    if ! "$here/interface.sh" "$tmp/$name.h" $map "$tmp/$name.so"; then
        echo "not ok $name: cannot be built"
        return
    fi
    abidiff --no-added-syms --suppressions "$tmp/grown" tests/meta/extisolate-python.abi "$tmp/$name.so" \
        >"$tmp/said" 2>&1 && got=yes
    if [ $got = "$wanted" ] && { [ -z "${4:-}" ] || grep -q -e "$4" "$tmp/said"; }; then
        echo "ok $name"
    else
        head -n 30 "$tmp/said"
        echo "not ok $name"
    fi
}
compatible only_additions_to_the_interface yes ''
compatible a_removed_function_is_noticed no '/^EXTI_API int extipy_leave\(/d' "\[D\].*extipy_leave"
compatible a_changed_parameter_is_noticed no 's/^(EXTI_API size_t extipy_bool\(.*) int truth/\1 char truth/' 'extipy_bool'
compatible a_changed_struct_is_noticed no '/^struct extipy_closed \{/,/^\}/s/^( *)size_t size;.*/&\n\1long added;/' \
    "'long int added'"
compatible a_struct_that_grows_has_to_be_named no '/^struct extipy_closed \{/,/^\}/s/^\};/    long added;\n};/' \
    "'long int added'"
compatible and_only_at_its_end no '/^struct extipy_opts \{/,/^\}/s/^( *)size_t size;.*/&\n\1long added;/' \
    "extipy_opts"
