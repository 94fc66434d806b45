#!/bin/bash
# Two extensions in one process, with one libpython or with copies, as Windows' loader binds them. 
# Each row has a counterpart without rewriting.
. "$(dirname "$0")/support.bash"
begin sharing

# With a libpython of its own, an extension first sees the state 3 + 1000 + 0, and 1000 as the
# datum.
fresh=1003

# set_up NAME LIBPYTHON EXT: NAME/python311.dll and NAME/x.pyd, y.pyd in it and two contexts of them
set_up() {
    mkdir "$1"
    cp "$2" "$1/python311.dll"
    cp "$3" "$1/x.pyd"
    cp "$3" "$1/y.pyd"
    context "$1-a" "$1/python311.dll" "$1/x.pyd" "$1/y.pyd" && xa=$(copy_of "$1-a" x.pyd) &&
        ya=$(copy_of "$1-a" y.pyd) &&
        context "$1-b" "$1/python311.dll" "$1/x.pyd" && xb=$(copy_of "$1-b" x.pyd)
}

rows() { # NAME TLS: the TLS is 1 if calls in one thread count
    local d=$1 t=$2
    try "$d: two extensions share python311.dll" "load x 1100 $T/$d/x.pyd
load y 1100 $T/$d/y.pyd
call x PyInit_ext
call y PyInit_ext
call x ext_value
call y ext_value
same x y
walk $T/$d $T" "x loaded
y loaded
x PyInit_ext $fresh
y PyInit_ext 1006
x ext_value 1000
y ext_value 1001
x y distinct
$(walked "$d" 3)"
    try "$d: two contexts share nothing" "load o 1100 $T/$d/x.pyd
load a 1100 $xa
load b 1100 $xb
load s 1100 $ya
call o PyInit_ext
call a PyInit_ext
call a PyInit_ext
call b PyInit_ext
call s PyInit_ext
call a ext_value
call b ext_value
call a ext_value
add a ext_state 5
add b ext_state 0
add s ext_state 0
same a b
walk $T/$d-a $T
walk $T/$d-b $T" "o loaded
a loaded
b loaded
s loaded
o PyInit_ext $fresh
a PyInit_ext $fresh
a PyInit_ext $((1006 + 1))
b PyInit_ext $fresh
s PyInit_ext 1009
a ext_value 1000
b ext_value 1000
a ext_value 1001
a ext_state 12
b ext_state 7
s ext_state 7
a b distinct
$(walked "$d-a" 3)
$(walked "$d-b" 2)"
    try "$d: a thread has thread-locals of its own" "load a 1100 $xa
load b 1100 $xb
call a PyInit_ext
thread a PyInit_ext
call a PyInit_ext
thread b PyInit_ext" "a loaded
b loaded
a PyInit_ext $fresh
a PyInit_ext $((1006 + 1 - t))
a PyInit_ext $((1009 + 2 - t))
b PyInit_ext $fresh"
}

walked() { echo "modules $2 references $((($2 - 1) * 3)) leaks 0 unresolved 0"; }

if have mingw "$gnu/python311.dll" "$gnu/ext.dll"; then
    set_up mingw "$gnu/python311.dll" "$gnu/ext.dll" && rows mingw 0
fi
if have msvc "$lld/python311.dll" "$lld/ext.dll"; then
    set_up msvc "$lld/python311.dll" "$lld/ext.dll" && rows msvc 1
fi

# ---- what does not isolate -----------------------------------------------------------------------

# pair NAME FLAGS OTHER EXPECTED: c0/x.pyd and OTHER, loaded with FLAGS
pair() {
    try "$1" "load a $2 $T/c0/x.pyd
load b $2 $T/$3
call a PyInit_ext
call b PyInit_ext
add a ext_state 5
add b ext_state 0
same a b
walk $T/c1 $T" "a loaded
b loaded
a PyInit_ext $fresh
$4"
}

if have folders "$lld/python311.dll" "$lld/ext.dll"; then
    mkdir c0 c1
    for d in c0 c1; do
        cp "$lld/python311.dll" $d
        cp "$lld/ext.dll" $d/x.pyd
    done
    for flags in 1100 8 0; do
        # The folder is not searched, so no library is found at all.
        [ $flags != 0 ] || cp "$lld/python311.dll" "$T"
        pair "folders: libraries of one name are one, with flags 0x$flags" $flags c1/x.pyd \
            "b PyInit_ext 1006
