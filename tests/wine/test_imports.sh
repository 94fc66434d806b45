#!/bin/bash
# Other kinds of imports: delay imports, imports through python3.dll, and delay imports that no
# directory lists.
. "$(dirname "$0")/support.bash"
begin imports

dll() { # NAME FILE...: NAME/python311.dll and the files as .pyd
    local d=$1 f
    mkdir "$d"
    cp "$lld/python311.dll" "$d"
    for f in "${@:2}"; do
        cp "$f" "$d/$(basename "${f%.dll}").pyd"
    done
}

# ---- delay imports -------------------------------------------------------------------------------

if have late "$mine/delayed.dll" "$lld/python311.dll"; then
    dll late "$mine/delayed.dll"
    cp late/delayed.pyd late/again.pyd
    for c in a b; do
        context late-$c late/python311.dll late/delayed.pyd
        declare api_$c="$api" $c="$(copy_of late-$c delayed.pyd)"
    done
    # shellcheck disable=SC2154
    try "late: the originals share python311.dll" "load p 1100 $T/late/python311.dll
load d 1100 $T/late/delayed.pyd
load e 1100 $T/late/again.pyd
call d PyInit_ext
call e PyInit_ext
walk $T/late $T" "p loaded
d loaded
e loaded
d PyInit_ext 3
e PyInit_ext 6
modules 3 references 6 leaks 0 unresolved 0"
    try "late: copies find their own libpython when that is loaded, as the walk sees once they called" \
        "load p 1100 $T/late/python311.dll
load d 1100 $T/late/delayed.pyd
load q 1100 $api_a
load r 1100 $api_b
load a 1100 $a
load b 1100 $b
walk $T/late-a $T
call d PyInit_ext
call a PyInit_ext
call b PyInit_ext
call b ext_value
call a ext_value
walk $T/late-a $T
walk $T/late-b $T" "p loaded
d loaded
q loaded
r loaded
a loaded
b loaded
modules 2 references 2 leaks 0 unresolved 0
d PyInit_ext 3
a PyInit_ext 3
b PyInit_ext 3
b ext_value 1000
a ext_value 1000
modules 2 references 4 leaks 0 unresolved 0
modules 2 references 4 leaks 0 unresolved 0"
    # The loader looks for it by its bare name alone.
    host <<<"load a 1100 $a
call a PyInit_ext"
    [ "$(cat out)" = "a loaded" ]
    say $? "late: without libpython's copy being loaded, there is none"
fi

# Only the code refers to the descriptors that dlltool makes.
if have hidden "$mine/hidden.dll" "$gnu/python311.dll"; then
    mkdir hidden
    cp "$gnu/python311.dll" hidden
    cp "$mine/hidden.dll" hidden/hidden.pyd
    cp hidden/hidden.pyd hidden/other.pyd
    try "hidden: the original imports late" "load p 1100 $T/hidden/python311.dll
load d 1100 $T/hidden/hidden.pyd
load e 1100 $T/hidden/other.pyd
call d PyInit_ext
call e PyInit_ext" "p loaded
d loaded
e loaded
d PyInit_ext 3
e PyInit_ext 6"
    mkdir hidden-a
    run copy --libpython hidden/python311.dll hidden/hidden.pyd hidden-a
    check "hidden: a copy is refused, since it would use the original" 1 "delay import of 'python311.dll'" \
        'GNU dlltool'
    run verify hidden-a
    check "hidden: and none is there" 0 '1 cop(y|ies)'
fi

# ---- python3.dll ---------------------------------------------------------------------------------

if have abi3 "$lld/abi3-python3.dll" "$lld/python3.dll"; then
    dll abi3 "$lld/abi3-python3.dll"
    cp "$lld/python3.dll" abi3
    cp abi3/abi3-python3.pyd abi3/twin.pyd
    for c in a b; do
        context abi3-$c abi3/python311.dll abi3/abi3-python3.pyd
        declare api_$c="$api" $c="$(copy_of abi3-$c abi3-python3.pyd)"
    done
    try "abi3: the originals share what python3.dll leads to" "load d 1100 $T/abi3/abi3-python3.pyd
load e 1100 $T/abi3/twin.pyd
call d PyInit_ext
call e PyInit_ext
call d ext_value
call e ext_value" "d loaded
e loaded
d PyInit_ext 1003
e PyInit_ext 1006
d ext_value 1000
e ext_value 1001"
    try "abi3: copies use their own libpython, without python3.dll" "load d 1100 $T/abi3/abi3-python3.pyd
