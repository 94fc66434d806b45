#!/bin/bash
# The sources keep to the limits of CONTRIBUTING.md, and a longer line or file would be noticed.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
rooms='base elf macho pe loader link runtime cli bindings include'

say() { # STATUS NAME
    if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2"; fi
}

# The public headers are as long as what they declare.
too_long() { # FOLDER
    (cd "$1" && find $rooms -name '*.[ch]' | LC_ALL=C sort | xargs awk '
        length > 100 { print FILENAME ":" FNR ": line of more than 100 columns" }
        FNR == 601 && FILENAME !~ /^include\// { print FILENAME ": more than 600 lines" }')
}

too_long "$root" >"$tmp/found"
[ ! -s "$tmp/found" ]
say $? sources_keep_to_the_limits
cat "$tmp/found"

# shellcheck disable=SC2086
(cd "$tmp" && mkdir -p $rooms)
printf '/* %098d */\n' 0 >"$tmp/base/wide.c"
printf '/* %094d */\n' 0 >"$tmp/base/full.c"
seq 601 >"$tmp/cli/long.c"
seq 600 >"$tmp/cli/full.c"
seq 900 >"$tmp/include/public.h"
[ "$(too_long "$tmp")" = "base/wide.c:1: line of more than 100 columns
cli/long.c: more than 600 lines" ]
say $? what_is_longer_is_found
