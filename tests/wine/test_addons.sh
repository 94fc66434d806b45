#!/bin/bash
# Files fetched by tests/pe_corpus: Node.js addons under other names, and files that delvewheel has
# rewritten.
. "$(dirname "$0")/support.bash"
begin addons
corpus=$build/pe_corpus
delvewheel=$corpus/delvewheel/bin/delvewheel
tag() { echo "context-$1-of-this-test"; }

# fetched NAME SET FILE...: whether the corpus has them; if not, NAME is skipped
fetched() {
    local f
    for f in "${@:3}"; do
        [ -e "$f" ] && continue
        skip "$1" "$(cat "$corpus/$2.skip" 2>/dev/null || echo "tests/pe_corpus, which fetches them, has not run")"
        return 1
    done
}

# addon NAME FILE: three copies are three modules with ids at different addresses
addon() {
    local c
    fetched "$1" npm "$2" && have "$1" "$mine/bcryptprimitives.dll" || return
    mkdir "$1"
    # wine 8 lacks it.
    cp "$mine/bcryptprimitives.dll" "$1"
    cp "$2" "$1/a.node"
    "$rewrite" "$2" "$1/b.node" id=b.node >out 2>err &&
        "$rewrite" "$2" "$1/c.node" "id=$(tag c)-with-a-name-that-is-longer-than-its-own.node" >out 2>err
    say $? "$1 is rewritten"
    for c in b c; do
        [ "$(llvm-readobj --coff-exports "$1/$c.node" | grep -c '^ *Name: [^ ]')" = \
            "$(llvm-readobj --coff-exports "$2" | grep -c '^ *Name: [^ ]')" ]
        say $? "$1 $c exports what it did"
    done
    try "$1: three of it in a process" "$(for c in a b c; do
        echo "load $c 1100 $T/$1/$c.node"
    done)
same a b
same b c
same a c" 'a loaded
b loaded
c loaded
a b distinct
b c distinct
a c distinct'
}

addon rollup "$(echo "$corpus"/files/npm/rollup-rollup-win32-x64-msvc-*/package/*.node)"
addon watcher "$(echo "$corpus"/files/npm/parcel-watcher-win32-x64-*/package/*.node)"

# ---- after delvewheel ----------------------------------------------------------------------------

if have delvewheel "$lld/ext.dll" "$lld/python311.dll" && fetched delvewheel delvewheel "$delvewheel"; then
    mkdir delved
    for c in 0 a b; do
        "$rewrite" "$lld/python311.dll" "delved/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err
    done
    # Without room in the sections delvewheel adds one, and so do we.
    "$ROOT/tests/wine/shape.py" full "$lld/ext.dll" delved/ext.pyd
    "$delvewheel" replace-needed -change python311.dll "py-$(tag 0).dll" delved/ext.pyd >out 2>err
    say $? "delvewheel rewrites it"
    "$ROOT/tests/wine/shape.py" full delved/ext.pyd full.pyd
    "$rewrite" full.pyd delved/a.pyd "py-$(tag 0).dll=py-$(tag a).dll" >out 2>err &&
        "$ROOT/tests/wine/shape.py" full delved/a.pyd again.pyd &&
        "$rewrite" again.pyd delved/b.pyd "py-$(tag a).dll=py-$(tag b).dll" >out 2>err
    say $? "what delvewheel has rewritten can be, twice more"
    try "after delvewheel: each is isolated from the others" "$(for c in ext a b; do
        echo "load $c 1100 $T/delved/$c.pyd"
    done)
$(for c in ext a b; do echo "call $c PyInit_ext"; done)
walk $T/delved $T" 'ext loaded
a loaded
b loaded
ext PyInit_ext 1003
a PyInit_ext 1003
b PyInit_ext 1003
modules 6 references 9 leaks 0 unresolved 0'
fi