a ext_state 12
b ext_state 7
a b distinct
leak x.pyd PyLong_Type python311.dll
leak x.pyd PyModule_Create2 python311.dll
leak x.pyd Py_BuildValue python311.dll
modules 1 references 3 leaks 3 unresolved 0"
    done
    ln c0/x.pyd c1/hard.pyd
    ln -s ../c0/x.pyd c1/soft.pyd
    for link in hard soft; do
        pair "links: a $link link is the same module" 1100 c1/$link.pyd "b PyInit_ext $((1006 + 1))
a ext_state 12
b ext_state 12
a b same
modules 0 references 0 leaks 0 unresolved 0"
    done
    rm c1/hard.pyd c1/soft.pyd
    # The copies are files of their own even when the sources are one.
    ln c0/x.pyd c0/hard.pyd
    context c2 c0/python311.dll c0/x.pyd c0/hard.pyd
    find c2 c0/x.pyd -type f -links 1 -name '*.pyd' | sort >files
    [ "$(wc -l <files)" = 2 ]
    say $? "links: copies are none"
fi

# ---- how names are found -------------------------------------------------------------------------

if have far "$lld/python311.dll" "$lld/ext.dll"; then
    mkdir far far-b
    cp "$lld/python311.dll" far
    cp "$lld/ext.dll" far/x.pyd
    context far-a far/python311.dll far/x.pyd
    mv "$(copy_of far-a x.pyd)" far-b/x.pyd
    try "far: in a folder of its own a copy finds libpython's when that is loaded" \
        "load a 1100 $T/far-b/x.pyd
load p 1100 $api
load a 1100 $T/far-b/x.pyd
call a PyInit_ext
free p
call a PyInit_ext
free a
load a 1100 $T/far-b/x.pyd" "a error 126
p loaded
a loaded
a PyInit_ext $fresh
p stays
a PyInit_ext 1007
a gone
a error 126"
    context "far ä 語" far/python311.dll far/x.pyd
    try "far: a context's folder can have any name" "load a 1100 $(copy_of "far ä 語" x.pyd)
load b 1100 $T/far/x.pyd
call a PyInit_ext
call b PyInit_ext" "a loaded
b loaded
a PyInit_ext $fresh
b PyInit_ext $fresh"
    # Windows would not load it; wine calls a function that ends the program.
    "$rewrite" far/x.pyd far-b/missing.pyd python311.dll=kernel32.dll >out 2>err
    try "far: the walk sees symbols that are nowhere" "load a 1100 $T/far-b/missing.pyd
walk $T/far-b $T" "a loaded
unresolved missing.pyd PyLong_Type
unresolved missing.pyd PyModule_Create2
unresolved missing.pyd Py_BuildValue
modules 1 references 3 leaks 0 unresolved 3"
    "$rewrite" far/x.pyd refused.pyd bind="$lld/python3.dll" python311.dll=python3.dll >out 2>err
    say $? "bound to a library that exports them"
    "$rewrite" far/x.pyd refused.pyd bind="$lld/ext.dll" python311.dll=ext.dll >out 2>err
    rc=$?
    check "bound to one that does not: refused" 1 'PyLong_Type.*ext.dll|ext.dll.*PyLong_Type'
fi

# ---- a C library, its constructors and thread-locals ---------------------------------------------

if have crt "$gnu/python311.dll" "$mine/crt.dll"; then
    mkdir crt
    cp "$gnu/python311.dll" crt
    cp "$mine/crt.dll" crt/crt.pyd
    context crt-a crt/python311.dll crt/crt.pyd && a=$(copy_of crt-a crt.pyd)
    context crt-b crt/python311.dll crt/crt.pyd && b=$(copy_of crt-b crt.pyd)
    try "crt: constructors, heap and thread-locals are each copy's" "load o 1100 $T/crt/crt.pyd
load a 1100 $a
load b 1100 $b
call a PyInit_crt
call b PyInit_crt
call o PyInit_crt
call a crt_static
call a crt_static
call b crt_static
call a crt_own
call a crt_own
thread a crt_own
call b crt_own
free b
free a
call o crt_own
call o crt_static" "o loaded
a loaded
b loaded
a PyInit_crt 1003
b PyInit_crt 1003
o PyInit_crt 1003
a crt_static 101
a crt_static 102
b crt_static 101
a crt_own 7
a crt_own 8
a crt_own 7
b crt_own 7
b gone
a gone
o crt_own 7
o crt_static 101"
fi

finish
