#!/bin/bash
# The program under wine prints the same and exits with the same status as on this system, except
# for paths and the system's messages.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/support/wine.bash"
native=$EXTISOLATE
build=$(dirname "$native")

"$ROOT/tests/windows/build.sh" "$build/windows/x86_64" || { echo 'not ok build: it cannot be built'; exit 1; }
program=$build/windows/x86_64/extisolate.exe
[ -f "$program" ] || { skip program "$(cat "$build/windows/x86_64/extisolate.skip")"; exit 0; }
"$ROOT/tests/pe_inputs/build.sh" "$build/pe_inputs"
gnu=$build/pe_inputs/gnu-x64
[ -f "$gnu/ext.dll" ] || { skip program "$(cat "$gnu/python311.skip" "$gnu/ext.skip" 2>/dev/null)"; exit 0; }
start_wine >why || { skip program "$(cat why)"; exit 0; }
trap 'finish_wine; clean_up' EXIT
: >out >err

# The program that `run` and `x` run from here on.
EXTISOLATE=$T/program
printf '#!/bin/sh\nexec timeout 1200 "%s" "%s" "$@"\n' "$WINE" "$program" >"$EXTISOLATE"
chmod +x "$EXTISOLATE"
T=$(realpath "$T")
z=Z:${T//\//\\} # as Windows sees it
mkdir here there

# Prints the output with this system's paths and without what depends on them: the folder and a part
# of the copies' names.  Windows' file times have steps of 100 ns.
plain() {
    sed -E -e 's|Z:||g' -e 's|\\\\|/|g' -e 's|\\|/|g' -e "s,$T/(here|there),$T,g" -e 's|-[a-z0-9]{8}\.|-HASH.|g' \
        -e 's/("source_mtime_ns": [0-9]*)[0-9]{2}/\100/' "$1"
}

# alike NAME ARGUMENT...: each in its own folder, both programs print the same and exit with the
# same status
alike() {
    local name=$1 bad=0 want
    shift
    (cd here && "$native" "$@" >../native.out 2>../native.err </dev/null)
    want=$?
    (cd there && "$EXTISOLATE" "$@" >../out 2>../err </dev/null)
    rc=$?
    [ "$rc" = "$want" ] && ! grep -q $'\r' out err || bad=1
    diff -u <(plain native.out) <(plain out) && diff -u <(plain native.err) <(plain err) || bad=1
    say $bad "$name" "exit code $rc, expected $want"
}

# ---- usage ---------------------------------------------------------------------------------------

for c in copy inspect rewrite verify list clean help; do
    alike "help_of_$c" help $c
    [ $c = help ] || alike "short_help_of_$c" $c -h
done
alike help --help
alike version --version
alike no_command
alike near_miss cpoy
alike unknown_command $'co\npy\033[31m'
for c in copy inspect rewrite verify list clean; do
    alike "${c}_without_arguments" $c
    alike "${c}_of_an_empty_argument" $c ''
    alike "${c}_with_an_unknown_option" $c --jsno x
    alike "${c}_with_an_unknown_short_option" $c -q
done
alike option_that_takes_no_value inspect --json=yes x
alike option_that_needs_a_value copy x ctx --libpython
alike group_of_options inspect --json -qx y
alike options_after_arguments inspect missing --jsno
alike argument_like_an_option verify -- --json
alike copy_of_one_argument copy x.pyd
alike copy_with_a_bad_name copy --name a/b x.pyd ctx
alike copy_with_private_names_is_for_elf copy --rename --libpython "$gnu/python311.dll" "$gnu/ext.dll" ctx
alike copy_with_an_empty_libpython copy --libpython '' x.pyd ctx
alike verify_of_a_file_needs_against verify ../err
alike verify_of_a_directory_against verify . --against ../err
run run app.py
check run_says_what_it_needs 1 'run needs a POSIX system' 'extisolate copy'
run help run
check help_of_run_says_so 0 'usage: extisolate run' 'Not on Windows: it needs'
"$EXTISOLATE" help >/dev/full 2>err
rc=$?
: >out
check full_standard_output 1 'standard output: cannot write'

# ---- copy ----------------------------------------------------------------------------------------

src="from here/ümläut-Ω" ctx='ctx für 字'
mkdir -p "$src"
cp "$gnu/python311.dll" "$src"
cp "$gnu/ext.dll" "$src/x.cp311-win_amd64.pyd"
cp "$gnu/ext.dll" "$src/ÿ 音.pyd"
cp "$gnu/debug.dll" "$src/debug.pyd"
x=$src/x.cp311-win_amd64.pyd y="$src/ÿ 音.pyd"
alike copy_of_odd_names copy --name c1 "../$x" "../$y" "../$src/debug.pyd" "$ctx"
alike copy_again copy "../$x" "$ctx"
for f in "here/$ctx"/*.dll "here/$ctx"/*.pyd; do
    cmp "$f" "there/$ctx/$(basename "$f" | sed -E 's/-[a-z0-9]{8}\./-*./')" ||
        cmp "$f" "there/$ctx"/$(basename "$f" | sed -E 's/-[a-z0-9]{8}\./-????????./; s/ /?/') || break
done >diff 2>/dev/null
say $? copies_are_the_same_bytes "$(cat diff)"
alike context_verifies verify "$ctx"
alike context_is_listed list "$ctx"
alike context_is_listed_in_JSON list --json "$ctx"
alike copy_in_JSON copy --json --name c2 "../$y" json
run copy --json "$x" "$z\\there\\$ctx\\"
[ $rc = 0 ] && [ "$(jq -r '.context.dir, .copies[0].source' out)" = "$z\\there\\$ctx"$'\n'"$x" ] &&
    [ "$(jq -r '.api_library.source' out)" = "$z\\${src//\//\\}\\python311.dll" ] &&
    [ "$(jq -r '.copies[0].copy' out)" = "$z\\there\\$ctx\\$(cd "there/$ctx" && ls x.c1*)" ]
say $? copy_gives_windows_paths
run copy "$src\\*_amd64.pyd" "${src//\//\\}\\d?b*.pyd" no*.pyd new
check wildcards_are_the_programs_to_expand 1 "^$src.x.cp311-win_amd64.pyd -> " 'debug.pyd -> ' 'no\*.pyd: cannot open file: Invalid name'
[ "$(ls new/*.pyd | wc -l)" = 2 ]
say $? no_more_are_copied
rm -r new
run copy --json missing.pyd "there/$ctx"
[ $rc = 1 ] && [ "$(jq -r '.errors[0].code, .errors[0].os_error' out)" = $'EXTI_E_IO\n2' ]
say $? errors_in_JSON_have_an_errno

# ---- rewrite -------------------------------------------------------------------------------------

for f in here there; do cp "$gnu/ext.dll" "$f/edit é.dll"; done
alike rewrite_to_another_file rewrite --json --id new.dll 'edit é.dll' -o other.dll
for i in 1 2 3; do
    alike "rewrite_in_place_$i" rewrite --replace-needed "python311.dll=a-rather-long-name-$i.dll" --allow-absent \
        --id "name-$i.dll" 'edit é.dll'
done
cmp here/other.dll there/other.dll && cmp 'here/edit é.dll' 'there/edit é.dll' && [ "$(ls there | grep -c tmp)" = 0 ]
say $? rewritten_files_are_the_same_bytes
rm {here,there}/{other,'edit é'}.dll

deep=$T/deep
for i in 1 2 3 4 5 6; do deep=$deep/$(printf "$i%.0s" $(seq 70)); done
mkdir -p "$deep"
cp "$gnu/ext.dll" "$gnu/python311.dll" "$deep"
run copy "Z:${deep//\//\\}\\ext.dll" "Z:${deep//\//\\}\\ctx"
check long_paths 0 '-> Z:.*666.ctx.p........\.dll' '-> Z:.*666.ctx.ext'
run verify "Z:${deep//\//\\}\\ctx"
check long_paths_verify 0 '2 copies, all sound'
run list "Z:${deep//\//\\}\\ctx"
check long_paths_are_listed 0 'fresh .*python311.dll  \(API library\)'
run clean "Z:${deep//\//\\}\\ctx"
check long_paths_are_cleaned 0 ': removed'
[ ! -e "$deep/ctx" ]
say $? long_paths_are_gone

# Files of the other systems.
if make_toy; then
    alike elf_files_are_copied copy --name elf --libpython ../libtoyapi.so ../toyext.so elf
    alike elf_files_are_described inspect --json ../toyext.so ../libtoyapi.so
    alike elf_copies_verify verify elf
    run copy toyext.so new
    check elf_files_need_libpython_named 1 'no libpython3 for 64-bit x86-64' '--libpython PATH'
else
    skip elf_files_are_copied 'the toys cannot be built'
fi

# ---- inspect and verify --------------------------------------------------------------------------

alike inspect inspect "../$x" "../$src/python311.dll"
alike inspect_in_JSON inspect --json "../$x" "../$y"
alike inspect_of_symbols inspect --symbols --libpython "../$src/python311.dll" "../$x"
cp "there/$ctx"/x.c1* one.pyd
copy=$(ls "there/$ctx"/x.c1*)
alike verify_of_one_copy verify ../one.pyd --against "../$x"
alike verify_against_another verify ../one.pyd --against "../$src/debug.pyd"
for f in */"$ctx"/x.c1*; do printf '\x90' | dd of="$f" bs=1 seek=2000 conv=notrunc status=none; done
alike verify_finds_a_changed_byte verify "$ctx"
grep -q 'offset 0x7d0' out
say $? verify_tells_its_offset
alike verify_in_JSON verify --json "$ctx"
rm */"$ctx"/x.c1*
alike list_tells_a_missing_copy list "$ctx"
alike copy_makes_it_anew copy "../$x" "$ctx"
cmp "$copy" one.pyd
say $? it_is_what_it_was
alike all_is_well_again verify "$ctx"
touch -d 2001-01-01 "$y"
alike list_tells_a_stale_copy list "$ctx"
alike verify_tells_a_stale_copy verify "$ctx"
alike copy_replaces_it copy "../$y" "$ctx"
mv "$y" away
alike list_tells_an_orphan list "$ctx"
mv away "$y"
alike its_source_is_back list "$ctx"
for i in 2 10; do
    for d in here there; do mkdir -p $d/many; done
    alike "one_of_many_contexts_$i" copy --name "k$i" "../$x" "many/$i"
done
alike list_of_a_directory_of_contexts list many
alike verify_of_a_directory_of_contexts verify many

# ---- refusals ------------------------------------------------------------------------------------

echo keep >file
mkdir folder.pyd
listing() { find "$1" -mindepth 1 ! -name .lock -printf '%P %s\n' | sort; }
ctx=there/$ctx
listing "$ctx" >before
for f in missing.pyd folder.pyd file nowhere/x.pyd 'a*?.pyd' 'NUL' "$src/../no"; do
    run copy "$f" "$ctx"
    check "copy_of_${f##*/}" 1 "extisolate: .*$(sed 's/[*?]/\\&/g' <<<"${f##*/}"): "
    run copy --libpython "$src/python311.dll" "$f" new
    [ $rc = 1 ] && [ ! -e new ]
    say $? "copy_of_${f##*/}_into_a_new_context_makes_none"
    [ -d "$f" ] && continue # whose libraries' hazards are told
    run inspect "$f"
    check "inspect_of_${f##*/}" 1 'extisolate: '
done
listing "$ctx" | cmp - before
say $? failures_leave_the_context_as_it_was
for f in missing.dll folder.pyd file; do
    run copy --libpython "$f" "$x" new
    [ $rc = 1 ] && [ ! -e new ] && grep -q "$f: " err
    say $? "libpython_that_is_$f"
done
run copy "$x" file
check ctxdir_that_is_a_file 1 'extisolate: file: is a file, not a directory'
run copy "$x" file/ctx
check ctxdir_below_a_file 1 'file[/\\]ctx'
run copy "$x" no/such/ctx
check ctxdir_without_parents 1 'no[/\\]such'
[ ! -e no ] && [ "$(cat file)" = keep ]
say $? nothing_was_made
for c in list verify clean; do
    run $c missing
    check "${c}_of_a_missing_directory" 1 'extisolate: missing: .*No such file'
    alike "${c}_of_no_context" $c folder.pyd
    run $c file
    check "${c}_of_a_file" $([ $c = verify ] && echo 2 || echo 1) 'file'
done
if [ "$(id -u)" = 0 ] && mkdir ro.mount && mount -t tmpfs -o size=4m none ro.mount 2>/dev/null; then
    x copy "$x" ro.mount/ctx >/dev/null 2>err
    mount -o remount,ro ro.mount
    hint='choose a writable CTXDIR|check the permissions' # wine does not tell the one from the other
    run copy "$x" ro.mount/new
    check read_only_target 1 'cannot make folder' "$hint"
    run copy "$y" ro.mount/ctx
    check read_only_context 1 'cannot create' "$hint"
    run verify ro.mount/ctx
    check read_only_context_verifies 0 'all sound'
    umount ro.mount
else
    skip read_only_target 'needs root and the right to mount'
fi

# ---- several processes ---------------------------------------------------------------------------

for i in 1 2 3 4; do x copy "$x" "$y" "$src/debug.pyd" together >"out.$i" 2>"err.$i" & done
bad=0
for p in $(jobs -p); do wait "$p" || bad=1; done
[ $bad = 0 ]
say $? copying_at_once_into_one_new_directory "$(cat err.?)"
for i in 2 3 4; do cmp <(grep "\.pyd -> " out.1) <(grep "\.pyd -> " "out.$i") || bad=1; done
say $bad they_agree_on_the_copies
run verify together
check the_directory_is_sound 0 '4 copies, all sound'

# A library that is in use cannot be deleted.
cat >holder.c <<'C'
#include <stdio.h>
#include <windows.h>

int wmain(int argc, wchar_t **argv)
{
    puts(argc == 2 && LoadLibraryW(argv[1]) ? "loaded" : "failed");
    fflush(stdout);
    return getchar();
}
C
x86_64-w64-mingw32-gcc -municode -O1 -o holder.exe holder.c || say 1 holder
mkfifo hold
hold() { # DIR: loads its libpython
    : >held
    timeout 1800 "$WINE" holder.exe "$z\\$1\\$(cd "$1" && ls p*.dll)" <hold >held 2>/dev/null &
    holder=$!
    exec 7>hold
    until [ -s held ] || ! kill -0 $holder 2>/dev/null; do sleep 0.1; done
    grep -q loaded held
    say $? "holder_holds_a_copy_in_$1" "$(cat held)"
}
let_go() { exec 7>&-; wait $holder; }
hold together
run clean together
check clean_of_a_copy_in_use 1 'together.p.*\.dll: cannot remove file: a process has it loaded'
let_go
run clean together
check clean_of_what_remained 0 'together: removed'
[ ! -e together ]
say $? nothing_remains
cp "$src/python311.dll" .
x copy --libpython python311.dll "$x" held.ctx >/dev/null 2>err
hold held.ctx
touch -d 2001-01-01 python311.dll
run copy "$x" held.ctx
check copy_replaces_a_stale_copy_in_use 0
run verify held.ctx
check and_the_directory_verifies 0 '2 copies, all sound'
run clean held.ctx
check clean_of_a_replaced_copy_in_use 1 'held.ctx.*: cannot remove file: a process has it loaded'
let_go
run clean held.ctx
check clean_of_a_replaced_copy 0 'held.ctx: removed'
ctx=${ctx#there/}
alike clean clean many "$ctx" elf json
[ ! -e there/many ] && [ ! -e "there/$ctx" ] && rmdir here there
say $? contexts_are_gone

# ---- from one system to the other ----------------------------------------------------------------

# A path of one system means nothing on the other.
x copy "$x" theirs >/dev/null 2>err
cp theirs/manifest.json before
for c in list verify clean 'copy away.pyd'; do
    "$native" $c theirs >out 2>err
    rc=$?
    check "${c% *}_of_a_directory_of_windows" 1 'theirs/manifest.json: was made on another operating system, for Z:'
done
cmp theirs/manifest.json before
say $? it_stays_as_it_is
"$native" copy "$x" ours >/dev/null
run verify ours
check verify_of_a_directory_of_another_system 1 'manifest.json: was made on another operating system, for /'
run verify "$(ls ours/x*)" --against "$x"
check one_copy_made_here_verifies_there 0 'a sound copy'
"$native" verify "$(ls theirs/x*)" --against "$x" >out 2>err
rc=$?
check one_copy_made_there_verifies_here 0 'a sound copy'

# ---- libpython -----------------------------------------------------------------------------------

# found NAME EXPECTED FILE: with the folders of WINEPATH before those of PATH
found() {
    rm -rf new
    run copy --json "$3" new
    [ $rc = 0 ] && [ "$(jq -r .api_library.source out)" = "$z\\${2//\//\\}" ]
    say $? "$1" "expected $2"
}
mkdir -p inst/Lib/site-packages/pkg inst/DLLs env/Lib/site-packages apart bin launch path
cp "$src/python311.dll" inst
cp "$x" inst/Lib/site-packages/pkg
cp "$x" inst/DLLs/x.pyd
cp "$x" env/Lib/site-packages
cp "$x" apart
printf 'home = %s\\inst\r\n' "$z" >env/pyvenv.cfg
found libpython_beside_the_file "$src/python311.dll" "$x"
found libpython_above_site_packages inst/python311.dll inst/Lib/site-packages/pkg/x.cp311-win_amd64.pyd
found libpython_above_DLLs inst/python311.dll "$z\\inst\\DLLs\\x.pyd"
found libpython_of_a_virtual_environment inst/python311.dll env/Lib/site-packages/x.cp311-win_amd64.pyd
x=apart/x.cp311-win_amd64.pyd
cp inst/python311.dll path
WINEPATH="$z\\path" found libpython_in_a_folder_of_PATH path/python311.dll $x

# Its answer depends on its arguments.
cat >python.c <<'C'
#include <stdio.h>
#include <string.h>
#include <windows.h>

int main(int argc, char **argv)
{
    const char *wants[] = {WANTS "-I", "-S", "-c"};
    int n = sizeof wants / sizeof *wants;

    for (int i = 0; i < n; i++)
        if (argc != n + 2 || strcmp(argv[i + 1], wants[i]) != 0)
            return 1;
    if (strncmp(argv[n + 1], "import json", 11) != 0 || strstr(argv[n + 1], "'dirs'") == NULL || getchar() != EOF)
        return 1;
    fputs("to be dropped", stderr);
    SLEEP;
    puts("{\"name\": \"cpython\", \"major\": 3, \"minor\": " MINOR ", \"flags\": \"\","
         "\"exe\": \"python.exe\", \"libs\": [\"\", \"\"], \"dirs\": [\"" HOME "\"]}");
    return 0;
}
C
python() { # FILE MINOR HOME WANTS SLEEP
    x86_64-w64-mingw32-gcc -O1 -o "$1" python.c -DMINOR="\"$2\"" -DHOME="\"${3//\\/\\\\\\\\}\"" -DWANTS="$4" -DSLEEP="$5"
}
mkdir hang
python bin/python.exe 11 "$z\\inst" '' '' && python launch/python.exe 12 "$z\\inst" '' '' &&
    python launch/py.exe 11 "$z\\inst" '"-3.11",' '' && python hang/python.exe 11 "$z\\inst" '' 'Sleep(600000)'
say $? toy_pythons
(
    cd hang && cp "../$x" . && T=$PWD
    WINEPATH="$z\\hang" "$EXTISOLATE" copy x.cp311-win_amd64.pyd new >out 2>err
    echo $? >rc
) &
WINEPATH="$z\\bin" found libpython_of_the_python_on_PATH inst/python311.dll $x
WINEPATH="$z\\launch" found libpython_that_py_knows inst/python311.dll $x
run copy $x new2
check libpython_that_is_nowhere 1 'no python311.dll for 64-bit x86-64' 'python on PATH \(none answers' \
    'py -3.11 on PATH \(none' 'the folders of PATH' '--libpython PATH: it is beside python.exe'
[ ! -e new2 ]
say $? and_no_directory_is_made
wait
cp hang/out hang/err .
rc=$(cat hang/rc)
check a_python_that_hangs_is_given_up 1 'python: none answers when it is asked for its libpython'

# ---- a console -----------------------------------------------------------------------------------

if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    TERM=dumb script -qec "'$EXTISOLATE' inspect 'ümläut-Ω'" /dev/null >out </dev/null
    grep -q 'ümläut-Ω: ' out
    say $? a_console_shows_all_characters
else
    skip a_console_shows_all_characters 'there is no script(1), or no terminal to be had'
fi
finish
