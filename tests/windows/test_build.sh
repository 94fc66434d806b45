#!/bin/bash
# Library and program build for Windows and depend on system DLLs alone.
set -u
build=${EXTI_BUILD:-$PWD/build}/windows
here=$(cd "$(dirname "$0")" && pwd)

say()
{
    if [ "$1" = 0 ]; then echo "ok $2"; else cat "$build/said"; echo "not ok $2"; fi
}

is_for() # FILE MACHINE
{
    llvm-readobj --file-headers "$1" | grep -q "Machine: $2 " || { echo "$1 is not for $2"; return 1; }
}

# Windows has none of mingw's own libraries; the C library of zig's programs is a part since Windows
# 10.
needs_system_only()
{
    local bad
    bad=$(llvm-readobj --coff-imports "$1" | sed -n 's/^  Name: //p' |
        grep -viE '^(KERNEL32|ADVAPI32|msvcrt|bcrypt|ntdll|SHELL32|USER32|api-ms-win-crt-[a-z0-9-]*)\.dll$')
    [ -z "$bad" ] || { echo "needs $bad"; return 1; }
}

build_for() # MACHINE NAME DIR
{
    local dir=$3
    mkdir -p "$dir"
    "$here/build.sh" "$dir" "$1" >"$build/said" 2>&1
    local rc=$?
    if [ -f "$dir/extisolate.skip" ]; then
        echo "skip builds_for_$1: $(cat "$dir/extisolate.skip")"
        return
    fi
    say $rc "builds_for_$1"
    [ $rc = 0 ] || return
    { is_for "$dir/extisolate.exe" "$2" && needs_system_only "$dir/extisolate.exe"; } >"$build/said" 2>&1
    say $? "program_for_$1_needs_the_system_only"
    (cd "$dir/installed/usr" && find . -type f | LC_ALL=C sort) >"$build/said" 2>&1
    diff - "$build/said" >"$build/difference" <<'END'
./bin/extisolate.exe
./include/extisolate.h
./include/extisolate/link.h
./lib/libextisolate-link.a
./lib/libextisolate.a
./lib/pkgconfig/extisolate-link.pc
./lib/pkgconfig/extisolate.pc
./share/doc/extisolate/sharing.md
./share/man/man1/extisolate.1
./share/man/man3/extisolate-link.3
./share/man/man3/extisolate.3
./share/man/man5/extisolate-quirks.5
END
    say $? "installs_for_$1"
}

mkdir -p "$build"
build_for x86_64 IMAGE_FILE_MACHINE_AMD64 "$build"
# The other machines with all tests only, as they take a minute each.
[ -n "${EXTI_ALL:-}" ] || exit 0
build_for i686 IMAGE_FILE_MACHINE_I386 "$build/i686"
build_for aarch64 IMAGE_FILE_MACHINE_ARM64 "$build/aarch64"
