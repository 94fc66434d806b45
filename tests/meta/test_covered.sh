#!/bin/bash
# Each source has a test, and tests/meta/covered.py would notice if one had not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

say() { # STATUS NAME
    if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2"; fi
}

"$here/covered.py" "$here/../.."
say $? each_source_has_a_test

mkdir -p "$tmp"/{loader/store,tests/unit/store,tests/cli,cli}
touch "$tmp"/loader/store/{manifest,names,edits}.c "$tmp"/cli/main.c \
    "$tmp"/tests/unit/store/{test_manifest.c,test_edits_pe.c} "$tmp"/tests/cli/test_usage.sh
good='cli/main.c: tests/cli/test_usage.sh
loader/store/names.c: tests/cli/test_usage.sh'
tells() { # NAME LINES MESSAGE
    printf '%s\n' "$2" >"$tmp/tests/covered.txt"
    [ "$("$here/covered.py" "$tmp")" = "$3" ]
    say $? "$1"
}
tells tests_of_their_own_and_named_ones_are_accepted "$good" ''
tells an_untested_source_is_found 'cli/main.c: tests/cli/test_usage.sh' \
    'loader/store/names.c: has no test of its own, and tests/covered.txt names none'
tells a_test_that_is_gone_is_found "$good tests/cli/test_gone.sh" 'loader/store/names.c: there is no tests/cli/test_gone.sh'
tells a_line_without_a_test_is_found "${good% *}" 'loader/store/names.c: no test is named'
tells a_source_that_is_gone_is_found "$good
cli/gone.c: tests/cli/test_usage.sh" 'cli/gone.c: there is no such source'
tells a_needless_line_is_found "$good
loader/store/manifest.c: tests/cli/test_usage.sh" 'loader/store/manifest.c: has a test of its own'
