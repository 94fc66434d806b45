#!/bin/bash
# The wheels that `make wheel` builds: what is in them, which systems they are for, and that they work where there
# is no compiler, by each CPython that there is.  EXTI_ALL=1: all tests of the package by each of these.
# shellcheck source=tests/package/lib.sh
. "$(dirname "$0")/lib.sh"
build=${EXTI_BUILD:-$root/build}
dist=$build/dist
tools=$build/manylinux/venv/bin

# What gets a wheel of its own: the first serves all from 3.11 on.
builders() {
    local exe
    for exe in $(pythons); do
        case $exe:$(version "$exe") in
        "$system":* | *:3.9.* | *:3.10.*) echo "$exe" ;;
        esac
    done
}

# The newest glibc that the ELF files need, as MINOR of 2.MINOR.
glibc_of() { # FILE...
    LC_ALL=C readelf -VW "$@" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1 | cut -d. -f2
}

elf_files() { find "$1" -type f \( -name '*.so*' -o -path '*/bin/*' \); }

inspect() { # LABEL WHEEL
    local folder=$tmp/unpacked-$1 file found
    "$system" -m zipfile -e "$2" "$folder"
    check "$1-holds_what_is_needed" 0 diff "$tmp/wanted" \
        <(cd "$folder/extisolate" && find . -type f ! -name '_extisolate.*.so' | LC_ALL=C sort)
    [ "$(cd "$folder" && echo *)" = "$(cd "$folder" && echo extisolate extisolate-*.dist-info)" ] &&
        ok "$1-puts_nothing_elsewhere" || not_ok "$1-puts_nothing_elsewhere" "$(ls "$folder")"
    [ "$(stat -c %s "$2")" -lt 3000000 ] && ok "$1-is_below_3_MB" || not_ok "$1-is_below_3_MB" "$(ls -l "$2")"
    found=$("$tools/auditwheel" show "$2" | tr '\n' ' ')
    grep -qE "is consistent with the following platform tag: \"manylinux_2_(1[0-9]|2[0-8])_$(uname -m)\"" <<<"$found" &&
        ok "$1-is_for_glibc_2.28" || not_ok "$1-is_for_glibc_2.28" "$found"
    for file in $(elf_files "$folder"); do
        [ "$(glibc_of "$file")" -le 28 ] || echo "$file needs glibc 2.$(glibc_of "$file")"
        readelf -SW "$file" | grep -F .symtab
        readelf -dW "$file" | grep PATH | grep -v '\[$ORIGIN\(/lib\)\?\]'
    done >"$tmp/found" 2>&1
    [ -s "$tmp/found" ] && not_ok "$1-files_are_stripped_and_portable" "$(cat "$tmp/found")" ||
        ok "$1-files_are_stripped_and_portable"
}

pool='import extisolate, sys, MODULE
def size(n): return len(MODULE.__name__), n, sys.version_info[:2]
if __name__ == "__main__":
    with extisolate.InterpreterPoolExecutor(2) as pool:
        assert list(pool.map(size, range(4))) == [size(n) for n in range(4)]'

# With nothing of the system on PATH, least of all a compiler.
works() { # NAME VENV MODULE
    local alone=(env -i "PATH=$2/bin" "TMPDIR=$tmp" LC_ALL=C.UTF-8)
    echo "${pool//MODULE/$3}" >"$tmp/pool.py"
    check "$1-pool_with_$3_works" 0 "${alone[@]}" python "$tmp/pool.py"
    [[ "$("${alone[@]}" extisolate --version)" == "extisolate "* ]] && ok "$1-program_works" || not_ok "$1-program_works"
    [[ "$("${alone[@]}" python -m extisolate doctor)" == *"contexts     yes"* ]] && ok "$1-doctor_is_content" ||
        not_ok "$1-doctor_is_content" "$("${alone[@]}" python -m extisolate doctor 2>&1)"
}

install() { # PYTHON VENV [OPTION]...: pip chooses the wheel
    local exe=$1 venv=$2
    shift 2
    "$exe" -m venv --clear "$@" "$venv" &&
        "$venv/bin/python" -m pip install -q --no-index --find-links "$dist" extisolate
}

