#!/bin/bash
# The manual pages are valid.  The program's names the same options as the help of the commands, and those of
# the libraries all that their headers have and say.
. "$(dirname "$0")/support.bash"
page=$ROOT/docs/extisolate.1 quirks=$ROOT/docs/extisolate-quirks.5
built=$(dirname "$EXTISOLATE")
pages=("$page" "$built/extisolate.3" "$built/extisolate-python.3" "$built/extisolate-link.3" "$quirks")
: >out
: >err

if command -v mandoc >/dev/null; then
    # Whether other pages are installed is no matter of this one.
    mandoc -Tlint "${pages[@]}" 2>&1 | grep -v 'mandoc\.db\|referenced manual not found' >out
    [ ! -s out ]
    say $? mandoc_finds_nothing
    : >out
else
    skip mandoc_finds_nothing 'there is no mandoc(1)'
fi
if command -v man >/dev/null; then
    # groff 1.23 justifies, and warns of each line that has one long word.
    shown() { man -l --no-justification --warnings=all "$1" 2>>err; }
    for p in "${pages[@]}"; do
        shown "$p" >page
        grep -m 1 . page >>heads
    done
    [ ! -s err ] && [ "$(awk '{ printf "%s ", $1 }' heads)" = \
        'EXTISOLATE(1) EXTISOLATE(3) EXTISOLATE-PYTHON(3) EXTISOLATE-LINK(3) EXTISOLATE-QUIRKS(5) ' ]
    say $? groff_finds_nothing
    printf '%s\n' '.Dd January 1, 2026' '.Dt FAULTY 5' .Os '.Sh NAME' '\[nonesuch]' >faulty.5
    shown "$PWD/faulty.5" >out
    grep -q "special character.*'nonesuch'" err
    say $? groff_finds_a_fault
    : >out
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
for c in copy copy-tree inspect rewrite verify run list clean quirks; do
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
for c in copy copy-tree inspect rewrite verify run list clean quirks help; do
    grep -qx "\.Cm $c" "$page"
    say $? "synopsis_has_$c"
    [ $c = help ] && continue
    in_synopsis $c >synopsis.$c
    same "synopsis_has_the_options_of_$c" help.$c synopsis.$c
done

# The names and words of a header's declarations and comments, from its first section on.
words_of_header() {
    sed -n '/^\/\* ----/,$p' "$1" | sed -E -e '/^#(if|endif|include)|^extern/d' \
        -e 's/^(#define [A-Z_0-9]+) +[^ ]+/\1/' -e 's/^(EXTI_API|#define|typedef) //' |
        words
}
words_of_page() { mandoc -Tascii -O width=500 "$1" | col -b | words; }
words() { tr '[:upper:]' '[:lower:]' | grep -oE '[a-z_][a-z_0-9]*' | sort; }
# What the header has and the page has not, or not as often.
unsaid() { comm -23 <(words_of_header "$1") <(words_of_page "$2"); }

# The functions of a version map, and those that the page has a name, a synopsis and an entry of.
in_map() { grep -oE 'exti[a-z]*_[a-z_]+;' "$1" | tr -d ';' | sort; }
documented() {
    comm -12 <(sed -nE 's/^\.Nm (exti[a-z]*_[a-z_]+)( ,)?$/\1/p' "$1" | sort) <(sed -n 's/^\.Fo //p' "$1" | sort) |
        comm -12 - <(sed -nE 's/^\.It Fn ([a-z_]+).*/\1/p' "$1" | sort)
}

while read -r header map manual; do
    documented "$built/$manual" >functions
    in_map "$ROOT/$map" >exported
    same "${manual}_has_each_function" functions exported
    if command -v mandoc >/dev/null && command -v col >/dev/null; then
        unsaid "$ROOT/$header" "$built/$manual" >unsaid
        same "${manual}_says_all_that_the_header_says" unsaid /dev/null
        grep -v 'EXTI_E_ARG' "$built/$manual" >shorter
        unsaid "$ROOT/$header" shorter | grep -qx exti_e_arg
        say $? "what_${manual}_leaves_out_is_found"
    else
        skip "${manual}_says_all_that_the_header_says" 'there is no mandoc(1) or col(1)'
    fi
done <<'END'
include/extisolate.h loader/extisolate.map extisolate.3
include/extisolate/python.h runtime/extisolate-python.map extisolate-python.3
include/extisolate/link.h link/extisolate-link.map extisolate-link.3
END
finish
