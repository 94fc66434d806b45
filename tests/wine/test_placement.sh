#!/bin/bash
# Every way to place new names in a file, each forced by the file's shape.  Two copies are loaded
# into one process and must be isolated from each other.
. "$(dirname "$0")/support.bash"
begin placement

shape() { [ -f "$2" ] && "$ROOT/tests/wine/shape.py" "$@"; }

# For contexts whose names are longer than those in the files.
tag() { echo "context-$1-of-the-placement-test"; }

places=0
# twice NAME LIBPYTHON EXT HOW: EXT becomes $d/ext-a.pyd and $d/ext-b.pyd by the means HOW
twice() {
    local name=$1 libpython=$2 ext=$3 want=$4 c
    d=place-$((++places))
    have "$name" "$libpython" "$ext" || return 0
    mkdir "$d"
    for c in a b; do
        "$rewrite" "$libpython" "$d/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err &&
            "$rewrite" "$ext" "$d/ext-$c.pyd" "id=ext-$(tag $c).pyd" \
                "python311.dll=py-$(tag $c).dll" >out 2>err ||
            { say 1 "$name: is rewritten"; return; }
        shape how "$ext" "$d/ext-$c.pyd" >how
        [ "$(cat how)" = "$want" ] || { say 1 "$name: goes to: $want" "$(cat how)"; return; }
    done
    isolated "$name" "$T/$d/ext-a.pyd" "$T/$d/ext-b.pyd"
}

# isolated NAME A B [MODULES]: two copies of ext.c, each with its libpython beside it
isolated() {
    try "$1" "load a 1100 $2
load b 1100 $3
call a PyInit_ext
call b PyInit_ext
call a ext_value
call b ext_value
add a ext_state 1
add b ext_state 0
walk $(dirname "$2") $T" "a loaded
b loaded
a PyInit_ext 1003
b PyInit_ext 1003
a ext_value 1000
b ext_value 1000
a ext_state 8
b ext_state 7
modules ${4:-4} references 6 leaks 0 unresolved 0"
}

# ---- placement by the file's shape ---------------------------------------------------------------

twice "spare bytes, of lld" "$lld/python311.dll" "$lld/debug.dll" 'spare bytes'
debug() { llvm-readobj --coff-debug-directory "$1" | grep -v '^File:'; }
if command -v llvm-readobj >/dev/null && [ -f "$d/ext-a.pyd" ]; then
    debug "$lld/debug.dll" >expected && debug "$d/ext-a.pyd" >found && grep -q PDBFileName found
    same "debug information is found as before" found expected
fi
twice "spare bytes, of GNU ld" "$gnu/python311.dll" "$gnu/ext.dll" 'spare bytes'
shape full "$lld/ext.dll" full.dll
twice "section, of lld" "$lld/python311.dll" full.dll section
shape full "$gnu/ext.dll" gnu-full.dll
twice "section behind COFF symbols, of GNU ld" "$gnu/python311.dll" gnu-full.dll section
shape full "$gnu/stripped.dll" stripped-full.dll
twice "section of a stripped file" "$gnu/python311.dll" stripped-full.dll section
if shape full "$mine/sixteen.dll" stub.dll; then
    [ "$(shape room stub.dll)" = 0 ]
    say $? "headers that are full to the last byte"
fi
twice "section over the MS-DOS program" "$lld/python311.dll" stub.dll \
    'section over the MS-DOS program'
# A file whose MS-DOS stub another tool has already removed.
shape named "$d/ext-a.pyd" named.dll .extiso .other && shape full named.dll grown.dll
grow() { # twice, but from what imports a copy already
    local c
    mkdir grow
    for c in a b; do
        "$rewrite" "$lld/python311.dll" "grow/py-again-$(tag $c).dll" "id=py-again-$(tag $c).dll" \
            >out 2>err &&
            "$rewrite" grown.dll "grow/ext-$c.pyd" "py-$(tag a).dll=py-again-$(tag $c).dll" \
                >out 2>err && shape how grown.dll "grow/ext-$c.pyd" >how || return
    done
    [ "$(cat how)" = 'grown headers' ]
}
if [ -f grown.dll ]; then
    grow
    say $? "grown headers: there is no other way"
    isolated "grown headers" "$T/grow/ext-a.pyd" "$T/grow/ext-b.pyd"
fi
shape full "$lld/ext.dll" extend.full && shape crowded extend.full extend.dll
twice "longer last section, for full headers of lld" "$lld/python311.dll" extend.dll \
    'longer section .reloc'
shape full "$gnu/stripped.dll" extend.full && shape crowded extend.full gnu-extend.dll
twice "longer last section, for full headers of GNU ld" "$gnu/python311.dll" gnu-extend.dll \
    'longer section .idata'