load a 1100 $a
load b 1100 $b
call d PyInit_ext
call a PyInit_ext
call b PyInit_ext
call d ext_value
call a ext_value
call b ext_value
walk $T/abi3-a $T
walk $T/abi3-b $T" "d loaded
a loaded
b loaded
d PyInit_ext 1003
a PyInit_ext 1003
b PyInit_ext 1003
d ext_value 1000
a ext_value 1000
b ext_value 1000
modules 2 references 3 leaks 0 unresolved 0
modules 2 references 3 leaks 0 unresolved 0"
    # A copy of python3.dll under another name still forwards to the original.
    mkdir leak
    cp "$lld/python3.dll" leak/p3leak.dll
    cp "$lld/python311.dll" leak/
    "$rewrite" abi3/abi3-python3.pyd leak/abi3.pyd python3.dll=p3leak.dll >out 2>err
    say $? "abi3: an import of python3.dll is renamed"
    try "abi3: python3.dll copied without its forwarders leaks" "load d 1100 $T/abi3/abi3-python3.pyd
load a 1100 $T/leak/abi3.pyd
call d PyInit_ext
call a PyInit_ext
walk $T/leak $T" "d loaded
a loaded
d PyInit_ext 1003
a PyInit_ext 1006
leak abi3.pyd PyLong_Type python311.dll
leak abi3.pyd PyModule_Create2 python311.dll
leak abi3.pyd Py_BuildValue python311.dll
modules 2 references 3 leaks 3 unresolved 0"
    cp "$api_a" leak/
    "$rewrite" "$lld/python3.dll" leak/p3leak.dll "python311.dll=$(basename "$api_a")" id=p3leak.dll \
        >out 2>err
    say $? "abi3: python3.dll's forwarders are renamed"
    try "abi3: with its forwarders rewritten it leads to the copy" "load d 1100 $T/abi3/abi3-python3.pyd
load a 1100 $T/leak/abi3.pyd
call d PyInit_ext
call a PyInit_ext
call a ext_value
call d ext_value
walk $T/leak $T" "d loaded
a loaded
d PyInit_ext 1003
a PyInit_ext 1003
a ext_value 1000
d ext_value 1000
modules 3 references 3 leaks 0 unresolved 0"
fi

# By ordinal: the ordinals are python3.dll's own, so each context has a copy of it.
if have numbers "$lld/abi3-numbers.dll" "$lld/python3.dll" "$mine/late3.dll"; then
    dll numbers "$lld/abi3-numbers.dll" "$mine/late3.dll"
    cp "$lld/python3.dll" numbers
    cp numbers/abi3-numbers.pyd numbers/twin.pyd
    for c in a b; do
        context numbers-$c numbers/python311.dll numbers/abi3-numbers.pyd numbers/late3.pyd
        declare api_$c="$api" $c="$(copy_of numbers-$c abi3-numbers.pyd)" \
            late_$c="$(copy_of numbers-$c late3.pyd)" \
            stable_$c="$(find "$T/numbers-$c" -name '*.dll' ! -path "$api")"
    done
    # shellcheck disable=SC2154
    try "numbers: the originals share what python3.dll leads to" "load d 1100 $T/numbers/abi3-numbers.pyd
load e 1100 $T/numbers/twin.pyd
load l 1100 $T/numbers/late3.pyd
call d PyInit_ext
call e PyInit_ext
call l PyInit_ext" "d loaded
e loaded
l loaded
d PyInit_ext 1003
e PyInit_ext 1006
l PyInit_ext 9"
    # shellcheck disable=SC2154
    try "numbers: copies use their own python3.dll, which leads to their own libpython" \
        "load d 1100 $T/numbers/abi3-numbers.pyd
load a 1100 $a
load b 1100 $b
call d PyInit_ext
call a PyInit_ext
call b PyInit_ext
call b ext_value
call a ext_value
call d ext_value
walk $T/numbers-a $T
walk $T/numbers-b $T" "d loaded
a loaded
b loaded
d PyInit_ext 1003
a PyInit_ext 1003
b PyInit_ext 1003
b ext_value 1000
a ext_value 1000
d ext_value 1000
modules 3 references 3 leaks 0 unresolved 0
modules 3 references 3 leaks 0 unresolved 0"
    # shellcheck disable=SC2154
    try "numbers: late imports find it when it is loaded" "load d 1100 $T/numbers/late3.pyd
load e 1100 $T/numbers/abi3-numbers.pyd
load p 1100 $api_a
load q 1100 $api_b
load s 1100 $stable_a
load t 1100 $stable_b
load a 1100 $late_a
load b 1100 $late_b
call d PyInit_ext
call a PyInit_ext
call b PyInit_ext
call a ext_value
call b ext_value
walk $T/numbers-a $T
walk $T/numbers-b $T" "d loaded
e loaded
p loaded
q loaded
s loaded
t loaded
a loaded
b loaded
d PyInit_ext 3
a PyInit_ext 3
b PyInit_ext 3
a ext_value 1000
b ext_value 1000
modules 3 references 4 leaks 0 unresolved 0
modules 3 references 4 leaks 0 unresolved 0"
fi

finish
