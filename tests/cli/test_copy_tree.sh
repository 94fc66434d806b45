#!/bin/bash
# copy-tree: which files are copied, into which contexts, and that an interrupted call can be finished.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }

py() { python3 -I -S -c "$@"; }
library() { # FILE TEXT [FLAG...]
    local file=$1
    printf '%s\n' "$2" >library.c
    shift 2
    cc -shared -fPIC -o "$file" library.c -Wl,-soname,"$(basename "$file")" "$@"
}
module() { # FILE NAME [FLAG...]
    local file=$1 name=$2
    shift 2
    printf 'int Toy_Next(void); void *PyInit_%s(void); void *PyInit_%s(void) { static int counted; counted += Toy_Next(); return &counted; }\n' \
        "$name" "$name" >module.c
    cc -shared -fPIC -o "$file" module.c "$@"
}

# A site-packages folder with vendored libraries, and other files that are found in such folders.
cc -shared -fPIC -Wl,-soname,libpython3.11.so.1.0 -o libpython3.11.so.1.0 toyapi.c || exit 1
api=$T/libpython3.11.so.1.0
make_tree() {
    local d=$1
    mkdir -p "$d/pkg" "$d/pkg.libs" "$d/deep/er" "$d/__pycache__"
    library "$d/pkg.libs/libinner.so.1" 'int inner(void); int inner(void) { return 1; }'
    library "$d/pkg.libs/libouter.so.1" 'int inner(void); int outer(void); int outer(void) { return inner(); }' \
        "$d/pkg.libs/libinner.so.1" -Wl,-rpath,'$ORIGIN'
    library "$d/pkg/libruntime.so" 'int alone(void); int alone(void) { return 2; }'
    module "$d/pkg/one.cpython-311-x86_64-linux-gnu.so" one -Wl,--no-as-needed "$d/pkg.libs/libouter.so.1" \
        -Wl,-rpath,'$ORIGIN/../pkg.libs'
    module "$d/pkg/two.abi3.so" two
    module "$d/deep/er/three.so" three
    cp "$d/deep/er/three.so" "$d/__pycache__/compiled.so" # which nothing looks for there
    ln -s pkg "$d/again"
    ln -s .. "$d/deep/up"
    ln -s one.cpython-311-x86_64-linux-gnu.so "$d/pkg/link.cpython-311-x86_64-linux-gnu.so"
    ln -s nowhere.so "$d/pkg/dangling.so"
}
make_tree 'site packages'
cp -r 'site packages' rough
cp rough/pkg/two.abi3.so rough/old.cpython-39-x86_64-linux-gnu.so
echo 'INPUT(libfoo.so.1)' >rough/script.so
head -c 300 rough/deep/er/three.so >rough/broken.cpython-311-x86_64-linux-gnu.so
# for another machine: only e_machine differs
cp rough/deep/er/three.so rough/foreign.so
printf '\xb7\x00' | dd of=rough/foreign.so bs=1 seek=18 conv=notrunc 2>/dev/null

names() { (cd "$1" && ls) | sed -n 's/\..*//p' | LC_ALL=C sort | tr '\n' ' '; }
state() { (cd "$1" && find . -type f -printf '%p %i %T@ %s\n' | LC_ALL=C sort); }

run copy-tree --contexts 3 --libpython "$api" 'site packages' ctx
[ $rc = 0 ] && [ "$(ls ctx | tr '\n' ' ')" = '0 1 2 ' ] && [ ! -s err ]
say $? it_makes_the_contexts_asked_for
grep -q '^copied *18$' out && grep -q '^up to date *0$' out && grep -q '^refused *0$' out
say $? it_counts_them
[ "$(names ctx/0)" = 'libinner libouter libpython3 libruntime manifest one three two ' ] &&
    [ "$(names ctx/2)" = "$(names ctx/0)" ]
say $? each_has_every_file_once_and_what_it_needs
sound ctx
say $? they_are_sound
grep -q 'libinner.so.1' out && grep -q 'isolated by default' out && grep -q 'libc.so.6' out &&
    grep -q 'may open it at run time: libruntime.so$' out
say $? it_says_what_became_of_libraries
cp out first

