#!/bin/bash
# hardening.sh program|library|objects FILE: prints what the file lacks of what makes it harder to attack.  Of
# `objects`, an archive, also each member that keeps the whole from being marked for the processor's checks of
# jumps and returns: the linker drops the mark when one object lacks it.
set -u
export LC_ALL=C
kind=$1 file=$2
headers=$(readelf -W -h -l -d "$file" 2>/dev/null)
bad=0

lacks() {
    echo "lacks $1"
    bad=1
}

if [ "$kind" != objects ]; then
    grep -q GNU_RELRO <<<"$headers" || lacks 'GNU_RELRO'
    grep -qE '\(FLAGS(_1)?\).*\bNOW\b|BIND_NOW' <<<"$headers" || lacks 'BIND_NOW'
    grep -qE 'GNU_STACK.* RW ' <<<"$headers" || lacks 'a stack that is not executable'
    ! grep -qE 'LOAD.* RWE ' <<<"$headers" || lacks 'segments that are writable or executable, not both'
    names=$(nm -D -u "$file" | sed 's/@.*//')
    grep -q ' __stack_chk_fail$' <<<"$names" || lacks '__stack_chk_fail'
    grep -qE ' __[a-z]+printf_chk$' <<<"$names" || lacks 'checked calls of libc'
fi
if [ "$kind" = program ]; then
    grep -qE 'Type: +DYN' <<<"$headers" && grep -q INTERP <<<"$headers" || lacks 'an address of any choice (PIE)'
fi
if [ "$kind" = objects ]; then
    case $(readelf -h "$file" | sed -n 's/.*Machine: *//p' | sort -u) in
    *X86-64*) marks='IBT SHSTK' landing='endbr64' ;;
    *AArch64*) marks='BTI PAC' landing='bti|paciasp' ;;
    *) marks= landing= ;;
    esac
    # readelf begins each member with "File: ARCHIVE(MEMBER)".
    notes=$(readelf -W -n "$file" | awk -v RS='File: ' 'NR > 1 { sub(/\n/, " "); gsub(/\n/, " "); print }')
    for m in $marks; do
        while read -r member _; do
            lacks "$m in $member"
        done < <(grep -vE "feature: [A-Z0-9, ]*\\b$m\\b" <<<"$notes" | sed 's/.*(\(.*\)).*/\1/')
    done
    # What the mark says has to be true of assembly, too: what can be jumped to from elsewhere says so.
    [ -z "$landing" ] || while read -r function; do
        lacks "a mark at the start of $function"
    done < <(awk -v landing="$landing" '
        NR == FNR { if ($2 == "T") global[$3] = 1; next }
        /^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name); next }
        name != "" { if (name in global && $0 !~ landing) print name; name = "" }' \
        <(nm -g --defined-only "$file") <(objdump -d --no-show-raw-insn "$file"))
fi
exit $bad
