#!/bin/bash
# The unit tests under wine; each program is one result.  Tests that need other programs are left
# out.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
here=$ROOT/tests/windows
build=${EXTI_BUILD:-$ROOT/build}/windows
cc=x86_64-w64-mingw32-gcc-posix
export CMOCKA_MESSAGE_OUTPUT=stdout
# shellcheck source=tests/support/wine.bash
. "$ROOT/tests/support/wine.bash"

# Those that load or run something, want other calls of POSIX, or paths as POSIX has them.
posix=' changing_source closure closure_macho closure_pe closure_real copy_identity elf_libelf elf_plan elf_plan_tools elf_rename
    elf_unread environment fork_guard fs_boot fs_clone fs_faults fs_folder fs_id fs_lock fs_map fs_owner fs_pieces
    fs_read fs_remove fs_replace
    install_name ld_cache macho_check_copy macho_shift manifest path pe_bind pe_forward pe_place
    pe_plan pe_plan_tools search_elf search_elf_open search_pe tls_descriptor unseen verify_pe verify_replaced zone '
posix=${posix//$'\n'/}
for name in $posix; do
    [ -n "$(find "$ROOT/tests/unit" -name "test_$name.c")" ] || echo "not ok units: there is no test_$name"
done

"$here/build.sh" "$build" || { echo "not ok units: it cannot be built"; exit 1; }
[ ! -f "$build/extisolate.skip" ] || { echo "skip units: $(cat "$build/extisolate.skip")"; exit 0; }
mkdir -p "$build/units"
start_wine >"$build/why" || { echo "skip units: $(cat "$build/why")"; exit 0; }
trap finish_wine EXIT

flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -D_WIN32_WINNT=0x0602 -DUNICODE -O1 -w -static
    -iquote "$ROOT" -I"$ROOT/include" -I"$build/deps/include" -Duid_t=unsigned -Dgid_t=unsigned)
support=()
for f in "$ROOT/tests/support/exti_test.c" "$here/exti_test_win32.c"; do
    support+=("$build/units/$(basename "$f" .c).o")
    $cc "${flags[@]}" -c -o "${support[-1]}" "$f" || { echo "not ok units: $f"; exit 1; }
done

# runtime/ is not there on Windows.
for f in $(find "$ROOT/tests/unit" -name 'test_*.c' -not -path '*/runtime/*' | sort); do
    name=$(basename "$f" .c) name=${name#test_}
    exe=$build/units/$name.exe log=$build/units/$name.log
    [[ $posix != *" $name "* ]] || continue
    if ! [ "$exe" -nt "$f" ] || ! [ "$exe" -nt "$build/libextisolate.a" ]; then
        $cc "${flags[@]}" -o "$exe" "$f" "${support[@]}" "$build"/deps/cmocka.o \
            "$build"/{libextisolate-link,libextisolate,deps/libelf,deps/libjansson}.a -lbcrypt -ladvapi32 -lntdll -lpthread ||
            { echo "not ok $name: cannot be built"; continue; }
    fi
    WINEDEBUG=err+all,fixme-all timeout 1000 "$WINE" "$exe" >"$log" 2>&1 8>&-
    rc=$?
    echo "# $name: $(grep -c '^\[ *OK' "$log") cases, not there: $(grep -c '^\[  SKIPPED ' "$log")"
    if [ $rc = 0 ] && grep -q '^\[ *OK' "$log"; then
        echo "ok $name"
    else
        grep -vE '^\[ (RUN|  *OK)' "$log"
        echo "not ok $name: status $rc"
    fi
done
