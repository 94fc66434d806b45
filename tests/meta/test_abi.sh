#!/bin/bash
# Header, version map and exported symbols agree; tests/meta/abi.sh would notice if they did not; and
# the library calls nothing that prints, ends the process or goes past base/mem.c to the heap.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
build=${EXTI_BUILD:-build}
header=include/extisolate.h map=loader/extisolate.map shared=$build/libextisolate.so
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

check header_map_and_library_agree '' $header $map "$shared"

soname=$(readelf -d "$shared" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
major=$(sed -n 's/^#define EXTI_VERSION_MAJOR //p' $header)
if [ "$soname" = "libextisolate.so.$major" ]; then
    echo "ok soname_has_the_major_version"
else
    echo "not ok soname_has_the_major_version: $soname"
fi

# Negative controls: a header with one more function, a map with one more, a map with one less, and
# libraries that export too much.
sed 's/^EXTI_API int exti_copy(/EXTI_API int exti_new_call(void);\n&/' $header >"$tmp/more.h"
check header_alone_is_noticed \
    'exti_new_call: declared, but not in the version map
exti_new_call: declared, but not exported' "$tmp/more.h" $map "$shared"
sed 's/^ *exti_copy;/    exti_copied;\n&/' $map >"$tmp/more.map"
check map_alone_is_noticed 'exti_copied: in the version map, but not declared' $header \
    "$tmp/more.map" "$shared"
sed '/^ *exti_copy;/d' $map >"$tmp/less.map"
check missing_in_map_is_noticed 'exti_copy: declared, but not in the version map' $header \
    "$tmp/less.map" "$shared"

names=$(sed -n '/^global:/,/^local:/s/^ *\(exti_[a-z0-9_]*\);.*/\1/p' $map)
for n in $names exti_inner; do echo "void $n(void); void $n(void) {}"; done >"$tmp/inner.c"
sed 's/exti_copy;/exti_copy; exti_inner;/' $map >"$tmp/inner.map"
"${CC:-cc}" -shared -fPIC -Wl,--version-script="$tmp/inner.map" -o "$tmp/inner.so" "$tmp/inner.c"
check stray_export_is_noticed 'exti_inner: exported, but not declared' $header $map "$tmp/inner.so"
"${CC:-cc}" -shared -fPIC -o "$tmp/plain.so" "$tmp/inner.c"
if "$here/abi.sh" $header $map "$tmp/plain.so" | grep -q 'exti_inner: exported without a version'; then
    echo "ok unversioned_export_is_noticed"
else
    echo "not ok unversioned_export_is_noticed"
fi

undefined() { nm -A -u "$build/libextisolate.a" | sed -E 's/^[^:]*:([^:]*): *U /\1 /'; }
printing='(__)?v?f?d?printf(_chk)?|puts|fputs|putchar|fputc|fwrite|perror|psignal|stdout|stderr'
ending='exit|_exit|_Exit|abort|quick_exit|raise|kill|longjmp|__longjmp_chk|siglongjmp'
# What copies call in place of these passes on what concerns others.
passed_on='signal_calls\.o (raise|kill)|end_calls\.o (exit|_exit|abort|quick_exit)|exec_child\.o (_exit|kill)|fork_calls\.o _exit'
if undefined | grep -v -E "^($passed_on)\$" | grep -E " ($printing|$ending)\$"; then
    echo "not ok library_never_prints_or_exits"
else
    echo "ok library_never_prints_or_exits"
fi
heap='malloc|calloc|realloc|reallocarray|(__)?strn?dup|(__)?v?asprintf(_chk)?'
if undefined | grep -E " ($heap)\$" | grep -v '^mem\.o '; then
    echo "not ok library_has_one_door_to_the_heap"
elif undefined | grep -q '^mem\.o malloc$'; then
    echo "ok library_has_one_door_to_the_heap"
else
    echo "not ok library_has_one_door_to_the_heap: mem.o does not call malloc"
fi

# ---- what programs built before rely on ------------------------------------------------------------------

# tests/meta/extisolate.abi describes the interface of commit 03180b4: what tests/meta/interface.sh made of its
# header, by
#   abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-parameter-names \
#       --no-write-default-sizes --type-id-style hash LIBRARY
# It stays as it is: functions and enumerators may be added, and structs with a size may grow at their end.
# abidiff takes growth for a change, and what it is told to pass over hides other changes of the same struct:
# so only structs that have grown are named here.
grown='exti_copy_info exti_hooks exti_image_info exti_proof'

if ! command -v abidiff >/dev/null; then
    echo "skip only_additions_to_the_interface: no abidiff (package abigail-tools)"
    exit
fi
if [ "$("${CC:-cc}" -dumpmachine | cut -d - -f 1)" != x86_64 ]; then
    echo "skip only_additions_to_the_interface: the description is of x86-64"
    exit
fi

compatible() { # NAME WANTED SED-COMMANDS [MESSAGE [GROWN...]]: whether the header, so changed, is compatible
    local name=$1 wanted=$2 got=no struct
    sed -E "$3" $header >"$tmp/$name.h"
    if [ -n "$3" ] && cmp -s $header "$tmp/$name.h"; then
        echo "not ok $name: nothing is changed"
        return
    fi
    for struct in $grown "${@:5}"; do
        printf '[suppress_type]\n  type_kind = struct\n  name = %s\n  has_data_member_inserted_at = end\n' "$struct"
        echo '  has_size_change = yes' # newer versions ask for it
    done >"$tmp/$name.grown"
    if ! "$here/interface.sh" "$tmp/$name.h" $map "$tmp/$name.so"; then
        echo "not ok $name: cannot be built"
        return
    fi
    abidiff --no-added-syms --suppressions "$tmp/$name.grown" tests/meta/extisolate.abi "$tmp/$name.so" \
        >"$tmp/said" 2>&1 && got=yes
    if [ $got = "$wanted" ] && grep -q -e "${4:-}" "$tmp/said"; then
        echo "ok $name"
    else
        head -n 30 "$tmp/said"
        echo "not ok $name"
    fi
}
in_symbol_info='/^struct exti_symbol_info \{/,/^\}/'
compatible only_additions_to_the_interface yes ''
compatible an_added_function_passes yes 's/^EXTI_API int exti_copy\(/EXTI_API int exti_new_call(void);\n&/'
compatible a_removed_function_is_noticed no '/^EXTI_API int exti_close\(/d' "\[D\].*exti_close"
compatible a_changed_parameter_is_noticed no 's/^(EXTI_API int exti_dir_copy\(.*) size_t i,/\1 char i,/' 'exti_dir_copy'
compatible a_changed_struct_is_noticed no "$in_symbol_info"'s/^( *)size_t size;.*/&\n\1long added;/' "'long int added', at offset 64"
compatible a_changed_value_is_noticed no 's/EXTI_CLOSURE_NONE = 3/EXTI_CLOSURE_NONE = 5/' 'EXTI_CLOSURE_NONE'
compatible a_struct_that_grows_has_to_be_named no "$in_symbol_info"'s/^\};/    long added;\n};/' "'long int added', at offset 384"
compatible a_struct_that_is_named_may_grow yes "$in_symbol_info"'s/^\};/    long added;\n};/' '' exti_symbol_info
compatible and_only_at_its_end no "$in_symbol_info"'s/^( *)size_t size;.*/&\n\1long added;/' '' exti_symbol_info
