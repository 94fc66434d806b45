#!/bin/bash
# Real PE files that others built: Windows wheels with the libraries that they contain, Node.js
# addons, CPython's own modules, and DLLs of wine and mingw.  They are copied into contexts, and
# copied with names for which the file has less and less room; programs that share no code with the
# library then read the copies.  Sets that cannot be fetched are reported as skipped.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/pe_corpus/stub.bash"

build=$(dirname "$EXTISOLATE")
corpus=${EXTI_PE_CORPUS:-$build/pe_corpus}
rewrite=$build/tests/pe_rewrite
here=$ROOT/tests/pe_corpus
python=/usr/bin/python3
min_files=100

: >out >err
"$here/fetch.sh" "$corpus"
sets=()
for set in x64 x86 arm64 npm cpython; do
    if [ -d "$corpus/files/$set" ]; then
        sets+=("$corpus/files/$set")
    else
        skip "files_$set" "$(cat "$corpus/$set.skip")"
    fi
done
: >files
[ ${#sets[@]} = 0 ] || find "${sets[@]}" -type f | sort >files
wine=$(ls -d /usr/lib/*/wine/x86_64-windows 2>/dev/null | head -n 1)
ls "$wine"/*.dll 2>/dev/null >files.wine || skip files_wine "wine is not installed (package wine64)"
ls /usr/lib/gcc/*-w64-mingw32/*/*.dll /usr/*-w64-mingw32/lib/*.dll 2>/dev/null >files.mingw ||
    skip files_mingw "mingw is not installed (package gcc-mingw-w64-x86-64)"
if [ ! -s files ] && [ ! -s files.wine ] && [ ! -s files.mingw ]; then exit 0; fi

# ---- what is there -------------------------------------------------------------------------------

machine_of() { # FILE: its headers begin with two bytes for the machine
    case $(od -An -tx2 -j $(($(od -An -tu4 -j 60 -N 4 "$1") + 4)) -N 2 "$1") in
    *8664) echo x64 ;;
    *014c) echo x86 ;;
    *aa64) echo arm64 ;;
    *) echo other ;;
    esac
}
while read -r f; do printf '%s\t%s\n' "$(machine_of "$f")" "$f"; done <files >machines
cut -f1 machines | sort | uniq -c | awk '{ print $1 " " $2 }' >kinds
if [ ${#sets[@]} = 5 ]; then
    [ "$(wc -l <files)" -ge $min_files ] && [ "$(wc -l <kinds)" = 3 ]
    say $? "files: $(wc -l <files), of which $(paste -sd, kinds | sed 's/,/, /g')" "too few"
fi

# ---- contexts ------------------------------------------------------------------------------------

# One file cannot be rewritten: a C++ library of ARM64, which is for two machines at once.
known='CHPEMetadataPointer is set'
$python "$here/jobs.py" same "$T/same" <files >jobs
"$rewrite" --make <jobs >made
awk -F'\t' '$1 == "refused"' made >refused
cut -f2,4 refused | sed 's|.*/\([^/]*\t\)|# refused: \1|'
! grep -qv "$known" refused
say $? "no_unexpected_refusal: $(wc -l <refused) of $(wc -l <files)"
awk -F'\t' 'NR == FNR { no[$2] = $1 == "refused"; next } !no[$2]' made machines >copyable

: >jobs.contexts
for machine in x64 x86 arm64; do
    awk -F'\t' -v m=$machine '$1 == m && $2 !~ /\/python311.dll$/ { print $2 }' copyable >sources
    [ -s sources ] || continue
    mapfile -t sources <sources
    libpython=$corpus/files/cpython/$machine/python311.dll
    if [ ! -f "$libpython" ]; then
        libpython=$T/stub/$machine/python311.dll
        if [ $machine != arm64 ]; then
            skip "context_$machine" "there is no CPython for it: $(cat "$corpus/cpython.skip")"
            continue
        fi
        stub_libpython "$T/stub/arm64" "${sources[@]}" >out 2>err
        say $? "stub_libpython_$machine: $(wc -l <symbols) symbols"
    fi
    x copy --json --libpython "$libpython" "${sources[@]}" "$T/$machine" >out 2>err </dev/null
    copied=$?
    run verify "$T/$machine"
    [ $copied = 0 ] && [ $rc = 0 ]
    say $? "context_$machine: ${#sources[@]} files" "copy: $copied, verify: $rc"
    jq -r --arg d "$T/$machine" '(.copies + [.api])[] | [.source, $d + "/" + .copy, .edits.id,
        ([.edits.needed[]? | .replace + "=" + .by] | join("|"))] | @tsv' \
        "$T/$machine/manifest.json" >>jobs.contexts
done

# ---- what others say -----------------------------------------------------------------------------

# compare NAME JOBS: compares in two processes; writes to `tiers` where the names went
compare() {
    local part bad=0 processes=()
    rm -f part.*
    split -n r/2 "$2" part.
    for part in part.aa part.ab; do
        [ -f $part ] || : >$part
        $python "$here/compare.py" .extiso $part.tiers <$part >$part.out 2>&1 &
        processes+=($!)
    done
    wait "${processes[0]}" || bad=1
    wait "${processes[1]}" || bad=1
    cat part.*.out >out
    cat part.*.tiers >tiers
    say $bad "$1" "$(cut -f2,3 out | sort | uniq -c | sort -rn | head -n 5)"
}

# where: counts of tiers, in words
where() {
    cut -f1 tiers | sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s%d%s", s, n, $0; s = ", " }
        END { printf "\n" }'
}

# importers WHICH FIELD: the names of all libraries that these files of jobs.contexts import from
importers() {
    cut -f"$2" jobs.contexts | tr '\n' '\0' |
        xargs -0 -r llvm-readobj --coff-imports 2>/dev/null |
        grep '^  Name: ' >"$1.names"
}

if [ -s jobs.contexts ]; then
    compare "contexts_differ_in_the_intended_only: $(wc -l <jobs.contexts) files" jobs.contexts
    echo "# $(where)"
    "$rewrite" --again <jobs.contexts >out 2>err
    say $? "contexts_are_the_same_each_time"
    importers copies 2
    importers sources 1
    [ "$(grep -ciE ' python3(11)?\.dll$' copies.names)" = 0 ] &&
        [ "$(grep -ciE ' python3(11)?\.dll$' sources.names)" = \
            "$(grep -cE ' p[0-9a-z]{8}\.dll$' copies.names)" ] && [ -s sources.names ]
    say $? "contexts_import_their_own_libpython: $(
        grep -cE ' p[0-9a-z]{8}\.dll$' copies.names) times"
fi

# tiers HOW FILES REFUSED: renames all libraries that the files need; each refusal must match
# REFUSED
tiers() {
    local how=$1 list=$2 known=$3 name
    name=$how${list#files}
    $python "$here/jobs.py" "$how" "$T/tier" <"$list" >jobs 2>err
    "$rewrite" --make <jobs >made 2>err
    awk -F'\t' 'NR == FNR { made[$3] = $1 == "made"; next } made[$2]' made jobs >done
    grep ^refused made >refused
    ! grep -qvE "$known" refused && [ -s done ]
    say $? "made_$name: $(wc -l <done) files, $(wc -l <refused) refused" \
        "$(grep -vE "$known" refused | head -n 5)"
    compare "differ_in_the_intended_only_$name" done
    echo "# $(where)"
    where >"where.$name"
    "$rewrite" --judge <done >out 2>err
    say $? "judged_sound_$name"
    "$rewrite" --again <done >out 2>err
    say $? "same_each_time_and_again_$name"
    read_by_lief "$name"
    if [ $name = long ]; then signatures "$name"; fi
    rm -rf "$T/tier"
}

# LIEF sees the requested names, and none that they replace.
read_by_lief() {
    "$rewrite" --lief <done >seen 2>err
    if [ $? = 3 ]; then
        skip "lief_$1" "it is not installed (package liblief-dev)"
        return
    fi
    awk -F'\t' '
        NR == FNR { n = split($4, names, "|")
                    for (i = 1; i <= n; i++) {
                        split(names[i], x, "=")
                        was[$2, x[1]] = 1
                        now[$2, x[2]] = 1
                    }
                    next }
        $2 == "unreadable" { print; bad++; next }
        $2 ~ /^machine/ { files++; next }
        { split($2, word, " ") }
        ($1, word[2]) in was { print; bad++ }
        ($1, word[2]) in now { good++ }
        END { printf "%d names in %d files\n", good, files; exit bad > 0 || good < files / 2 }' \
        done seen >out
    say $? "lief_sees_the_new_names_$1: $(tail -n 1 out)"
}

# Two programs check that the checksum is right if there was one, and that there is no signature.
# osslsigncode leaves out the last byte of a file of odd size.
signatures() {
    local copy n=0 said
    if command -v osslsigncode >/dev/null; then
        while read -r copy; do
            said=$(osslsigncode verify -in "$copy" 2>&1)
            n=$((n + 1))
            [[ $said == *"No signature found"* ]] || echo "$copy: signed"
            [[ $said != *"invalid PE checksum"* || $said =~ 'Current PE checksum   : 00000000' ]] ||
                [ $(($(stat -c %s "$copy") % 2)) = 1 ] || echo "$copy: checksum"
        done < <(cut -f2 done) >out
        [ ! -s out ]
        say $? "osslsigncode_$1: $n files"
    else
        skip "osslsigncode_$1" "it is not installed (package osslsigncode)"
    fi
    $python "$here/checksums.py" <done >out 2>err
    rc=$?
    if [ $rc = 77 ]; then
        skip "pefile_$1" "it is not installed (package python3-pefile)"
    else
        say $rc "pefile_$1: $(tail -n 1 out)"
    fi
}

if [ -s files ]; then
    tiers long files "$known"
    # Large files are done once only.
    xargs -d '\n' ls -L -s --block-size=1 <files |
        awk '$1 < 1000000 { sub(/^ *[0-9]+ /, ""); print }' >files.small
    for how in same api freed grown last bound overlay; do
        tiers $how files.small "$known"
    done
    # Hundreds of files used each place for names.
    if [ ${#sets[@]} = 5 ]; then
        cat where.* | tr , '\n' | sed 's/^ //' | awk '
            { n = $1; $1 = ""; count[$0] += n }
            END { for (t in count) print count[t] t }' | sort -rn >out
        sed 's/^/# in all: /' out
        [ "$(awk '$1 >= 200' out | wc -l)" = 6 ]
        say $? every_place_for_names_was_used
    fi
fi
if [ -s files.wine ]; then
    tiers long files.wine 'does not list, as GNU dlltool'
fi
# Symbols behind the sections cannot move, so a full header leaves no room.
if [ -s files.mingw ]; then
    tiers long files.mingw 'nothing is refused'
    tiers freed files.mingw 'nothing is refused'
    tiers last files.mingw 'no room for .* cannot grow, and the last section'
fi

# ---- what a changed byte does --------------------------------------------------------------------

# Proves that the comparison can fail.
source=$(cat files files.mingw files.wine | grep -E '_ssl.pyd|zlib1.dll|winmm.dll' | head -n 1)
echo "$source" | $python "$here/jobs.py" long "$T/control" >job
"$rewrite" --make <job >made
copy=$T/control/0
cp "$copy" whole
nt=$(od -An -tu4 -j 60 -N 4 "$copy")
table=$((nt + 24 + $(od -An -tu2 -j $((nt + 20)) -N 2 "$copy")))
field() { od -An -tu4 -j $(($1)) -N 4 "$copy" | tr -d ' '; }
code=$(field $((table + 20)))
data=$(field $((table + 60)))
imports=$(grep -abo 'xxxxxxxx' "$copy" | head -n 1 | cut -d: -f1)
bad=0
for at in code=$((code + 100)) data=$((data + 40)) dos=$((64 + 4)) entry=$((nt + 40)) \
    subsystem=$((nt + 92)) second_section=$((table + 52)) name=$((imports + 3)); do
    cp whole "$copy"
    byte=$(od -An -tu1 -j "${at#*=}" -N 1 "$copy")
    printf "\\x$(printf %x $((byte ^ 1)))" |
        dd of="$copy" bs=1 seek="${at#*=}" conv=notrunc status=none
    if $python "$here/compare.py" .extiso <job >out 2>err; then
        bad=1
        echo "    ${at%=*} at ${at#*=} was not noticed"
    fi
done
say $bad a_changed_byte_compares_different
head -c -1 whole >"$copy"
! $python "$here/compare.py" .extiso <job >out 2>err
say $? a_missing_byte_compares_different
cp whole "$copy"
$python "$here/compare.py" .extiso <job >out 2>err
say $? the_whole_compares_equal
sed 's/xxxxxxxx/xxxxxxxy/' job >other
! $python "$here/compare.py" .extiso <other >out 2>err && grep -q names out
say $? another_name_compares_different
cp "$source" "$copy"
! $python "$here/compare.py" .extiso <job >out 2>err
say $? a_file_that_was_not_rewritten_compares_different
finish