# LGPL: whoever uses the wheel can use other builds of what it brings; the system's are at hand.
relinked() { # VENV
    local lib name
    lib=$(echo "$1"/lib/python*/site-packages/extisolate/lib)
    for name in libelf libnettle; do
        cp "$(ldconfig -p | sed -n "s/.*$name\.so\.[0-9]* .*=> //p" | head -n 1)" "$(echo "$lib/$name"-*)" || not_ok "$name-is_here"
    done
    check libraries_that_were_replaced_are_used 0 "$1/bin/python" "$tmp/pool.py"
}

# Another's libelf that was there before takes no place of the wheel's, nor the other way round.
beside() { # VENV
    echo 'import ctypes, sys
if sys.argv[1] == "before": ctypes.CDLL("libelf.so.1", ctypes.RTLD_GLOBAL)
import extisolate
ctypes.CDLL("libelf.so.1", ctypes.RTLD_GLOBAL)
with extisolate.create() as interp:
    assert interp.call(divmod, 17, 5) == (3, 2)
    names = {line.split("/")[-1] for line in open("/proc/self/maps").read().splitlines() if "/libelf" in line}
assert len(names) == 2, names' >"$tmp/beside.py"
    check systems_libelf_can_be_there_before 0 "$1/bin/python" "$tmp/beside.py" before
    check systems_libelf_can_come_afterwards 0 "$1/bin/python" "$tmp/beside.py" afterwards
}

# shellcheck disable=SC2046
if ! env -u MAKEFLAGS -u MAKELEVEL make -C "$root" wheel BUILD="$build" PYTHON="$(echo $(builders))" >"$tmp/log" 2>&1; then
    if grep -q 'Error 69$' "$tmp/log"; then
        echo "skip wheel: $(grep -B 1 'Error 69$' "$tmp/log" | head -n 1)"
    else
        not_ok wheels_are_built "$(tail -n 30 "$tmp/log")"
    fi
    exit
fi
ok wheels_are_built

(cd "$source/src/extisolate" && find . -name '*.py' -o -name '*.pyi' -o -name py.typed
    printf './lib/lib%s\n' extisolate.so.0 extisolate-link.so.0 extisolate-python.so.0 elf-extisolate.so.1 nettle-extisolate.so.8
    printf './licenses/%s\n' LICENSE LGPL-3 GPL-3 THIRD-PARTY.md SOURCES
    echo ./bin/extisolate) | LC_ALL=C sort >"$tmp/wanted"
for wheel in "$dist"/*.whl; do
    label=${wheel##*/extisolate-*-cp} && label=wheel-${label%%-*}
    inspect "$label" "$wheel"
done
for file in extisolate libextisolate.so; do
    found=$("$root/tests/meta/hardening.sh" "$([ $file = extisolate ] && echo program || echo library)" "$build/manylinux/$file" 2>&1)
    [ -z "$found" ] && ok "$file-is_hardened" || not_ok "$file-is_hardened" "$found"
done
[ "$(glibc_of "$build/libextisolate.so")" -gt 28 ] && ok what_this_system_builds_is_seen_to_need_more ||
    echo "skip what_this_system_builds_is_seen_to_need_more: its glibc is old"

venv=$tmp/venv
check system-is_installed 0 install "$system" "$venv" --system-site-packages
works system "$venv" numpy
[ -z "${EXTI_ALL:-}" ] || tests_in system "$venv"
beside "$venv"
relinked "$venv"
for exe in $(pythons | tail -n +2); do
    label=$(version "$exe")
    check "$label-is_installed" 0 install "$exe" "$venv-$label"
    works "$label" "$venv-$label" json
    if [ -n "${EXTI_ALL:-}" ] && "$venv-$label/bin/python" -m pip install -q --retries 1 pytest numpy cloudpickle joblib; then
        tests_in "$label" "$venv-$label"
    fi
done
if [ -n "${EXTI_ALL:-}" ]; then
    for exe in $(newer_pythons); do
        label=$(version "$exe")
        unpack_for "$exe" "$label" "$venv-$label" "$dist"/extisolate-*-abi3-*.whl >"$tmp/log" 2>&1 && tests_in "$label" "$venv-$label" ||
            echo "skip $label: packages cannot be had here: $(tail -n 1 "$tmp/log")"
    done
fi
