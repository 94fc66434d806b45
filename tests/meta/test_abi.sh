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
if undefined | grep -E " ($printing|$ending)\$"; then
    echo "not ok library_never_prints_or_exits"
else
    echo "ok library_never_prints_or_exits"
fi
heap='malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf|vasprintf'
if undefined | grep -E " ($heap)\$" | grep -v '^mem\.o '; then
    echo "not ok library_has_one_door_to_the_heap"
elif undefined | grep -q '^mem\.o malloc$'; then
    echo "ok library_has_one_door_to_the_heap"
else
    echo "not ok library_has_one_door_to_the_heap: mem.o does not call malloc"
fi
