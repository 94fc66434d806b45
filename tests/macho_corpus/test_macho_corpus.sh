#!/bin/bash
# Real Mach-O files that others built: macOS wheels with the libraries that they contain, and
# Node.js addons.  They are copied into contexts, and once more with everything moved; programs that
# share no code with the library then read the copies.  Sets that cannot be fetched are reported as
# skipped.
. "$(dirname "$0")/../cli/support.bash"

build=$(dirname "$EXTISOLATE")
corpus=${EXTI_MACHO_CORPUS:-$build/macho_corpus}
check=$build/tests/macho_check
rebuild=$build/tests/macho_rebuild
python=/usr/bin/python3
min_files=40

: >out >err
"$ROOT/tests/macho_corpus/fetch.sh" "$corpus"
sets=()
for set in arm64 x86_64 npm; do
    if [ -d "$corpus/files/$set" ]; then
        sets+=("$corpus/files/$set")
    else
        skip "files_$set" "$(cat "$corpus/$set.skip")"
    fi
done
[ ${#sets[@]} != 0 ] || exit 0

# ---- what is there -------------------------------------------------------------------------------

find "${sets[@]}" -type f \( -name '*.so' -o -name '*.dylib' -o -name '*.node' \) | sort >files
arch_of() { llvm-lipo -archs "$1" | tr -d '\n' | sed 's/ *$//; s/ /+/'; }
while read -r f; do arch_of "$f"; echo; done <files | sort | uniq -c |
    awk '{ print $1 " " $2 }' >kinds
[ "$(wc -l <files)" -ge $min_files ] || [ ${#sets[@]} != 3 ]
say $? "files: $(wc -l <files), of which $(paste -sd, kinds | sed 's/,/, /g')" "too few"

# stub NAME SYMBOLS: a library for both machines that exports them
stub() {
    local arch
    cat >system.tbd <<'T'
--- !tapi-tbd
tbd-version:     4
targets:         [ x86_64-macos, arm64-macos ]
install-name:    '/usr/lib/libSystem.B.dylib'
exports:
  - targets:     [ x86_64-macos, arm64-macos ]
    symbols:     [ dyld_stub_binder ]
...
T
    sed 's/.*/.globl &\n&: .quad 0/' "$2" >stub.s
    for arch in x86_64 arm64; do
        clang -target $arch-apple-macos11 -c stub.s -o stub.o &&
            ld64.lld -arch $arch -platform_version macos 11.0 13.3 -dylib -install_name "@rpath/$1" \
                stub.o system.tbd -o "stub.$arch" || return 1
    done
    llvm-lipo -create stub.x86_64 stub.arm64 -output "$1"
}

# The symbols that the files look up in every library or in the main program.
wanted() {
    xargs "$check" --bindings <files | awk '$3 == "flat" || $3 == "main" { print $2 }' | sort -u
}

wanted >wanted
libpython=$corpus/libpython3.13.dylib
if [ ! -f "$libpython" ]; then
    skip libpython "a stub stands for it, as $(cat "$corpus/libpython.skip")"
    grep -E '^__?Py' wanted >symbols
    stub libpython3.13.dylib symbols >out 2>err
    say $? stub_libpython
    libpython=$T/libpython3.13.dylib
fi
grep -E '^_(napi|node|uv)_' wanted >symbols
stub libnode.dylib symbols >out 2>err
say $? stub_libnode

# ---- contexts ------------------------------------------------------------------------------------

# The names by which a copy may need its API library: its path, or its short id where the header has
# no room for the path.
api_names() {
    local api
    api=$(jq -r .api_library.copy "$1")
    llvm-objdump --macho --dylib-id "$api" | tail -n 1 >id
    echo "@loader_path/$(basename "$api")|$(cat id)"
}

: >pairs.python
: >pairs.node
: >apis
for folder in $(printf '%s/*/ ' "${sets[@]}"); do
    name=$(basename "$(dirname "$folder")")-$(basename "$folder")
    api=$libpython kind=python
    [[ $name != npm-* ]] || { api=$T/libnode.dylib kind=node; }
    mapfile -t files < <(grep -F "$folder" files)
    [ ${#files[@]} != 0 ] || continue
    x copy --json --libpython "$api" "${files[@]}" "$T/$name" >"$name.json" 2>err </dev/null
    copied=$?
    run verify "$T/$name"
    [ $copied = 0 ] && [ $rc = 0 ]
    say $? "context_$name: ${#files[@]} files" "copy: $copied, verify: $rc"
    jq -r --arg a "$(api_names "$name.json")" '.copies[] | [.source, .copy, $a] | @tsv' \
        "$name.json" >>pairs.$kind
    jq -r --arg f "$api" '[$f, .api_library.copy, ""] | @tsv' "$name.json" >>apis
done
sort -u -t "$(printf '\t')" -k 1,1 -o apis apis
cat pairs.python pairs.node apis >pairs
cut -f2 pairs >copies

# ---- what wheels bring along ---------------------------------------------------------------------

# Where each reference of the files in the context $1 leads: inside, to the system, to the originals
# of the base set, or to the libraries of another wheel, which are not here.
references() {
    local f api own
    api=$(jq -r .api.copy "$1/manifest.json")
    for f in "$1"/*; do
        [ "${f##*/}" != manifest.json ] || continue
        own=$(llvm-objdump --macho --dylib-id "$f" | sed -n 2p)
        llvm-objdump --macho --dylibs-used "$f" | sed -n 's/^\t\([^ ]*\) (compat.*/\1/p' |
            grep -vFx "${own:-none}"
    done >"$1.names"
    llvm-objdump --macho --dylib-id "$1/$api" | tail -n 1 >"$1.id"
    while read -r name; do
        case $name in
        /usr/lib/* | /System/*) echo system ;;
        @loader_path/*) [ -f "$1/${name#@loader_path/}" ] && echo inside || echo "nowhere: $name" ;;
        */libgcc_s.1.1.dylib | */libc++.1.0.dylib)
            [ -f "$name" ] && echo shared || echo "nowhere: $name" ;;
        @rpath/libtorch*.dylib | @rpath/libc10.dylib) echo elsewhere ;;
        *) grep -qFx "$name" "$1.id" && echo inside || echo "outside: $name" ;;
        esac
    done <"$1.names"
}

: >led
mkdir vendored
for folder in $(printf '%s/*/ ' "${sets[@]}"); do
    [ -n "$(find "$folder" -name .dylibs)" ] || continue
    context=$T/vendored/$(basename "$(dirname "$folder")")-$(basename "$folder")
    mapfile -t modules < <(find "$folder" -name '*.so')
    x copy --libpython "$libpython" "${modules[@]}" "$context" >out 2>err </dev/null
    rc=$?
    jq -r .api.copy "$context/manifest.json" >api
    find "$context" -name '*.dylib' ! -name "$(cat api)" >copies.vendored
    references "$context" >to
    cat to >>led
    name="vendored_$(basename "$context")"
    [ $rc = 0 ] && grep -q inside to && ! grep -q nowhere to && ! grep -q outside to
    say $? "$name: $(wc -l <copies.vendored) libraries with ${#modules[@]} modules"
    grep -E 'nowhere|outside' to
done
[ ! -s led ] || [ "$(grep -c inside led)" -gt "$(grep -c -e shared -e elsewhere led)" ]
say $? "references: $(sort led | uniq -c | awk '{ printf "%s%s %s", sep, $1, $2; sep = ", " }')"

# ---- the same file, moved ------------------------------------------------------------------------

mkdir moved
for kind in python node; do
    api=$libpython
    [ $kind = python ] || api=$T/libnode.dylib
    awk -F'\t' -v d="$T/moved/$kind" '{ print $1 "\t" d NR }' pairs.$kind |
        "$rebuild" --move "$api" >moved.$kind 2>err
    rc=$?
    grep -v "$(printf '\t')" moved.$kind >out
    [ $rc = 0 ]
    say $? "move_$kind: $(grep -c "$(printf '\t')" moved.$kind) files"
done
cat moved.python moved.node >moved.all
cut -f2 moved.all >moved.copies

# ---- what others say -----------------------------------------------------------------------------

for what in copies moved; do
    pairs=pairs files=copies
    [ $what = copies ] || { pairs=moved.all files=moved.copies; }
    "$rebuild" --judge <$pairs >out 2>err
    say $? "judge_$what: $(wc -l <$pairs) files"
    xargs "$check" --sound <$files >out 2>err
    say $? "dyld_and_kernel_rules_$what"
done

# compare NAME LIBRARY MOVED PAIRS: in two processes
compare() {
    local part bad=0 jobs=()
    rm -f part.*
    split -n r/2 "$4" part.
    for part in part.aa part.ab; do
        $python "$ROOT/tests/macho_corpus/compare.py" "$check" "$2" "$3" <$part >$part.out 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[0]}" || bad=1
    wait "${jobs[1]}" || bad=1
    cat part.*.out >out
    sed 's/^/# /' out
    say $bad "$1"
}

cat apis >>pairs.python
compare fixups_and_exports_python "$libpython" any pairs.python
compare fixups_and_exports_node "$T/libnode.dylib" any pairs.node
compare fixups_and_exports_moved_python "$libpython" moved moved.python
compare fixups_and_exports_moved_node "$T/libnode.dylib" moved moved.node

# Proves that the comparison can fail.
awk -F'\t' 'NR == 1 { print $1 "\t" $1 "\t" $3 }' pairs.python >unchanged
$python "$ROOT/tests/macho_corpus/compare.py" "$check" "$libpython" any <unchanged >out 2>err
[ $? = 1 ] && grep -q targets out
say $? a_file_that_was_not_rewritten_compares_different

{ cat files; echo "$libpython"; } | xargs "$rebuild" --again >again 2>err
rc=$?
cut -f1,3 again | sort | uniq -c | sort -rn | sed 's/^/# /' | tee out
[ $rc = 0 ] && [ -s again ] && ! grep -q DIFFERENT again
say $? "no_change_is_none: $(grep -c identical again) of $(
    wc -l <again) slices, others as explained"