state ctx >before
run copy-tree --contexts 3 'site packages' ctx
state ctx >after
[ $rc = 0 ] && grep -q '^copied *0$' out && grep -q '^up to date *18$' out && cmp -s before after
say $? a_second_call_leaves_all_as_it_is
counts() { sed -n '/^\(isolated\|shared\) *[0-9][0-9]* libraries$/p' "$1" | tr -d '\n'; }
run copy-tree --contexts 3 --why 'site packages' ctx
cp out why
run copy-tree --contexts 3 'site packages' ctx
[ "$(counts out)" = "$(counts first)" ] && [ "$(counts why)" = "$(counts first)" ] &&
    grep -q '^isolated *3 libraries$' out && ! grep -q 'isolated by default' out && grep -q -e '^--why lists' out &&
    diff <(sed '1,/^refused/d' first) <(sed '1,/^refused/d' why) >/dev/null
say $? it_then_counts_libraries_and_tells_the_reasons_if_asked
run copy-tree --contexts 4 'site packages/' ctx
[ $rc = 0 ] && grep -q '^copied *6$' out && state ctx | grep -v '^./3/' | cmp -s - before && sound ctx
say $? more_contexts_are_added
module 'site packages/deep/er/three.so' three -O2 -Wl,--build-id
run copy-tree --contexts 4 'site packages' ctx
[ $rc = 0 ] && grep -q '^copied *4$' out && grep -q '^up to date *20$' out && sound ctx
say $? only_what_has_changed_is_copied_again

run copy-tree --libpython "$api" rough rough/ctx
check what_cannot_be_copied_is_refused_and_all_else_done 1 'broken\.cpython-311' '^copied *6$' '^refused *1$' \
    '^skipped *3$' 'is built for CPython 3\.9.*: old\.cpython-39' 'is not a native library: script\.so' \
    'AArch64.*: foreign\.so'
sound rough/ctx
say $? a_context_in_the_tree_is_not_copied_itself

# A universal file with 64-bit offsets, but without slices.
mkdir wide
{ printf '\xca\xfe\xba\xbf'; head -c 200 /dev/zero; } >wide/w.cpython-311-darwin.so
run copy-tree --libpython "$api" wide wide/ctx
check universal_files_of_either_kind_are_libraries 1 "universal file's header" '^refused *1$'
run copy-tree --json --contexts 2 rough rough/ctx
py 'import json, sys
o = json.load(open("out"))
name = lambda p: p.rsplit("/", 1)[1].split(".")[0]
assert [c["name"] for c in o["contexts"]] and len(o["contexts"]) == 2
assert o["contexts"][0]["copied"] == 0 and o["contexts"][0]["up_to_date"] == 6
assert o["contexts"][1]["copied"] == 6 and o["contexts"][1]["error"] is None
assert sorted(name(f["source"]) for f in o["files"]) == ["libinner", "libouter", "libruntime", "one", "three", "two"], o["files"]
assert all(len(f["copies"]) == 2 and all(f["copies"]) for f in o["files"])
assert [name(e["file"]) for e in o["refused"]] == ["broken"] and o["refused"][0]["message"]
assert sorted(name(e["file"]) for e in o["skipped"]) == ["foreign", "old", "script"]
libs = {l["name"]: l["state"] for l in o["libraries"]}
assert libs["libinner.so.1"] == libs["libouter.so.1"] == "isolated" and libs["libc.so.6"] == "shared", libs
' && [ $rc = 1 ]
say $? json_has_all_of_it

rm -f rough/broken* && rm rough/pkg.libs/libinner.so.1
run copy-tree --libpython "$api" rough missing
check a_missing_library_is_told 0 'libinner\.so\.1, needed by libouter'
run copy-tree --closure=none --libpython "$api" 'site packages' none
[ $rc = 0 ] && [ "$(names none/0)" = 'libpython3 manifest one three two ' ]
say $? with_closure_none_libraries_stay
run copy-tree --share 'libr*' --libpython "$api" 'site packages' some
[ $rc = 0 ] && [ "$(names some/0)" = 'libinner libouter libpython3 manifest one three two ' ] &&
    grep -q 'libruntime' out
say $? a_rule_shares_what_nothing_needs
run copy-tree --share 'libinner*' --libpython "$api" 'site packages' once
[ $rc = 0 ] && [ "$(names once/0)" = 'libouter libpython3 libruntime manifest one three two ' ] &&
    ! grep -q 'that nothing needs' out &&
    [ "$(sed -n 's/^shared *\([0-9]*\) .*/\1/p' out)" = $(($(sed -n 's/^shared *\([0-9]*\) .*/\1/p' first) + 1)) ]
