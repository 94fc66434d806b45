#!/bin/bash
# libextisolate-link: header, version map and exported symbols agree, and it needs the C library alone.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
build=${EXTI_BUILD:-build}
header=include/extisolate/link.h map=link/extisolate-link.map shared=$build/libextisolate-link.so
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

verdict() { # NAME, after the command it is about
    if [ $? = 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

[ -z "$("$here/abi.sh" $header $map "$shared")" ]
verdict header_map_and_library_agree
sed '/^ *exti_link_host;/d' $map >"$tmp/less.map"
[ "$("$here/abi.sh" $header "$tmp/less.map" "$shared")" = 'exti_link_host: declared, but not in the version map' ]
verdict missing_in_map_is_noticed
major=$(sed -n 's/^#define EXTI_VERSION_MAJOR //p' include/extisolate.h)
readelf -d "$shared" | grep SONAME | grep -qF "[libextisolate-link.so.$major]"
verdict soname_has_the_major_version
! readelf -d "$shared" | grep NEEDED | grep -vE '\[(libc\.so\.|libgcc_s\.|lib[atu]*san\.|libm\.|ld-linux)'
verdict it_needs_the_c_library_alone
nm -D --undefined-only "$shared" | grep -q ' malloc' &&
    ! nm -D --undefined-only "$shared" | grep -E ' (exti|v?f?printf|puts|fputs|fwrite|perror|exit|_exit|abort)'
verdict it_neither_prints_nor_exits

cat >"$tmp/host.c" <<'C'
#include <extisolate/link.h>
static int64_t count(void *u, const void *n) { (void)u; return *(const int64_t *)n; }
static void add(void *u, void *n, int64_t by) { (void)u; *(int64_t *)n += by; }
static int survives(void *u, exti_host_word *o) { (void)u; (void)o; return 0; }
static void keep(void *u, exti_host_word o) { (void)u; (void)o; }
int main(void)
{
    struct exti_links_opts o = {.size = sizeof o, .natives = {.count = count, .add = add},
                                .marking = {.survives = survives, .keep = keep}};
    struct exti_links *links;
    int64_t native = 1;
    if (exti_links_open(&links, &o, NULL) || exti_link_native(links, 42, &native) ||
        exti_link_to_host(links, &native) != 42)
        return 1;
    exti_links_sweep(links, EXTI_LINKS_YOUNG);
    if (exti_links_next_dead(links) != &native || native != 1)
        return 2;
    exti_links_close(links);
    return 0;
}
C
flags=$(sed -n 's/.*\(-fsanitize=[a-z,]*\).*/\1/p' "$build/flags" | head -1)
"${CC:-cc}" -std=c11 $flags -I include "$tmp/host.c" -L"$build" -lextisolate-link -Wl,-rpath,"$PWD/$build" -o "$tmp/host" &&
    LD_LIBRARY_PATH=$build "$tmp/host"
verdict a_host_needs_this_library_alone
