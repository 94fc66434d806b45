#!/bin/bash
# The manual page is valid, and names the same options as the help of the commands.
. "$(dirname "$0")/support.bash"
page=$ROOT/docs/extisolate.1 quirks=$ROOT/docs/extisolate-quirks.5
: >out
: >err

if command -v mandoc >/dev/null; then
    # Whether other pages are installed is no matter of this one.
    mandoc -Tlint "$page" "$quirks" 2>&1 | grep -v 'mandoc\.db\|referenced manual not found' >out
    [ ! -s out ]
    say $? mandoc_finds_nothing
    : >out
else
    skip mandoc_finds_nothing 'there is no mandoc(1)'
fi
if command -v man >/dev/null; then
    man -l --warnings=all "$page" >page.txt 2>err
    man -l --warnings=all "$quirks" >quirks.txt 2>>err
    [ ! -s err ] && grep -q '^EXTISOLATE(1)' page.txt && grep -q '^EXTISOLATE-QUIRKS(5)' quirks.txt
    say $? groff_finds_nothing
    : >err
else
    skip groff_finds_nothing 'there is no man(1)'
fi

# The options of a command's section in the page, and in its help.
in_page() {
    awk -v want="$1" '/^\.S[hs] / { in_it = $2 == want } in_it && /^\.It Fl / {
        for (i = 3; i <= NF; i++) {
            if ($i == ",") continue
            if ($(i - 1) == "Fl") print "-" $i
        } }' "$page" | sed 's/,$//' | sort -u
}
in_help() {
    "$EXTISOLATE" help "$1" | awk '/^options:/ { on = 1; next } /^$/ { on = 0 }
        on && /^  -/ { print } /^usage:|^   / { print }' | grep -oE -e '(^|[ [])--?[a-z][a-z-]*' |
        tr -d ' [' | grep -vx -e -h -e --help | sort -u
}
for c in copy copy-tree inspect verify run list clean quirks; do
    in_page $c >page.$c
    in_help $c >help.$c
    same "page_and_help_agree_on_the_options_of_$c" help.$c page.$c
done

# Every command is in the synopsis, with all its options.
in_synopsis() {
    awk -v want="$1" '/^\.Sh / { on = $2 == "SYNOPSIS" } /^\.(Nm|Sh)/ { mine = 0 }
        /^\.Cm / { mine = on && $2 == want }
        mine { for (i = 1; i < NF; i++) if ($i ~ /^\.?Fl$/) print "-" $(i + 1) }' "$page" | sort -u
}
for c in copy copy-tree inspect verify run list clean quirks help; do
    grep -qx "\.Cm $c" "$page"
    say $? "synopsis_has_$c"
    [ $c = help ] && continue
    in_synopsis $c >synopsis.$c
    same "synopsis_has_the_options_of_$c" help.$c synopsis.$c
done
finish
