#!/bin/bash
# Wheels with the DLLs that delvewheel put beside them, laid out as pip does.  LLVM reads the
# imports of their copies: each leads into the context or to a library that is shared by name.
# Wheels that cannot be fetched are reported as skipped.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/pe_corpus/stub.bash"

build=$(dirname "$EXTISOLATE")
corpus=${EXTI_PE_CORPUS:-$build/pe_corpus}
shared='^(msvcp|vcruntime|msvcr[0-9]|concrt|vcomp|ucrtbase|mfc[0-9]).*\.dll$'

: >out >err
"$ROOT/tests/pe_corpus/fetch.sh" "$corpus"

# imports FILE...: the names of imported libraries, each once, in lower case
imports() {
    llvm-readobj --coff-imports "$@" 2>/dev/null | sed -n 's/^  Name: //p' | tr A-Z a-z | sort -u
}
# files DIR...: the names of DLLs, likewise
files() { find "$@" -type f -iname '*.dll' -printf '%f\n' | tr A-Z a-z | sort -u; }

closure() { # MACHINE
    local machine=$1 site=$T/$1/Lib/site-packages home=$T/$1 p sources
    mkdir -p "$site"
    for p in "$corpus/files/$machine"/*; do cp -a "$p"/. "$site"; done
    if [ -d "$corpus/files/cpython/$machine" ]; then
        cp -a "$corpus/files/cpython/$machine"/. "$home"
        chmod -R u+w "$home"
    fi
    mapfile -t sources < <(find "$home" -name '*.pyd' | sort)
    [ -f "$home/python311.dll" ] || stub_libpython "$home" "${sources[@]}" >out 2>err
    run copy --libpython "$home/python311.dll" "${sources[@]}" "ctx.$machine"
    grep -vE '^$|CHPEMetadataPointer is set' err >refused
    say $([ ! -s refused ]; echo $?) "copied_$machine: ${#sources[@]} modules" \
        "$(head -n 3 refused)"
    run verify "ctx.$machine"
    check "sound_$machine" 0 'all sound'

    # Only the originals import from DLLs of the tree that are not shared.
    files "$home" | grep -vE "$shared|^python3" >vendored
    imports "${sources[@]}" | comm -12 - vendored >before
    imports "ctx.$machine"/* >now
    comm -12 now vendored >left
    [ -s before ] && [ ! -s left ]
    say $? "imports_lead_to_copies_$machine: $(wc -l <before) DLLs of theirs, $(
        wc -l <now) names in $(
        find "ctx.$machine" -iname '*.dll' -o -name '*.pyd' | wc -l) copies" "$(cat left)"
    # Any other name is that of a copy, of the base set's shared libraries, or of Windows.
    find "ctx.$machine" -type f -printf '%f\n' | tr A-Z a-z | sort >own
    jq -r '.name' "ctx.$machine/manifest.json" >name
    comm -23 now own | grep -F "$(cat name)" >dangling
    say $([ ! -s dangling ]; echo $?) "no_copy_is_missing_$machine" "$(cat dangling)"
    jq -r '.copies[].needs[]? | select(.isolated | not) | select(.file) | .name' \
        "ctx.$machine/manifest.json" |
        tr A-Z a-z | sort -u | grep -vE "$shared" >odd
    say $([ ! -s odd ]; echo $?) "only_the_runtime_is_shared_$machine" "$(cat odd)"
    # Without dependencies, the copies import what the originals do.
    run copy --closure=none --libpython "$home/python311.dll" "${sources[@]}" "none.$machine"
    imports "none.$machine"/* | comm -12 - vendored | cmp -s - before
    say $? "without_a_closure_they_are_left_$machine"
    rm -rf "$home" "ctx.$machine" "none.$machine"
}

for machine in x64 x86 arm64; do
    if [ ! -d "$corpus/files/$machine" ]; then
        skip "closure_$machine" "$(cat "$corpus/$machine.skip")"
    elif [ $machine != arm64 ] && [ ! -d "$corpus/files/cpython/$machine" ]; then
        skip "closure_$machine" "there is no CPython for it: $(cat "$corpus/cpython.skip")"
    else
        closure $machine
    fi
done
finish
