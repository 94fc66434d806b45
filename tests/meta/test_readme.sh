#!/bin/bash
# README.md holds: its program builds against an installed library and runs, the commands, targets and
# paths it names exist, and uninstalling leaves nothing.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${EXTI_BUILD:-build}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cc=${CC:-cc}

verdict() { # NAME, after the command it is about
    if [ $? = 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

none_missing() { # in $missing, a line each
    [ -z "$missing" ] || { echo "missing: $missing" && false; }
}

make -s --no-print-directory install DESTDIR="$tmp/stage" PREFIX=/opt/exti >"$tmp/log" 2>&1 ||
    cat "$tmp/log"
stage=$tmp/stage/opt/exti
[ -x "$stage/bin/extisolate" ] &&
    [ "$(cd "$stage" && find include share -type f | LC_ALL=C sort | tr '\n' ' ')" = \
        'include/extisolate.h include/extisolate/link.h include/extisolate/python.h '\
'share/doc/extisolate/sharing.md share/man/man1/extisolate.1 share/man/man3/extisolate-link.3 '\
'share/man/man3/extisolate-python.3 share/man/man3/extisolate.3 '\
'share/man/man5/extisolate-quirks.5 ' ]
verdict install_puts_program_headers_and_documentation

shown_c() { # N: the Nth program in C that README.md shows
    awk -v n="$1" '/^```$/ { on = 0 } on { print } /^```c$/ { on = ++i == n }' README.md
}

export PKG_CONFIG_PATH=$stage/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/stage
shown_c 1 >"$tmp/embed.c"
lines=$(grep -c . "$tmp/embed.c")
[ "$lines" -ge 20 ] && [ "$lines" -le 45 ]
verdict program_is_in_the_readme

# shellcheck disable=SC2046
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror "$tmp/embed.c" \
    $(pkg-config --cflags --libs extisolate) -o "$tmp/embed"
verdict program_builds_with_pkg_config

PKG_CONFIG_SYSROOT_DIR='' pkg-config --print-errors --exists extisolate &&
    static=$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-l extisolate) &&
    "$cc" -std=c99 -I "$stage/include" "$tmp/embed.c" "$stage/lib/libextisolate.a" \
        ${static//-lextisolate/} -o "$tmp/embed-static"
verdict program_builds_with_the_static_library

{ echo '#include <extisolate/python.h>'; echo 'int main(void) { return exti_version()[0] == 0; }'; } >"$tmp/x.cc"
if command -v c++ >/dev/null; then
    c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$stage/include" "$tmp/x.cc"
    verdict header_is_cxx
else
    echo "skip header_is_cxx: no C++ compiler"
fi

python=/usr/bin/python3
libpython=$("$python" -c 'import sysconfig as s; v = s.get_config_var
print(v("LIBDIR") + "/" + v("MULTIARCH") + "/" + v("INSTSONAME"))' 2>/dev/null)
[ -f "$libpython" ] || libpython=${libpython/"/$("$python" -c 'import sysconfig
print(sysconfig.get_config_var("MULTIARCH"))')"/}
# In numpy.core, or in numpy 2's numpy._core.
module=$("$python" -c 'import numpy, sys
print(*{m.__file__ for n, m in sys.modules.items() if n.endswith("core._multiarray_umath")})' 2>/dev/null)
for kind in embed embed-static; do
    if [ -f "$libpython" ] && [ -f "$module" ]; then
        LD_LIBRARY_PATH=$stage/lib "$tmp/$kind" "$libpython" "$module" PyInit__multiarray_umath \
            >"$tmp/out" && cat "$tmp/out" &&
            [ "$(grep -cE ' in context [01]: 0x[0-9a-f]+, [1-9][0-9]* references, 0 leaks$' "$tmp/out")" = 2 ] &&
            [ "$(awk '{ print $5 }' FS='[ :,]+' "$tmp/out" | sort -u | wc -l)" = 2 ]
        verdict "${kind}_program_runs"
    else
        echo "skip ${kind}_program_runs: no shared libpython or no numpy for $python"
    fi
done
LD_LIBRARY_PATH=$stage/lib "$tmp/embed" /nonexistent.so x.so y 2>&1 | grep -q '/nonexistent.so: '
verdict program_reports_a_failure

shown_c 2 | diff examples/host.c - && [ "$(wc -l <examples/host.c)" -lt 60 ]
verdict host_in_c_is_in_the_readme
host_in_c() { # NAME OUTPUT
    # shellcheck disable=SC2046
    "$cc" -std=c99 -pedantic -Wall -Wextra -Werror "examples/$1.c" \
        $(pkg-config --cflags --libs extisolate-python) -L"$stage/lib" -Wl,-rpath-link,"$stage/lib" -o "$tmp/$1"
    verdict "${1}_in_c_builds_with_pkg_config"
    if [ -f "$libpython" ]; then
        LD_LIBRARY_PATH=$stage/lib "$tmp/$1" >"$tmp/out"
        [ "$(cat "$tmp/out")" = "$2" ]
        verdict "${1}_in_c_runs" || cat "$tmp/out"
    else
        echo "skip ${1}_in_c_runs: no shared libpython for $python"
    fi
}
host_in_c host 'context 0: sum 100, and the program sees 10
context 1: sum 1000, and the program sees 100'
host_in_c jobs 'a job has ended: EXTI_OK
a job has ended: EXTI_OK'

commands=$(grep -oE '^extisolate [a-z]+' README.md | awk '{ print $2 }' | sort -u)
missing=$(for c in $commands; do "$build/extisolate" help "$c" >/dev/null 2>&1 || echo "command $c"; done)
none_missing && [ "$(wc -w <<<"$commands")" = 8 ]
verdict commands_exist

make -s help >"$tmp/help"
missing=$(for t in $(grep -ohE '`?make [a-z]+(-[a-z0-9]+)*' README.md CONTRIBUTING.md | awk '{ print $2 }' | sort -u); do
    grep -qE "^ +$t " "$tmp/help" || echo "target $t"
done)
none_missing
verdict targets_exist

missing=$(for p in $(sed -nE 's/^\| `([^`]*)` .*/\1/p' README.md); do
    [ -e "$p" ] || echo "$p"
done)
none_missing
verdict paths_exist

man --warnings -l "$stage/share/man/man1/extisolate.1" >/dev/null 2>"$tmp/log" && [ ! -s "$tmp/log" ]
verdict man_page_is_well_formed || cat "$tmp/log"

make -s --no-print-directory uninstall DESTDIR="$tmp/stage" PREFIX=/opt/exti >/dev/null 2>&1
[ -z "$(find "$tmp/stage" ! -type d)" ]
verdict uninstall_leaves_nothing