say $? a_shared_library_that_is_needed_is_told_of_once
mkdir empty
run copy-tree --libpython "$api" empty of-empty
[ $rc = 0 ] && [ ! -e of-empty ] && grep -q '^copied *0$' out
say $? an_empty_tree_makes_nothing
run copy-tree --libpython "$api" 'site packages/pkg/two.abi3.so' ctx2
check a_file_is_no_tree 1 'not a directory' 'extisolate copy FILE'
run copy-tree --libpython "$api" 'site packages' ctx/0
check a_context_is_no_folder_of_contexts 1 'is itself a context directory'

# ---- other programs' manifests ----------------------------------------------------------------------

mkdir -p webapp/static
cp 'site packages/deep/er/three.so' webapp/
cp 'site packages/pkg/two.abi3.so' webapp/static/
echo '{"name": "my web app"}' >webapp/manifest.json
run copy-tree --libpython "$api" webapp web
[ $rc = 0 ] && [ ! -s err ] && grep -q '^copied *2$' out && [ "$(names web/0)" = 'libpython3 manifest three two ' ]
say $? another_programs_manifest_does_not_hide_its_folder
mv web/0/manifest.json ours
echo '{"extisolate": 99, "name": "n"}' >later
for kind in ours later; do
    rm -rf web
    cp $kind webapp/manifest.json
    run copy-tree --libpython "$api" webapp web
    [ $rc = 0 ] && [ ! -s err ] && [ ! -e web ]
    say $? "a_context_in_the_tree_is_left_out_with_a_manifest_of_$kind"
done
echo '{"extisolate": 2}' >damaged
echo '{"name": "my web app", // a comment' >no-json
: >blank
echo '[]' >webapp/manifest.json
for kind in damaged no-json blank; do
    rm -rf web
    cp $kind webapp/static/manifest.json
    run copy-tree --libpython "$api" webapp web
    check "a_manifest_that_may_be_a_context_s_is_told_of_$kind" 1 '^copied *1$' \
        "webapp/static: skipped, because its manifest.json may be a context's: ."
done

# ---- what of a tree is looked at -------------------------------------------------------------------

cc -shared -fPIC -o watch_paths.so "$ROOT/tests/cli/watch_paths.c" -ldl || exit 1
(export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" LD_PRELOAD=$T/watch_paths.so
copied() { "$EXTISOLATE" copy-tree --json --name same --libpython "$api" walked "$1" >json 2>err </dev/null; }
cp -r 'site packages' walked
mkdir -p walked/deep/plain
touch walked/readme.txt walked/pkg/one.py walked/deep/plain/two.py
mkfifo walked/pkg/pipe.so
ln -s ../../pkg.libs walked/deep/plain/libs
mkdir walked/pkg/context
echo '{"extisolate": 99}' >walked/pkg/context/manifest.json
cp walked/deep/er/three.so walked/pkg/context/four.so
PATHS_TO=$T/paths copied typed && mv json typed.json
rc=$?
sed -n 's,^walked/,,p' paths >in-tree
UNTYPED=1 PATHS_TO=$T/all-paths copied untyped && mv json untyped.json
echo "$rc $?" >codes)
[ "$(cat codes)" = '0 0' ] && [ "$(names typed/0)" = 'libinner libouter libpython3 libruntime manifest one three two ' ]
say $? pipes_and_contexts_in_the_tree_are_left_out
if ! grep -q '^walked/readme\.txt$' all-paths; then
    skip only_links_are_asked_what_they_are "the C library's stat cannot be watched"
else
    grep -qx 'deep/plain/libs' in-tree && ! grep -qE '\.(txt|py)$|^(deep/plain|__pycache__|pkg/context/.*)$' in-tree
    say $? only_links_are_asked_what_they_are
fi
py 'import json
a, b = (json.dumps(json.load(open(f))).replace("/%s/" % f.split(".")[0], "/ctx/") for f in ("typed.json", "untyped.json"))
assert a == b, (a, b)'
say $? it_does_the_same_where_folders_tell_no_types

# ---- the same whatever the number of threads, and whenever it was killed ---------------------------

