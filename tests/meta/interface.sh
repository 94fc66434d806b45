#!/bin/bash
# interface.sh HEADER MAP LIBRARY: makes a library with debug information of all that the header declares, and
# nothing else.  It has the interface of the real one and none of its types, and calls of it end the process.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp "$1" "$tmp/interface.h"
{
    echo '#include "interface.h"'
    python3 - "$1" <<'END'
import re, sys

text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
for m in re.finditer(r"^EXTI_API ([^;{}]*?\bexti(?:py)?_\w+\()(.*?)\);", text, re.S | re.M):
    print("%s%s) { __builtin_trap(); }" % (m[1], m[2]))
END
} >"$tmp/all.c"
"${CC:-cc}" -std=c11 -g -w -shared -fPIC -DEXTI_API= -I include -Wl,--version-script="$2" \
    -Wl,-soname,libextisolate.so -o "$3" "$tmp/all.c"
