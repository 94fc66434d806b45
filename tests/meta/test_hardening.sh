#!/bin/bash
# Program and library are built with what makes them harder to attack; tests/meta/hardening.sh would notice if
# they were not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
build=${EXTI_BUILD:-build}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

check() { # NAME WANTED program|library|objects FILE
    local got
    got=$("$here/hardening.sh" "$3" "$4" 2>&1)
    if [ "$got" = "$2" ]; then
        echo "ok $1"
    else
        printf 'wanted: %s\ngot: %s\n' "$2" "$(head -n 20 <<<"$got")"
        echo "not ok $1"
    fi
}

if grep -q '^HARDEN=$' "$build/flags"; then
    echo "skip hardening: built with HARDEN="
    exit
fi
if [ "$(head -c 4 "$build/extisolate")" != $'\177ELF' ]; then
    echo "skip hardening: this system's files are not ELF"
    exit
fi

check program_is_hardened '' program "$build/extisolate"
check library_is_hardened '' library "$build/libextisolate.so"
check objects_can_be_linked_into_marked_files '' objects "$build/libextisolate.a"

# Negative controls: the same source built with all of it, and each time without one.
cat >"$tmp/x.c" <<'END'
#include <stdio.h>
int main(int argc, char **argv)
{
    char text[64];
    snprintf(text, sizeof text + (argc > 1000), "%s", argv[0]);
    return puts(text) < 0;
}
#ifdef BOTH
__asm__(".section both, \"awx\", @progbits\n.long 0\n");
#endif
END
all='-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now,-z,noexecstack'
without() { # NAME WANTED FLAGS
    # shellcheck disable=SC2086
    "${CC:-cc}" $all $3 -o "$tmp/$1" "$tmp/x.c" || echo "not ok $1: cannot be built"
    check "$1" "$2" program "$tmp/$1"
}
without with_all_of_it_a_program_passes '' ''
without no_relro_is_noticed 'lacks GNU_RELRO' -Wl,-z,norelro
without lazy_binding_is_noticed 'lacks BIND_NOW' -Wl,-z,lazy
without an_executable_stack_is_noticed 'lacks a stack that is not executable' -Wl,-z,execstack
without writable_code_is_noticed 'lacks segments that are writable or executable, not both' -DBOTH
without no_stack_protector_is_noticed 'lacks __stack_chk_fail' -fno-stack-protector
without unchecked_calls_are_noticed 'lacks checked calls of libc' -U_FORTIFY_SOURCE
without a_fixed_address_is_noticed 'lacks an address of any choice (PIE)' '-fno-pie -no-pie'

case $(readelf -h "$build/extisolate" | sed -n 's/.*Machine: *//p') in
*X86-64*) protect=-fcf-protection marks='lacks IBT in plain.o
lacks SHSTK in plain.o' ;;
*AArch64*) protect=-mbranch-protection marks='lacks BTI in plain.o
lacks PAC in plain.o' ;;
*)
    echo "skip unmarked_objects_are_noticed: this machine has no marks"
    exit
    ;;
esac
level=full
[ $protect = -fcf-protection ] || level=standard
compile() { "${CC:-cc}" -O2 -c "$@"; }
echo 'int marked(int x) { return x + 1; }' >"$tmp/marked.c"
compile $protect=$level -o "$tmp/marked.o" "$tmp/marked.c"
echo 'int plain(int x) { return x + 2; }' >"$tmp/plain.c"
compile $protect=none -o "$tmp/plain.o" "$tmp/plain.c"
echo '__asm__(".text\n.globl bare\n.type bare, %function\nbare:\nnop\nret\n");' >"$tmp/bare.c"
compile $protect=$level -o "$tmp/bare.o" "$tmp/bare.c"
archive() { # NAME OBJECT...
    (cd "$tmp" && ar rcs "$1.a" "${@:2}")
}
archive marked marked.o
check marked_objects_pass '' objects "$tmp/marked.a"
archive mixed marked.o plain.o
check an_unmarked_object_is_noticed "$marks
lacks a mark at the start of plain" objects "$tmp/mixed.a"
archive assembly marked.o bare.o
check assembly_that_is_no_target_is_noticed 'lacks a mark at the start of bare' objects "$tmp/assembly.a"
