#!/bin/bash
# abi.sh HEADER MAP SHARED: prints each public function that the header declares, the version map
# lists or the library exports, but not all three; and anything exported without a version.
set -u
export LC_ALL=C
node=$(sed -n 's/^\(EXTI[A-Z]*_[0-9.]*\) {.*/\1/p' "$2" | tail -n 1)
prefix=$(tr '[:upper:]' '[:lower:]' <<<"${node%%_*}")_
name="$prefix[a-z0-9_]+"
declared=$(grep -oE "^EXTI_API .*\b$name\(" "$1" | grep -oE "$name\(\$" | tr -d '(' | sort)
mapped=$(sed -nE "/^global:/,/^local:/s/^ *($name);.*/\1/p" "$2" | sort)
all=$(nm -D --defined-only "$3" | awk '$2 != "A" { print $3 }' | sort)
exported=$(sed -n "s/@@${node//./\\.}\$//p" <<<"$all" | sort)
stray=$(grep -v "@@${node//./\\.}\$" <<<"$all")
bad=0

say() { # MESSAGE NAMES
    [ -z "$2" ] && return
    sed "s/\$/: $1/" <<<"$2"
    bad=1
}
[ -n "$declared" ] || say "has no public functions" "$1"
say "declared, but not in the version map" "$(comm -23 <(echo "$declared") <(echo "$mapped"))"
say "in the version map, but not declared" "$(comm -13 <(echo "$declared") <(echo "$mapped"))"
say "declared, but not exported" "$(comm -23 <(echo "$declared") <(echo "$exported"))"
say "exported, but not declared" "$(comm -13 <(echo "$declared") <(echo "$exported"))"
say "exported without a version" "$stray"
exit $bad