# Prints the contents of the directory, without times and places.
digest() {
    (cd "$1" && ls -A */ && sha256sum */*.so*)
    py 'import json, sys
for path in sys.argv[1:]:
    m = json.load(open(path))
    for e in [m["api"]] + m["copies"]:
        for key in "boot", "copy_mtime_ns", "copy_ctime_ns", "copy_inode", "copy_device": del e[key]
    print(json.dumps(m, sort_keys=True))' "$1"/*/manifest.json
}
tree() { x copy-tree --name same --contexts 2 --libpython "$api" "$@" 'site packages' killed; }

tree --jobs 1 >/dev/null 2>&1
digest killed >wanted
good=1
for jobs in 2 3 9; do
    rm -rf killed
    tree --jobs $jobs >/dev/null 2>&1
    digest killed | cmp -s - wanted || good=0
done
[ $good = 1 ] && [ "$(grep -c '\.so' wanted)" -gt 14 ]
say $? the_number_of_threads_does_not_show

# tests/faults/test_kills.sh does the same to a small tree, at each call of any kind.
cc -shared -fPIC -o fail_at.so "$ROOT/tests/faults/fail_at.c" -ldl || exit 1
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
rm -rf killed
FAIL_CALL=change:0:0:die FAIL_COUNT=$T/count LD_PRELOAD=$T/fail_at.so tree --jobs 2 >/dev/null 2>err
total=$(sed -n 's/^change //p' count)
total=${total:-0}
if ! digest killed | cmp -s - wanted || [ "$total" -lt 30 ]; then
    say 1 killed_at_any_point_and_called_again_it_is_as_if_never_killed "$total calls"
    finish
fi
bad= killed=0 step=3
[ -z "${EXTI_ALL:-}" ] || step=1
for ((k = 1; k <= total; k += step)); do
    rm -rf killed
    { FAIL_CALL=change:$k:0:die LD_PRELOAD=$T/fail_at.so tree --jobs 2 >/dev/null; } 2>/dev/null
    [ $? = 137 ] && killed=$((killed + 1))
    tree >out 2>err && digest killed | cmp -s - wanted || { bad="$bad $k"; break; }
done
[ -z "$bad" ] && [ $killed -gt $((total / step * 3 / 4)) ]
say $? killed_at_any_point_and_called_again_it_is_as_if_never_killed "bad: $bad; $killed of $total killed"

# ---- what run makes of it --------------------------------------------------------------------------

python=/usr/bin/python${DEBIAN_LIBPYTHON:+$(sed 's/.*libpython\(3\.[0-9]*\).*/\1/' <<<"$DEBIAN_LIBPYTHON")}
if [ -z "$DEBIAN_NUMPY" ] || [ -z "$DEBIAN_LIBPYTHON" ] || [ ! -x "$python" ]; then
    skip run_finds_the_copies "Debian's numpy and libpython are not installed"
    finish
fi
"$python" -m venv --without-pip 'a venv' 2>err || { skip run_finds_the_copies 'no venv can be made'; finish; }
cp -r "$(dirname "$(dirname "$DEBIAN_NUMPY")")" 'a venv'/lib/python3*/site-packages/
run copy-tree --contexts 2 'a venv' vctx
[ $rc = 0 ] && [ -e vctx/1/manifest.json ] && grep -q '^refused *0$' out
say $? a_venv_tells_its_libpython
sources() { py 'import json, sys
print(sorted(c["source"] for c in json.load(open(sys.argv[1]))["copies"] if "numpy" in c["source"]))' "$1"; }
sources vctx/1/manifest.json >before
# Modules only: a library that the program has too gets another kind of copy when it is loaded.
(cd vctx && find . -name '*.cpython-*' -printf '%p %i %T@\n' | LC_ALL=C sort) >state
run run --python 'a venv/bin/python' --contexts 2 --dir vctx --prove \
    -c 'import numpy; print(int(numpy.arange(10).dot(numpy.arange(10))), numpy.__file__)'
[ $rc = 0 ] && [ "$(grep -c '^285 .*a venv' out)" = 2 ]
say $? run_finds_the_copies
if grep -qE '__(asan|tsan)_init' "$EXTISOLATE"; then
    skip it_makes_none_anew "modules define what the sanitizer's run-time library does, and so get copies of another kind"
else
    sources vctx/1/manifest.json | cmp -s - before &&
        (cd vctx && find . -name '*.cpython-*' -printf '%p %i %T@\n' | LC_ALL=C sort) | comm -13 - state | cmp -s - /dev/null
    say $? it_makes_none_anew
fi
run copy-tree --contexts 2 'a venv' vctx
[ $rc = 0 ] && grep -q '^copied *0$' out && x verify vctx >/dev/null
say $? and_what_run_has_added_stays
finish
