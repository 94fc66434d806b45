#!/bin/bash
# ld.so reports no binding from a context to another context or to the original libpython, and binds
# numpy's unique symbols (STB_GNU_UNIQUE) within each copy.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

umath=$($system -c 'import numpy, sys
modules = (sys.modules.get(f"numpy.{core}._multiarray_umath") for core in ("_core", "core"))
print(next(m.__file__ for m in modules if m))' 2>/dev/null)
if [ -z "$umath" ]; then
    echo "skip bindings: $system has no numpy"
    exit 0
fi
# Prints LD_DEBUG's lines "binding file A [0] to B [0]: normal symbol `S'" as "A B S".
bound() {
    local file='\([^ ]*\) \[0\]'
    cat ld.* | sed -n "s/.*binding file $file to $file: [a-z]* symbol \`\([^']*\)'.*/\1 \2 \3/p"
}
run_traced() { # OPTION...
    rm -rf ld.* ctxs
    # shellcheck disable=SC2086
    LD_DEBUG=bindings LD_DEBUG_OUTPUT=$tmp/ld $run --python $system --contexts 2 --dir ctxs "$@" \
        -c 'import numpy, json, ssl, sqlite3, decimal, ctypes' >out 2>err
}
# count NAME LEAST MOST PATTERN: the number of bindings that match lies between LEAST and MOST
count() {
    local n
    n=$(bound | grep -cE "$4")
    [ "$n" -ge "$2" ] && [ "$n" -le "$3" ] && ok "$1" || not_ok "$1" "$n bindings match $4"
}

for how in plain rename; do
    if [ $how = rename ]; then run_traced --rename; else run_traced; fi || {
        not_ok "${how}_run" "$(cat err)"
        continue
    }
    c=$tmp/ctxs
    count "${how}_bindings_stay_in_context_0" 2000 9999999 "^$c/0/[^ ]* $c/0/"
    count "${how}_bindings_stay_in_context_1" 2000 9999999 "^$c/1/[^ ]* $c/1/"
    count "${how}_nothing_crosses" 0 0 "^($c/0/[^ ]* $c/1/|$c/1/[^ ]* $c/0/)"
    count "${how}_nothing_reaches_the_original" 0 0 "^$c/[^ ]* [^ ]*/libpython3[^ /]*\.so\.1\.0 "
    unique=$(nm -D "$umath" | awk '$2 == "u" { print $3 }')
    for s in $unique; do
        count "${how}_unique_${s: -24}_is_bound" 2 9999999 \
            "^$c/([01])/_multiarray[^ ]* $c/\1/_multiarray[^ ]* $s\$"
    done
    any=$(tr '\n' '|' <<<"$unique" | sed 's/|$//')
    defined=$(nm -D "$c"/0/_multiarray_umath.* | grep -cE " [VWD] ($any)\$")
    [ "$(wc -w <<<"$unique")" = "$defined" ] &&
        [ -z "$(nm -D "$c"/0/_multiarray_umath.* | awk '$2 == "u"')" ] &&
        ok "${how}_no_unique_symbol_is_left" || not_ok "${how}_no_unique_symbol_is_left"
done

# The control: of two plain copies of numpy's core the second one uses the tables of the first.
cat >load.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i], RTLD_NOW | (i == 1 ? RTLD_GLOBAL : RTLD_LOCAL)))
            return fprintf(stderr, "%s\n", dlerror()), 1;
    return 0;
}
END
libpython=$(sed -n 's/.*"source": "\(.*libpython[^"]*\)".*/\1/p' ctxs/0/manifest.json)
rm -f ld.*
if ${CC:-cc} -o load load.c && cp "$umath" one.so && cp "$umath" two.so &&
    LD_DEBUG=bindings LD_DEBUG_OUTPUT=$tmp/ld ./load "$libpython" ./one.so ./two.so; then
    for s in $unique; do
        count "control_plain_copies_share_${s: -24}" 1 99 "^./two.so ./one.so $s\$"
    done
else
    not_ok control_plain_copies_share
fi
