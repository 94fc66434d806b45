#!/bin/bash
# Many contexts in one process; unloading in any order, over and over; threads.
. "$(dirname "$0")/support.bash"
begin many
have many "$lld/python311.dll" "$lld/ext.dll" "$mine/crt.dll" "$gnu/python311.dll" || exit 0
count=200

mkdir many
cp "$lld/python311.dll" many
cp "$lld/ext.dll" many/ext.pyd
for ((i = 0; i < count; i++)); do
    context "many-$i" many/python311.dll many/ext.pyd || break
    ext[i]=$(copy_of "many-$i" ext.pyd)
    apis[i]=$api
done
[ "${#ext[@]}" = $count ]
say $? "$count contexts are made"

# line FORMAT NUMBER PATH
line() {
    local l=${1//%d/$2}
    echo "${l//%s/$3}"
}
each() { for ((i = 0; i < count; i++)); do line "$1" "$i" "${ext[i]}"; done; }
forwards=$(seq 0 $((count - 1)))
backwards=$(seq $((count - 1)) -1 0)

# unloading NAME ORDER: all are loaded, called, and unloaded in that order
unloading() {
    try "$1" "$(each 'load c%d 1100 %s'
each 'call c%d PyInit_ext'
each 'call c%d ext_value'
each 'add c%d ext_state 1'
each 'call c%d PyInit_ext'
for i in $2; do echo "free c$i"; done
echo "walk $T/many-0 $T")" "$(each 'c%d loaded'
each 'c%d PyInit_ext 1003'
each 'c%d ext_value 1000'
each 'c%d ext_state 8'
each 'c%d PyInit_ext 1008'
for i in $2; do echo "c$i gone"; done)
modules 0 references 0 leaks 0 unresolved 0"
}
unloading "$count contexts have $count states, unloaded forwards" "$forwards"
unloading "$count contexts, unloaded backwards" "$backwards"
try "$count contexts: each refers to itself" "$(each 'load c%d 1100 %s'
for ((i = 0; i < count; i++)); do echo "walk $T/many-$i $T"; done)" "$(each 'c%d loaded'
for ((i = 0; i < count; i++)); do echo "modules 2 references 3 leaks 0 unresolved 0"; done)"

# ---- unloading and reloading ---------------------------------------------------------------------

# A reloaded context is new; its neighbour keeps its state.
try "a context that is loaded again begins anew" "load n 1100 ${ext[1]}
call n PyInit_ext
$(for _ in {1..40}; do
    echo "load a 1100 ${ext[0]}
call a PyInit_ext
call a ext_value
call n PyInit_ext
free a"
done)" "n loaded
n PyInit_ext 1003
$(for i in {1..40}; do
    echo "a loaded
a PyInit_ext 1003
a ext_value 1000
n PyInit_ext $((1003 + 4 * i))
a gone"
done)"

# Only the extension is unloaded; its libpython keeps the state.
try "a libpython that is held keeps its state" "load p 1100 ${apis[0]}
$(for _ in {1..20}; do
    echo "load a 1100 ${ext[0]}
call a PyInit_ext
free a"
done)
free p
load a 1100 ${ext[0]}
call a PyInit_ext" "p loaded
$(for i in {1..20}; do
    echo "a loaded
a PyInit_ext $((1000 + 3 * i))
a gone"
done)
p gone
a loaded
a PyInit_ext 1003"

# ---- threads -------------------------------------------------------------------------------------

mkdir crt
cp "$gnu/python311.dll" crt
cp "$mine/crt.dll" crt/crt.pyd
for ((i = 0; i < 8; i++)); do
    context "crt-$i" crt/python311.dll crt/crt.pyd
    crt[i]=$(copy_of "crt-$i" crt.pyd)
done
together() { # FORMAT [FOR_EXT]
    echo together
    for ((i = 0; i < 8; i++)); do line "$1" "$i" "${crt[i]}"; done
    for ((i = 0; i < 24; i++)); do line "${2:-${1/ c/ e}}" "$i" "${ext[i]}"; done
    echo end
}
told() { # FORMAT FOR_EXT
    for ((i = 0; i < 8; i++)); do line "$1" "$i" ''; done
    for ((i = 0; i < 24; i++)); do line "$2" "$i" ''; done
}
try "32 contexts load, run and go in 32 threads at once, ten times" "$(for _ in {1..10}; do
    together 'load c%d 1100 %s'
    together 'call c%d PyInit_crt' 'call e%d PyInit_ext'
    together 'call c%d crt_static' 'call e%d ext_value'
    together 'free c%d'
done)" "$(for _ in {1..10}; do
    told 'c%d loaded' 'e%d loaded'
    told 'c%d PyInit_crt 1003' 'e%d PyInit_ext 1003'
    told 'c%d crt_static 101' 'e%d ext_value 1000'
    told 'c%d gone' 'e%d gone'
done)"

finish