# Headers that reach to the first section in memory cannot grow.
twice "file alignment 0x1000, spare bytes" "$lld/python311.dll" "$lld/wide.dll" 'spare bytes'
shape full "$lld/wide.dll" wide-full.dll
twice "file alignment 0x1000, section" "$lld/python311.dll" wide-full.dll section
shape crowded wide-full.dll wide-crowded.dll
twice "file alignment 0x1000, longer last section" "$lld/python311.dll" wide-crowded.dll \
    'longer section .reloc'

# Forwarders move with the directory that lists them.
forward() { # NAME PYTHON3 HOW
    local c
    d=place-$((++places))
    have "$1" "$2" "$lld/abi3-python3.dll" || return 0
    mkdir "$d"
    for c in a b; do
        "$rewrite" "$lld/python311.dll" "$d/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err &&
            "$rewrite" "$2" "$d/stable-$(tag $c).dll" "python311.dll=py-$(tag $c).dll" >out 2>err &&
            "$rewrite" "$lld/abi3-python3.dll" "$d/ext-$c.pyd" "python3.dll=stable-$(tag $c).dll" \
                >out 2>err || { say 1 "$1: is rewritten"; return; }
    done
    shape how "$2" "$d/stable-$(tag b).dll" >how
    [ "$(cat how)" = "$3" ] || { say 1 "$1: go to: $3" "$(cat how)"; return; }
    isolated "$1" "$T/$d/ext-a.pyd" "$T/$d/ext-b.pyd" 6
}
shape full "$lld/python3.dll" python3-full.dll
forward "forwarders in a section" python3-full.dll section
forward "forwarders in spare bytes" "$gnu/python3.dll" 'spare bytes'

# ---- the largest number of sections --------------------------------------------------------------

if have sections "$mine/most.dll" "$mine/toomany.dll"; then
    mkdir many
    cp "$lld/python311.dll" many
    cp "$mine/most.dll" "$mine/toomany.dll" many
    try "96 sections load and 97 do not" "load most 1100 $T/many/most.dll
load toomany 1100 $T/many/toomany.dll" "most loaded
toomany error 193"
    shape full many/most.dll most.dll
    twice "96 sections: longer last section" "$lld/python311.dll" most.dll 'longer section .reloc'
    "$rewrite" many/toomany.dll toomany.dll python311.dll=p.dll >out 2>err
    rc=$?
    check "97 sections are refused" 1 '97 sections'
    [ ! -e toomany.dll ]
    say $? "97 sections: nothing is written"
fi

# ---- in place, by the program --------------------------------------------------------------------

# Every file takes names of the same length as the old ones.
for f in "$lld"/{ext,def,debug,release,wide,large,low,merged}.dll "$gnu"/{ext,stripped,def,debug}.dll \
    "$mine/sixteen.dll" "$mine/most.dll" full.dll extend.dll; do
    d=$(basename "$(dirname "$f")")-$(basename "$f" .dll)
    have "in place, $d" "$f" || continue
    mkdir "$d"
    case $f in
    *gnu*) cp "$gnu/python311.dll" "$d" ;;
    *) cp "$lld/python311.dll" "$d" ;;
    esac
    cp "$f" "$d/ext.pyd"
    context "$d-a" "$d/python311.dll" "$d/ext.pyd" && a=$(copy_of "$d-a" ext.pyd) &&
        context "$d-b" "$d/python311.dll" "$d/ext.pyd" && b=$(copy_of "$d-b" ext.pyd) &&
        [ "$(shape how "$f" "$a")" = 'in place' ] && [ "$(wc -c <"$f")" = "$(wc -c <"$a")" ] ||
        { say 1 "in place, $d"; continue; }
    try "in place, $d" "load a 1100 $a
load b 1100 $b
call a PyInit_ext
call b PyInit_ext
add b ext_state 1
add a ext_state 0
walk $T/$d-a $T" "a loaded
b loaded
a PyInit_ext 1003
b PyInit_ext 1003
b ext_state 8
a ext_state 7
modules 2 references 3 leaks 0 unresolved 0"
done

# No section can be added where RVAs equal file offsets.
if have low "$lld/low.dll" "$lld/fixed.dll" "$lld/python311.dll"; then
    "$rewrite" "$lld/low.dll" low.dll "python311.dll=py-$(tag a).dll" >out 2>err
    rc=$?
    check "/align:512: longer names are refused" 1 'less than a page'
    mkdir fixed
    cp "$lld/fixed.dll" fixed/ext.pyd
    cp "$lld/python311.dll" fixed
    mkdir fixed-a
    run copy --libpython fixed/python311.dll fixed/ext.pyd fixed-a
    check "/fixed: refused, for want of relocations" 1 'no relocations'
    cp "$lld/fixed.dll" fixed/twin.pyd
    try "/fixed: a second one does not load" "load a 1100 $T/fixed/ext.pyd
load b 1100 $T/fixed/twin.pyd" "a loaded
b error 487"
fi

finish
