#!/bin/bash
# Errors of the system at named places: what could not be looked at is neither absent nor shared.
. "$(dirname "$0")/../cli/support.bash"
cc -shared -fPIC -O1 -o fail_at.so "$ROOT/tests/faults/fail_at.c" -ldl || { echo 'not ok shim: it cannot be built'; exit 1; }
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

py() { python3 -I -S -c "$@"; }
# with_fault CALL TEXT ARG...: runs the program; CALL on paths with TEXT fails as fail_at.c says.
with_fault() {
    local call=$1 in=$2
    shift 2
    rm -f failed
    FAIL_CALL=$call FAIL_IN=$in FAIL_LOG=$T/failed LD_PRELOAD=$T/fail_at.so run "$@"
}
. "$ROOT/tests/faults/tree.bash"
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
originals() { (cd "$T" && find tree apidir -type f -exec sha256sum {} +) | LC_ALL=C sort; }
originals >before

# What is isolated, by the names of the sources.
isolated() { py 'import json, sys
print(sorted(c["source"].rsplit("/", 1)[1] for c in json.load(open(sys.argv[1] + "/manifest.json"))["copies"]))' "$1"; }
run copy --libpython "$api" "$one" wanted
isolated wanted >wanted.txt
[ $rc = 0 ] && grep -q libinner wanted.txt && grep -q libbase wanted.txt
say $? without_a_fault_all_are_isolated

# ---- a needed library -------------------------------------------------------------------------------

names=([4]=EINTR [5]=EIO [12]=ENOMEM [23]=ENFILE [24]=EMFILE)
for error in 4 5 12 23 24; do
    rm -rf ctx
    with_fault "open:1:$error:on" /libinner.so.1 copy --libpython "$api" "$one" ctx
    bad=0
    [ $rc = 1 ] && [ -s failed ] && ! grep -qE 'libouter|one\.' ctx/manifest.json || bad=1
    [ "$error" = 12 ] || grep -q 'libinner\.so\.1: cannot open file: .*; libouter\.so\.1 needs libinner\.so\.1' err || bad=1
    run copy --libpython "$api" "$one" ctx
    isolated ctx | cmp -s - wanted.txt && [ $rc = 0 ] || bad=1
    say $bad "${names[error]}_on_a_needed_library_fails_the_copy_and_a_rerun_heals"
done
rm -rf ctx
with_fault open:1:5 /libbase.so.1 copy --libpython "$api" "$one" ctx
bad=$rc
run copy --libpython "$api" "$one" ctx
[ "$bad" = 1 ] && isolated ctx | cmp -s - wanted.txt && [ $rc = 0 ]
say $? what_libpython_needs_too

# ---- a library that comes later ---------------------------------------------------------------------

rm -rf ctx
mv apidir/libbase.so.1 away && mv tree/libinner.so.1 away2
run copy --libpython "$api" "$one" ctx
bad=$rc
mv away apidir/libbase.so.1 && mv away2 tree/libinner.so.1
run verify ctx
check verify_sees_what_was_missing 1 'libpython3.*was made without libbase\.so\.1' \
    'libouter.*was made without libinner\.so\.1'
run copy --libpython "$api" "$one" ctx
[ "$bad" = 0 ] && [ $rc = 0 ] && isolated ctx | cmp -s - wanted.txt && x verify ctx >/dev/null
say $? and_a_rerun_isolates_it_also_for_libpython
py 'import json
m = json.load(open("ctx/manifest.json"))
for c in m["copies"] + [m["api"]]:
    for n in c.get("needs", []):
        if n["name"] == "libinner.so.1":
            n["isolated"] = False
            n["to"] = n["file"]
json.dump(m, open("ctx/manifest.json", "w"))' 2>err
run verify ctx
check verify_sees_what_is_shared_against_the_policy 1 'shares .*libinner\.so\.1, of which the context is to have a copy'

# ---- a copy of a copy -------------------------------------------------------------------------------

rm -rf ctx second
x copy --libpython "$api" "$one" ctx >out
with_fault open:1:24 ctx/manifest.json copy --libpython "$api" ctx/one.*.so second
[ $rc = 1 ] && [ -s failed ] && ! grep -q 'one\.' second/manifest.json && grep -q 'ctx/manifest\.json: cannot' err
say $? a_context_that_cannot_be_looked_at_is_not_taken_for_a_plain_folder

# ---- folders ----------------------------------------------------------------------------------------

run copy-tree --libpython "$api" tree ctx-tree
isolated ctx-tree/0 >tree.txt
for call in readdir:1:5 readdir:3:5 opendir:1:24 opendir:1:13; do
    rm -rf ctx
    with_fault $call "$T/tree" copy-tree --libpython "$api" "$T/tree" ctx
    [ $rc = 1 ] && [ -s failed ] && grep -qE 'tree: cannot read the directory: ' err
    say $? "a_folder_that_cannot_be_read_is_told_${call//:/_}"
done
rm -rf ctx
with_fault readdir:1:5 "$T/tree/sub" copy-tree --libpython "$api" "$T/tree" ctx
[ $rc = 1 ] && grep -q 'tree/sub: cannot read the directory: Input/output error' err && isolated ctx/0 >less &&
    grep -q libinner less && ! cmp -s less tree.txt
bad=$?
run copy-tree --libpython "$api" "$T/tree" ctx
[ $bad = 0 ] && [ $rc = 0 ] && isolated ctx/0 | cmp -s - tree.txt
say $? other_folders_are_copied_all_the_same
rm -rf ctx
with_fault realpath:1:5 "$T/tree" copy-tree --libpython "$api" "$T/tree" ctx
[ $rc = 1 ] && grep -q 'tree: cannot read the directory' err
say $? so_is_a_tree_that_cannot_be_resolved

# ---- the Python that is asked -----------------------------------------------------------------------

mkdir -p venv/bin venv/lib/python3.11/site-packages other
cp tree/lib*.so.1 "$one" venv/lib/python3.11/site-packages/
cp "$api" apidir/libbase.so.1 other/
touch venv/pyvenv.cfg
answer="{\"name\": \"cpython\", \"major\": 3, \"minor\": 11, \"flags\": \"\", \"exe\": \"x\",
  \"libs\": [\"libpython3.11.so.1.0\"], \"dirs\": [\"$T/apidir\"]}"
printf '#!/bin/sh\ncat <<E\n%s\nE\n' "$answer" >venv/bin/python3
chmod +x venv/bin/python3
export LD_LIBRARY_PATH=$T/other
run copy-tree venv ctx-venv
[ $rc = 0 ] && grep -q "$T/apidir/libpython3.11" ctx-venv/0/manifest.json
say $? a_venv_names_its_libpython
for how in 'kill -SEGV $$' 'exit 1' 'echo {nonsense'; do
    rm -rf ctx
    printf '#!/bin/sh\n%s\n' "$how" >venv/bin/python3
    run copy-tree venv ctx
    [ $rc = 1 ] && [ ! -e ctx ] && grep -q 'venv/bin/python3: none answers when it is asked for its libpython' err &&
        grep -q -e '--libpython PATH' err
    say $? "a_venv_whose_python_does_${how%% *}_gets_no_other_libpython"
done
rm -rf ctx
ln -sf /nowhere/python3 venv/bin/python3
run copy-tree venv ctx
check nor_one_whose_python_is_gone 1 'venv/bin/python3: none answers'
run copy-tree --libpython "$api" venv ctx
check the_libpython_can_be_named 0
rm -rf ctx
mkdir bin
printf '#!/bin/sh\nkill -SEGV $$\n' >bin/python3
chmod +x bin/python3
PATH=$T/bin:$PATH run copy "$one" ctx
check nor_does_copy_when_the_python_on_PATH_dies 1 'python3: none answers' '--libpython PATH'
printf '#!/bin/sh\nexit 127\n' >bin/python3
cp bin/python3 bin/python3.11
PATH=$T/bin:/usr/bin:/bin run copy "$one" ctx
check one_that_stands_for_none_is_passed_over 0 "$T/other/libpython3.11"
unset LD_LIBRARY_PATH

# ---- a library that a running module opens ----------------------------------------------------------

if [ -z "$DEBIAN_LIBPYTHON" ]; then
    skip what_ctypes_opens_is_not_shared_either "Debian's libpython is not installed"
else
    # ld.so's own calls do not fail: it would load the original.
    opens='import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as e:
    print("refused:", e)
else:
    print("\n".join({l.split()[-1] for l in open("/proc/self/maps") if "libinner" in l}))'
    run run --python python3 -c "$opens" "$T/tree/libinner.so.1"
    [ $rc = 0 ] && grep -q libinner out && ! grep -q '^refused' out && ! grep -q "^$T/tree/libinner.so.1$" out
    bad=$?
    with_fault open:1:24:on /libinner.so.1 run --python python3 -c "$opens" "$T/tree/libinner.so.1"
    [ $bad = 0 ] && [ $rc = 0 ] && [ -s failed ] && grep -q '^refused: .*Too many open files' out
    say $? what_ctypes_opens_is_not_shared_either
fi

# ---- the lock file ----------------------------------------------------------------------------------

for call in stat:1:5:on open:1:17:on lock:1:37:on; do
    rm -rf ctx
    FAIL_CALL=$call FAIL_IN=/.lock LD_PRELOAD=$T/fail_at.so timeout 20 "$EXTISOLATE" copy --libpython "$api" "$one" ctx >out 2>err
    rc=$?
    [ $rc = 1 ] && grep -q '\.lock: cannot' err
    say $? "a_lock_that_fails_for_ever_is_an_error_${call//:/_}"
done

# ---- what clean says at last ------------------------------------------------------------------------

# How often it looks at the folder itself; then the last looks, and all from then on, fail.
rm -rf ctx
x copy --libpython "$api" "$one" ctx >out
FAIL_CALL=stat:0:0 FAIL_IN=ctx FAIL_COUNT=$T/count LD_PRELOAD=$T/fail_at.so run clean ctx
looks=$(sed -n 's/^stat //p' count)
bad=$rc
for ((k = looks - 2; k <= looks; k++)); do
    for mode in '' :on; do
        x copy --libpython "$api" "$one" ctx >out
        with_fault stat:$k:5$mode ctx clean ctx
        [ -s failed ] && ! grep -q link out || { bad=1; sed "s/^/    look $k$mode: /" out; }
    done
done
say $bad a_folder_that_cannot_be_looked_at_is_not_called_a_link

# ---- another process cleans at the same time ---------------------------------------------------------

rm -rf ctx
x copy-tree --contexts 2 --libpython "$api" tree ctx >out
FAIL_CALL=rmdir:0:0 FAIL_IN=ctx FAIL_COUNT=$T/count LD_PRELOAD=$T/fail_at.so run clean ctx
last=$(sed -n 's/^rmdir //p' count)
x copy-tree --contexts 2 --libpython "$api" tree ctx >out
with_fault rmdir:$last:2 ctx clean ctx
[ $rc = 0 ] && [ -s failed ] && [ "$(grep -c 'ctx/[01]: removed' out)" = 2 ] && [ ! -s err ]
say $? a_folder_of_contexts_that_is_gone_already_is_cleaned
rm -rf ctx
x copy --libpython "$api" "$one" ctx >out
copy=$(basename ctx/one.*.so)
FAIL_CALL=stat:0:0 FAIL_IN=$copy FAIL_COUNT=$T/count LD_PRELOAD=$T/fail_at.so run list ctx
looks=$(sed -n 's/^stat //p' count)
with_fault stat:$looks:2 "$copy" list ctx
[ $rc = 0 ] && [ -s failed ] && [ ! -s err ] && grep -qE "^  missing +- .* $copy " out && grep -q '^  fresh' out
say $? a_copy_that_is_gone_since_it_was_found_fresh_is_listed_as_missing
with_fault stat:$looks:5 "$copy" list ctx
[ $rc = 1 ] && grep -q "$copy: cannot look up its size: Input/output error" err
say $? one_that_cannot_be_looked_at_is_an_error

originals | cmp -s - before
say $? originals_stay_as_they_are
finish
