#!/bin/bash
# Prints each include under ROOT (default: here) that breaks the layers:
#
#     cli, runtime  ->  loader  ->  elf | macho | pe  ->  base
#
# The public header is open to all, and is all that cli/, runtime/ and tests/api/ see of the library.
set -u
cd "${1:-.}" || exit 2

allowed() { # what the files of a folder may include, as a pattern of the whole name
    case $1 in
    base/*) echo 'base/[a-z0-9_/]+\.h' ;;
    include/*) echo 'nothing' ;;
    loader/*) echo '(base|loader)/[a-z0-9_/]+\.h|(elf|macho|pe)/(elf|macho|pe)_format\.h' ;;
    elf/* | macho/* | pe/*) echo "(${1%%/*}|base)/[a-z0-9_/]+\.h" ;;
    runtime/*) echo 'runtime/[a-z0-9_]+\.h' ;;
    cli/*) echo '(cli|runtime)/[a-z0-9_/]+\.h' ;;
    tests/api/*) echo 'tests/(support|isolation)/[a-z0-9_]+\.h|tests/unit/pe/pe_toy\.h' ;;
    *) echo '.*' ;;
    esac
}

bad=0
while IFS= read -r file; do
    ok=$(allowed "$file")
    while IFS=: read -r line text; do
        name=$(sed -E 's/^[^"]*"([^"]*)".*/\1/' <<<"$text")
        if ! [[ $name =~ ^($ok)$ ]]; then
            echo "$file:$line: must not include \"$name\""
            bad=1
        elif [ ! -f "$name" ]; then
            echo "$file:$line: \"$name\" is not named from the top folder"
            bad=1
        fi
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file")
done < <(find base include loader elf macho pe runtime cli tests bench -name '*.[ch]' 2>/dev/null | sort)
exit $bad