cat copies moved.copies | xargs "$rebuild" --again >again 2>err
rc=$?
grep -v identical again >out
[ $rc = 0 ] && [ -s again ] && [ ! -s out ]
say $? "no_change_of_a_copy_is_none: $(wc -l <again) slices"

if "$rebuild" --lief <pairs >out 2>err; then
    say 0 "lief: $(tail -n 1 out)"
elif [ $? = 3 ]; then
    skip lief "it is not installed (package liblief-dev)"
else
    say 1 lief
fi

# ---- signatures, and what a changed byte does ----------------------------------------------------

# The digests of a signed copy must show a changed byte of its code.
signed=$(cut -f2 pairs.python | grep 'arm64-numpy/_multiarray_umath' | head -n 1)
if [ -n "$signed" ]; then
    size=$(stat -c %s "$signed") bad=0
    for at in 40000 $((size / 3)) $((size / 2)); do
        cp "$signed" changed
        byte=$(od -An -tu1 -j "$at" -N 1 changed)
        printf "\\x$(printf %x $((byte ^ 1)))" |
            dd of=changed bs=1 seek="$at" conv=notrunc status=none
        ! "$check" --sound changed >out 2>err && grep -q digest err || bad=1
    done
    say $bad a_changed_byte_breaks_the_signature
    grep -F "	$signed	" pairs.python | awk -F'\t' '{ print $1 "\tchanged\t" $3 }' >pair
    $python "$ROOT/tests/macho_corpus/compare.py" "$check" "$libpython" any <pair >out 2>err
    [ $? = 1 ] && grep -q ': contents' out
    say $? a_changed_byte_compares_different
