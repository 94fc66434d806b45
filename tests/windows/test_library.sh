#!/bin/bash
# The library under wine: its use of the file system, and the public interface with toy libraries
# built here.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
here=$ROOT/tests/windows
build=${EXTI_BUILD:-$ROOT/build}/windows
cc=x86_64-w64-mingw32-gcc-posix
toys=$build/toys
# shellcheck source=tests/support/wine.bash
. "$ROOT/tests/support/wine.bash"

"$here/build.sh" "$build" || { echo "not ok library: it cannot be built"; exit 1; }
[ ! -f "$build/extisolate.skip" ] || { echo "skip library: $(cat "$build/extisolate.skip")"; exit 0; }

toy() # OUT SOURCE FLAGS...
{
    $cc -shared -O1 -o "$toys/$1" "$here/$2" -L"$toys" "${@:3}"
}

elf_toy() # OUT SOURCE FLAGS...
{
    ${CC:-cc} -shared -fPIC '-D__declspec(x)=' -D__stdcall= -o "$toys/$1" "$here/$2" "${@:3}"
}

build_toys()
{
    mkdir -p "$toys"/{newer,leaky,forward,broken} &&
        toy python311.dll toy_api.c -DVERSION=1 -Wl,--out-implib,"$toys/libpython311.a" &&
        toy newer/python311.dll toy_api.c -DVERSION=2 &&
        toy libhelper.dll toy_helper.c -Wl,--out-implib,"$toys/libhelper.a" &&
        toy leaky/libhelper.dll toy_helper.c -DLEAKY -lpython311 &&
        toy other.dll toy_helper.c &&
        printf 'LIBRARY libhelper.dll\nEXPORTS\nhelper_next=other.helper_next\n' >"$toys/forward.def" &&
        toy forward/libhelper.dll toy_helper.c -Dhelper_next=unused "$toys/forward.def" &&
        toy gone.dll toy_helper.c -Dhelper_next=gone -Wl,--out-implib,"$toys/libgone.a" &&
        rm "$toys/gone.dll" &&
        toy broken/libhelper.dll toy_helper.c -DLEAKY -Dapi_next=gone -lgone &&
        toy toyext.dll toy_ext.c -DVERSION=1 -lpython311 &&
        toy newer/toyext.dll toy_ext.c -DVERSION=2 -lpython311 &&
        printf 'LIBRARY python3.dll\nEXPORTS\napi_next=python311.api_next @7\napi_version=python311.api_version @8\n%s\n' \
            'api_data=python311.api_data @9 DATA' >"$toys/python3.def" &&
        toy python3.dll toy_helper.c "$toys/python3.def" -Wl,--out-implib,"$toys/libpython3.a" &&
        printf 'LIBRARY python3.dll\nEXPORTS\napi_next @7 NONAME\napi_version @8 NONAME\napi_data @9 NONAME DATA\n' \
            >"$toys/numbers.def" &&
        x86_64-w64-mingw32-dlltool -d "$toys/numbers.def" -l "$toys/libnumbers.a" &&
        toy toynumbers.dll toy_ext.c -DVERSION=3 -lnumbers &&
        toy toyabi3.dll toy_ext.c -DVERSION=3 -lpython3 &&
        toy toyneeds.dll toy_ext.c -DVERSION=1 -DHELPER -lpython311 -lhelper &&
        elf_toy libtoypython.so.1 toy_api.c -DVERSION=1 -Wl,-soname,libtoypython.so.1 &&
        elf_toy toyext.so toy_ext.c -DVERSION=1
}

# A delay import that the directory lists, which GNU ld does not make.
build_late()
{
    local name late=$toys/late
    mkdir -p "$late"
    type clang lld-link llvm-dlltool >/dev/null 2>&1 || return
    for name in 'python311 api_next api_version api_data=api_data@DATA' 'libhelper helper_next' \
        'kernel32 GetTickCount LoadLibraryExA GetProcAddress'; do
        printf 'LIBRARY %s.dll\nEXPORTS\n' "${name%% *}" >"$late/late.def"
        tr ' ' '\n' <<<"${name#* }" | sed 's/=.*@DATA/ DATA/' >>"$late/late.def"
        llvm-dlltool -m i386:x86-64 -d "$late/late.def" -l "$late/${name%% *}.lib" || return
    done
    for name in windows/toy_ext wine/src/late; do
        clang --target=x86_64-pc-windows-msvc -O1 -ffreestanding -DVERSION=1 -DHELPER -c \
            -o "$late/${name##*/}.obj" "$here/../$name.c" || return
    done
    (cd "$late" && lld-link /nologo /dll /noentry /nodefaultlib /machine:x64 /out:../toylate.dll /implib:unused.lib \
        toy_ext.obj late.obj python311.lib libhelper.lib kernel32.lib /delayload:libhelper.dll)
}

build_program() # NAME
{
    $cc -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -Wall -Wextra -Wshadow -Wconversion -Werror -static \
        -iquote "$ROOT" -I"$ROOT/include" -o "$build/$1.exe" "$here/$1.c" "$build"/{libextisolate,deps/libelf,deps/libjansson}.a \
        -lbcrypt -ladvapi32 -lntdll -lpthread
}

run() # NAME TOY
{
    rm -rf "$build/$1.work"
    mkdir "$build/$1.work"
    (cd "$build" && timeout 1800 "$WINE" "$1.exe" "$1.work" "$2" 8>&-) || echo "not ok $1: ended with status $?"
    rm -rf "$build/$1.work"
}

if ! { build_toys && build_program fs && build_program api; }; then
    echo "not ok library: its tests cannot be built"
    exit 1
fi
build_late >"$build/late.log" 2>&1 || rm -f "$toys/toylate.dll"
start_wine >"$build/why" || { echo "skip library: $(cat "$build/why")"; exit 0; }
trap finish_wine EXIT
# A link in the temporary folder, named like a dead process's leftovers.
temp=$(echo "$WINEPREFIX"/drive_c/users/*/Temp)
mkdir -p "$build/linked" && touch "$build/linked/file"
ln -s "$build/linked" "$temp/exti-1-000000000000000000000000"
run fs toys/libhelper.dll
if [ -f "$build/linked/file" ]; then echo "ok what_a_link_leads_to_is_not_swept"; else echo "not ok what_a_link_leads_to_is_not_swept"; fi
rm -rf "$temp/exti-1-000000000000000000000000" "$build/linked"
run api toys
