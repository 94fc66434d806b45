#!/bin/bash
# Compares the PyConfig table with each installed header: all offsets of members in all build
# variants.
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1
cc=${CC:-cc}
flags='-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -iquote . -I include'

# shellcheck disable=SC2086
if ! $cc $flags -o "$tmp/layout" tests/runtime/layout.c runtime/pyconfig.c runtime/fail.c; then
    not_ok table_builds
    exit 1
fi

# Includes the header without pyconfig.h, so that one installation serves for all variants.
real_layout() { # HEADER DEFINES...
    local header=$1 name
    shift
    {
        echo '#include <stddef.h>'
        echo '#include <stdint.h>'
        echo '#include <stdio.h>'
        echo '#include <wchar.h>'
        echo '#define PyAPI_FUNC(type) type'
        echo 'typedef ptrdiff_t Py_ssize_t; typedef struct _object PyObject;'
        echo "#include \"$header\""
        echo '#include "runtime/pyconfig.h"'
        for name in parse_argv isolated use_environment configure_locale coerce_c_locale \
            coerce_c_locale_warn utf8_mode dev_mode allocator; do
            echo "_Static_assert(offsetof(PyPreConfig, $name) =="
            echo "    offsetof(struct pyrt_preconfig, $name), \"$name\");"
        done
        echo '_Static_assert(sizeof(PyPreConfig) == sizeof(struct pyrt_preconfig), "size");'
        echo '_Static_assert(sizeof(PyStatus) == sizeof(struct pyrt_status), "size");'
        echo '_Static_assert(offsetof(PyStatus, err_msg) =='
        echo '    offsetof(struct pyrt_status, err_msg), "err_msg");'
        echo '_Static_assert(offsetof(PyStatus, exitcode) =='
        echo '    offsetof(struct pyrt_status, exitcode), "exitcode");'
        echo '_Static_assert(offsetof(PyWideStringList, items) =='
        echo '    offsetof(struct pyrt_wlist, items), "items");'
        echo 'int main(void) {'
        sed -n 's/^\([^ ]*\) [0-9]*$/\1/p' "$tmp/table" | grep -v sizeof | while read -r name; do
            echo "printf(\"$name %zu\\n\", offsetof(PyConfig, $name));"
        done
        echo 'printf("sizeof %zu\n", sizeof(PyConfig)); return 0; }'
    } >"$tmp/real.c"
    # shellcheck disable=SC2086
    $cc $flags "$@" -o "$tmp/real" "$tmp/real.c" && "$tmp/real"
}

compare() { # NAME HEADER MINOR FREE_THREADED DEBUG DEFINES...
    local name=$1 header=$2 minor=$3 threads=$4 debug=$5
    shift 5
    "$tmp/layout" "$minor" "$threads" "$debug" >"$tmp/table"
    if real_layout "$header" "$@" >"$tmp/real.out" 2>"$tmp/err" &&
        diff "$tmp/real.out" "$tmp/table" >"$tmp/diff"; then
        ok "$name"
    else
        not_ok "$name" "$(cat "$tmp/err" "$tmp/diff")"
    fi
}

seen=
for exe in $(pythons); do
    minor=$("$exe" -c 'import sys; print(sys.version_info[1])')
    header=$("$exe" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    header=$header/cpython/initconfig.h
    v=$(version "$exe")
    [ "$minor" -le 13 ] || continue # later ones take options by name
    if [ ! -f "$header" ]; then
        echo "skip layout-$v: $header is not there"
        continue
    fi
    seen="$seen $minor"
    compare "layout-$v" "$header" "$minor" 0 0
    compare "layout-$v-debug" "$header" "$minor" 0 1 -DPy_DEBUG=1
    if [ "$minor" -ge 13 ]; then
        compare "layout-$v-free-threaded" "$header" "$minor" 1 0 -DPy_GIL_DISABLED=1
        compare "layout-$v-free-threaded-debug" "$header" "$minor" 1 1 -DPy_GIL_DISABLED=1 \
            -DPy_DEBUG=1
    fi
done
for minor in 9 10 11 12 13; do
    case " $seen " in
    *" $minor "*) ;;
    *) echo "skip layout-3.$minor: no such interpreter here" ;;
    esac
done