fi

# rcodesign complains that an ad hoc signature has no certificate; it may complain of nothing else.
if command -v rcodesign >/dev/null; then
    while read -r f; do
        rcodesign verify "$f" 2>>err | sed "s|^|$f: |"
    done < <(cat copies moved.copies) |
        grep -vE 'no cryptographic signature present|Mach-O signature data not found' >out
    [ ! -s out ]
    say $? "rcodesign: $(cat copies moved.copies | wc -l) files"
else
    skip rcodesign "it is not on PATH (cargo package apple-codesign)"
fi

# ---- a whole wheel -------------------------------------------------------------------------------

for arch in arm64 x86_64; do
    json=$arch-numpy.json
    [ -s "$json" ] || continue
    jq -r '.copies[].copy' "$json" >copies.numpy
    jq -r '.copies[].source' "$json" >sources.numpy
    names=$(api_names "$json")
    xargs "$check" --bound "$(jq -r .api_library.copy "$json")" "${names%|*}" \
        <copies.numpy >out 2>err
    rc=$?
    [ $rc = 0 ] && [ "$(cat out)" -gt 1000 ] &&
        [ "$(jq '[.copies[].flat[]] | length' "$json")" = 0 ]
    say $? "numpy_binds_to_its_context_only_$arch: $(cat out) in $(wc -l <copies.numpy) files"
    ! xargs "$check" --bound "$libpython" "${names%|*}" <sources.numpy >out 2>err &&
        grep -q 'binds to flat' err
    say $? "numpy_itself_does_not_$arch"
done
finish
