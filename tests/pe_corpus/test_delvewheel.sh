#!/bin/bash
# Gives extisolate and delvewheel the same files and new names, and compares which files each
# handles and what it gets wrong.  Both are judged alike: by LLVM's reader and the changed bytes
# (compare.py), and by `verify`.  Prints a table, whose times are only informative; bench/ has the
# benchmarks.
. "$(dirname "$0")/../cli/support.bash"

build=$(dirname "$EXTISOLATE")
corpus=${EXTI_PE_CORPUS:-$build/pe_corpus}
rewrite=$build/tests/pe_rewrite
here=$ROOT/tests/pe_corpus
python=/usr/bin/python3

: >out >err
"$here/fetch.sh" "$corpus"
other=$corpus/delvewheel/bin/python
if [ ! -x "$other" ]; then
    skip delvewheel "$(cat "$corpus/delvewheel.skip")"
    exit 0
fi
mkdir theirs

# Enough files of each kind to count, but none so large that delvewheel takes long.
{ [ ! -d "$corpus/files" ] || find "$corpus/files" -type f -size -700k; } | sort |
    awk 'NR % 3 == 1' >files
ls /usr/lib/gcc/*-w64-mingw32/*-win32/*.dll 2>/dev/null | xargs -r ls -S | tail -n 12 >files.mingw
wine=$(ls -d /usr/lib/*/wine/x86_64-windows 2>/dev/null | head -n 1)
find "${wine:-/nonexistent}" -name '*.dll' -size -300k 2>/dev/null | sort |
    $python "$here/jobs.py" forwarding . >files.wine
[ -s files ] || skip files "no wheel can be had"
[ -s files.mingw ] || skip files_mingw "mingw is not installed (package gcc-mingw-w64-x86-64)"
[ -s files.wine ] || skip files_wine "wine is not installed (package wine64)"

# judge WHO SECTION: judges the copies that WHO made; leaves counts in WHO.numbers
judge() {
    local who=$1 kinds
    awk -F'\t' 'NR == FNR { made[$3] = $1 == "made"; next } made[$2]' "$who.made" "$who.jobs" >done
    $python "$here/compare.py" "$2" <done >"$who.differ" 2>err
    # Another section name than ours, or another way to count data, is no fault.
    "$rewrite" --judge <done 2>>err |
        grep -vE 'section dlvwhl: |SizeOfInitializedData' >"$who.findings"
    sed 's/: .*//' "$who.findings" | sort -u >"$who.unsound"
    kinds=$(cut -f1,2 "$who.differ" | sort -u | cut -f2 | sort | uniq -c |
        awk '{ printf "%s%s: %d", s, $2, $1; s = ", " }')
    awk -F'\t' -v broken="$(cut -f1 "$who.differ" | sort -u | wc -l)" \
        -v unsound="$(wc -l <"$who.unsound")" -v kinds="${kinds:--}" '
        { total++ }
        $1 == "made" { made++; us += $4 }
        END { printf "%d\t%d\t%d\t%d\t%.2f\t%s\n", total, made, broken, unsound,
                     made ? us / made / 1000 : 0, kinds }' "$who.made" >"$who.numbers"
}

# The findings that most files have: the comparison's, or `verify`'s if that finds nothing.
example() {
    if [ -s "$1.differ" ]; then
        cat "$1.differ"
    else
        sed 's/: 0x[0-9a-f]*: /\t/' "$1.findings"
    fi |
        sed -E 's/\t(0x[0-9a-f]+|[0-9]+)/\tN/; s/([ :(])(0x[0-9a-f]+|[0-9]+)/\1N/g' | sort -u |
        cut -f2- | sort | uniq -c | sort -rn | head -n 3 | cut -c1-110 |
        sed 's/\t/: /; s/^ */#       of them /'
}

row() {
    awk -F'\t' -v who="$1" '
        { printf "#   %-12s %5d %8d %7d %8d %9.2f  %s\n", who, $1, $2, $3, $4, $5, $6 }' \
        "$2.numbers"
}

# Runs both, and delvewheel once more, allowed to strip what lies behind the sections.
side_by_side() { # TITLE HOW FILES
    local name=$2${3#files} strip
    [ -s "$3" ] || return 0
    $python "$here/jobs.py" "$2" "$T/ours" <"$3" |
        awk -F'\t' -v OFS='\t' '{ $3 = ""; print }' >ours.jobs
    awk -F'\t' -v OFS='\t' -v d="$T/theirs/" '{ sub(/.*\//, d, $2); print }' ours.jobs >theirs.jobs
    "$rewrite" --make <ours.jobs >ours.made 2>err
    judge ours .extiso
    echo "# $1"
    row extisolate ours
    for strip in '' --strip; do
        # shellcheck disable=SC2086
        "$other" "$here/delvewheel.py" $strip <theirs.jobs >theirs.made 2>err
        judge theirs dlvwhl
        row "delvewheel${strip:+ -s}" theirs
        example theirs
        [ -n "$strip" ] || { cp theirs.made first; cp theirs.numbers numbers; }
        grep -q ^refused theirs.made || break
    done
    awk -F'\t' '$1 == "refused" { sub(/Dependency [^ ]* /, "Dependency X ", $4)
        sub(/of [^ ]* because/, "of X because", $4); print substr($4, 1, 100) }' first |
        sort | uniq -c | sort -rn | head -n 3 | sed 's/^ */#     delvewheel refused /'
    # extisolate handles every file that delvewheel handles, and gets it right.
    awk -F'\t' 'NR == FNR { if ($1 == "made") ours[$2] = 1; next }
        $1 == "made" && !($2 in ours) { print $2; bad = 1 } END { exit bad }' \
        ours.made first >out &&
        [ "$(wc -l <first)" = "$(wc -l <ours.jobs)" ] &&
        [ ! -s ours.differ ] && [ ! -s ours.unsound ]
    say $? "all_that_delvewheel_handles_$name: $(cut -f2 ours.numbers), delvewheel $(
        cut -f2 numbers)" \
        "$(cat out; head -n 3 ours.differ ours.unsound)"
    awk -F'\t' '{ refused += $1 - $2; broken += $3 }
        END { print refused + 0, broken + 0 }' numbers >>totals
    rm -rf "$T/ours" theirs/*
}

: >totals
echo "#   who          files  handled  differ  unsound   ms/file  files with wrong differences"
side_by_side "one library renamed" api files
side_by_side "every library renamed to a long name" long files
side_by_side "the same, no room in the headers for a section's" grown files
side_by_side "the same, with bytes of others behind the sections" overlay files
side_by_side "one library renamed, bound imports" bound files
side_by_side "every library renamed, symbols behind the sections" long files.mingw
side_by_side "every library renamed, forwarded exports" same files.wine

# Without these the comparison would show nothing.
if [ -s files ]; then
    awk '{ refused += $1; broken += $2 } END { exit !(refused && broken) }' totals
    say $? "delvewheel_refuses_or_breaks_some: $(
        awk '{ r += $1; b += $2 } END { print r ", " b }' totals)"
fi
finish
