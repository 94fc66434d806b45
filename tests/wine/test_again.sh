#!/bin/bash
# Copies of files with symbols or signatures behind their sections, and copies of copies.
. "$(dirname "$0")/support.bash"
begin again
strip=x86_64-w64-mingw32-strip
nm=x86_64-w64-mingw32-nm
shape() { "$ROOT/tests/wine/shape.py" "$@"; }
tag() { echo "context-$1-of-this-test"; }

# loads NAME DIR FILE...: the files are isolated from each other
loads() {
    local name=$1 d=$2 f i=0 commands='' expected='' calls='' results=''
    for f in "${@:3}"; do
        i=$((i + 1))
        commands+="load m$i 1100 $T/$d/$f"$'\n'
        calls+="call m$i PyInit_ext"$'\n'
        expected+="m$i loaded"$'\n'
        results+="m$i PyInit_ext 1003"$'\n'
    done
    try "$name" "$commands${calls}walk $T/$d $T" \
        "$expected${results}modules $((2 * i)) references $((3 * i)) leaks 0 unresolved 0"
}

# ---- symbols behind the sections -----------------------------------------------------------------

if have symbols "$gnu/debug.dll" "$gnu/python311.dll"; then
    shape full "$gnu/debug.dll" full.dll
    for c in a b c; do
        mkdir -p symbols
        "$rewrite" "$gnu/python311.dll" "symbols/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err
    done
    "$rewrite" full.dll symbols/after.pyd "python311.dll=py-$(tag a).dll" >out 2>err
    cp symbols/after.pyd symbols/stripped.pyd
    "$nm" full.dll | sort >expected
    "$nm" symbols/after.pyd | sort >found
    [ -s expected ] && same "symbols are found where they were, with a section behind them" found \
        expected
    # Stripping must not undo the new names.
    "$rewrite" symbols/after.pyd symbols/b.pyd "py-$(tag a).dll=py-$(tag b).dll" >out 2>err &&
        mv symbols/b.pyd symbols/stripped.pyd && "$strip" symbols/stripped.pyd >out 2>err
    say $? "a copy can be stripped"
    "$strip" -o before.dll full.dll
    "$rewrite" before.dll symbols/before.pyd "python311.dll=py-$(tag c).dll" >out 2>err
    say $? "what is stripped can be copied"
    loads "symbols: copied, then stripped, and stripped before" symbols after.pyd stripped.pyd \
        before.pyd
fi

# ---- once more -----------------------------------------------------------------------------------

if have again "$lld/ext.dll" "$lld/python311.dll"; then
    mkdir twice
    for c in a b c; do
        "$rewrite" "$lld/python311.dll" "twice/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err
    done
    shape full "$lld/ext.dll" twice.dll
    "$rewrite" twice.dll twice/first.pyd "python311.dll=py-$(tag a).dll" >out 2>err &&
        shape full twice/first.pyd first.dll &&
        "$rewrite" first.dll twice/second.pyd "py-$(tag a).dll=py-$(tag b).dll" >out 2>err &&
        shape full twice/second.pyd second.dll &&
        "$rewrite" second.dll twice/third.pyd "py-$(tag b).dll=py-$(tag c).dll" >out 2>err
    say $? "a copy can be copied, and that one too"
    loads "copies of copies are isolated from those" twice first.pyd second.pyd third.pyd
    [ "$(shape sections twice/third.pyd)" = $(($(shape sections twice.dll) + 1)) ]
    say $? "names of the same length need no more sections"
    "$rewrite" second.dll longer.pyd "py-$(tag b).dll=py-a-longer-name-$(tag b).dll" >out 2>err &&
        [ "$(shape how second.dll longer.pyd)" = 'longer section .extiso' ]
    say $? "longer ones go where the first went"
fi

# ---- delvewheel ----------------------------------------------------------------------------------

# It adds a section too, and names the DLLs of a wheel after their contents.
if have other-tool twice.dll; then
    mkdir tool
    "$rewrite" "$lld/python311.dll" "tool/libone-01234567.dll" >out 2>err
    "$rewrite" twice.dll once.dll python311.dll=libone-01234567.dll >out 2>err &&
        shape named once.dll tool.dll .extiso dlvwhl && shape full tool.dll tool-full.dll
    cp once.dll tool/ext.pyd
    for c in a b; do
        "$rewrite" "$lld/python311.dll" "tool/py-$(tag $c).dll" "id=py-$(tag $c).dll" >out 2>err
        "$rewrite" tool-full.dll "tool/$c.pyd" "libone-01234567.dll=py-$(tag $c).dll" \
            >out 2>err
    done
    [ "$(shape how tool-full.dll tool/b.pyd)" = section ]
    say $? "another tool's section is not taken for ours"
    loads "what another tool added stays, and isolates no less" tool ext.pyd a.pyd b.pyd
fi

# ---- signatures ----------------------------------------------------------------------------------

sign() { # IN OUT
    rm -f "$2"
    osslsigncode sign -certs cert.pem -key key.pem -n toy -in "$1" -out "$2"
}
verify() { osslsigncode verify -CAfile cert.pem -in "$1" >"$T/out" 2>"$T/err" </dev/null; }

if ! command -v osslsigncode >/dev/null; then
    skip signatures "osslsigncode is not installed"
elif ! openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 3 -subj /CN=toy \
    -addext extendedKeyUsage=codeSigning >out 2>err; then
    skip signatures "openssl makes no certificate: $(tail -n 1 err)"
elif have signatures "$lld/ext.dll" "$gnu/ext.dll"; then
    mkdir signed
    n=0
    for shape in spare section stub wide; do
        case $shape in
        spare) f=$lld/debug.dll ;;
        section) f=twice.dll ;;
        stub) shape full "$mine/sixteen.dll" stub.dll && f=stub.dll ;;
        wide) f=$lld/wide.dll ;;
        esac
        n=$((n + 1))
        sign "$f" signed.dll >out 2>err
        verify signed.dll
        rc=$?
        check "signed, $shape: the original's signature is good" 0 'Signature verification: ok'
        # As after an edit that keeps the signature.
        cp signed.dll naive.dll
        printf x | dd of=naive.dll bs=1 seek=$(($(grep -abo 'python311.dll' naive.dll | head -n 1 |
            cut -d: -f1) + 1)) conv=notrunc 2>/dev/null
        verify naive.dll
        grep -q 'MISMATCH\|mismatch' out err
        say $? "signed, $shape: an edited file has a bad one"
        "$rewrite" "$lld/python311.dll" "signed/py-$(tag $n).dll" "id=py-$(tag $n).dll" >out 2>err &&
            "$rewrite" signed.dll "signed/$shape.pyd" "python311.dll=py-$(tag $n).dll" >out 2>err
        say $? "signed, $shape: is rewritten"
        verify "signed/$shape.pyd"
        grep -q 'No signature found' out err
        say $? "signed, $shape: the copy has none"
        # The signing tool also writes a checksum.
        "$rewrite" "$f" unsigned.pyd "python311.dll=py-$(tag $n).dll" >out 2>err
        cmp -l unsigned.pyd "signed/$shape.pyd" >out 2>err
        [ "$(wc -l <out)" -le 4 ] && [ ! -s err ]
        say $? "signed, $shape: but for a checksum the copy is the unsigned file's"
        sign "signed/$shape.pyd" again.pyd >out 2>err
        verify again.pyd
        rc=$?
        check "signed, $shape: the copy can be signed" 0 'Signature verification: ok'
        mv again.pyd "signed/$shape.pyd"
    done
    loads "signed again, all of them load" signed spare.pyd section.pyd stub.pyd wide.pyd
fi

finish
