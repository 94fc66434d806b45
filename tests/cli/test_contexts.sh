#!/bin/bash
# verify, list and clean, on one context directory and on a directory of them.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }
cp toyext.so other.so

fresh() {
    rm -rf ctx
    x copy --name golden --libpython libtoyapi.so toyext.so other.so ctx >copied 2>err ||
        say 1 context_to_start_with
    api=$(sed -n '1s/.* -> //p' copied)
    one=$(sed -n '2s/.* -> //p' copied)
    two=$(sed -n '3s/.* -> //p' copied)
}
fresh

run verify ctx
echo 'ctx: 3 copies, all sound' >want
[ $rc = 0 ] && [ ! -s err ]
say $? sound_context
same sound_context_output out want
run verify --json ctx
[ $rc = 0 ] && jq -e '. == {ok: true, checked: 1, findings: [], notes: []}' out >/dev/null
say $? sound_context_json

# finding NAME PATTERN: verify reports what was just done to ctx; then ctx is restored.
finding() {
    run verify ctx
    check "$1" 1 "$2" '^ctx: [0-9]+ findings?$'
    run verify --json ctx
    [ $rc = 1 ] && jq -e '.ok == false and (.findings | length > 0) and (.findings[0].message | length > 0)
        and (.findings[0] | has("offset"))' out >/dev/null
    say $? "$1_json"
    run copy toyext.so other.so ctx
    [ $rc = 0 ] || say 1 "$1_can_be_copied_again"
}
flip() { printf '\xff' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
text=$(readelf -SW toyext.so | sed -n 's/.* \.text *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
flip "$one" $((16#$text + 2))
finding changed_byte_of_code "$(basename "$one"): offset 0x0*$(printf %x $((16#$text + 2)))"
rm "$one"
run copy toyext.so ctx
sound ctx
say $? copy_that_is_removed_is_made_anew
fresh
truncate -s -1 "$one"
finding truncated_copy "$(basename "$one")"
fresh
rm "$two"
finding missing_copy "$(basename "$two")"
sound ctx
say $? missing_copy_is_made_anew
fresh
cp "$two" "$one"
finding copy_replaced_by_another "$(basename "$one")"
fresh
echo more >>"$api"
finding changed_api_copy "$(basename "$api")"
fresh
: >ctx/stray.so
finding stray_file 'ctx/stray.so'
rm ctx/stray.so
sound ctx
say $? context_without_the_stray_verifies

run verify "$one" --against toyext.so
echo "$one: a sound copy" >want
same file_against_its_original out want
run verify "$one" --against libtoyapi.so
check file_against_another_file 1 'finding'
run verify toyext.so --against toyext.so
check file_against_itself 0
cp "$one" broken.so
flip broken.so $((16#$text + 2))
run verify --json broken.so --against toyext.so
[ $rc = 1 ] && jq -e --argjson at $((16#$text + 2)) '.ok == false
    and (.findings | map(select(.offset == $at and .file == "broken.so")) | length) == 1' out >/dev/null
say $? file_with_a_changed_byte_json

# list
fresh
run list ctx
[ $rc = 0 ] && [ "$(head -n 1 out)" = 'ctx: context golden, 3 copies' ] && [ "$(wc -l <out)" = 5 ] &&
    [ "$(grep -c '^  fresh ' out)" = 3 ] && [ "$(grep -c '(API library)$' out)" = 1 ]
say $? list_of_a_fresh_context
awk 'NR > 1 { print index($0, NR == 2 ? "SOURCE" : "/") }' out | sort -u >columns
[ "$(wc -l <columns)" = 1 ]
say $? list_is_aligned
touch -d '2001-01-01' other.so
rm "$one"
cp other.so gone.so
x copy gone.so ctx >/dev/null
rm gone.so
run list --json ctx
jq -r '.[0].copies[] | .state + " " + (.source | split("/") | last)' out | sort >states
cat >want <<'TXT'
fresh libtoyapi.so
missing toyext.so
orphan gone.so
stale other.so
TXT
same states_of_copies states want
jq -e --arg t "$T" '.[0].name == "golden" and .[0].dir == "ctx" and .[0].renamed == false
    and (.[0].copies | map(select(.is_api)) | length) == 1
    and (.[0].copies[] | select(.is_api) | .source_size > 0 and .copy_size == .source_size
         and .edits.clear_unique == true)
    and (.[0].copies[] | select(.state == "missing") | .copy_size) == null' out >/dev/null
say $? list_json

# clean
fresh
echo mine >ctx/mine
run clean ctx
check clean_keeps_other_files 0 '^ctx: copies removed; other files are in it, so it stays$'
[ "$(ls -A ctx)" = mine ]
say $? clean_removes_the_rest
run clean ctx
check clean_twice 1 'not a context directory'
rm -rf ctx
fresh
run clean ctx
echo 'ctx: removed' >want
same clean_output out want
[ ! -e ctx ] && [ -f toyext.so ] && [ -f libtoyapi.so ]
say $? clean_removes_the_directory_only

# Directories of contexts.
mkdir all
for i in 0 1 2 10; do x copy --libpython libtoyapi.so toyext.so all/$i >/dev/null 2>&1; done
run verify all
printf 'all/%s: 2 copies, all sound\n' 0 1 2 10 >want
same verify_of_several_in_order out want
run list --json all
[ "$(jq -r 'map(.dir) | join(" ")' out)" = 'all/0 all/1 all/2 all/10' ]
say $? list_of_several
rm "$(find all/1 -name 'toyext*')"
run verify all
check one_unsound_of_several 1 '^all/0: 2 copies, all sound' '^all/1: 1 finding' '^all/10: 2 copies'
run verify --json all
jq -e '.checked == 4 and (.findings | length) == 1' out >/dev/null
say $? one_unsound_of_several_json
# Notes of hazards, which are not findings.
cat >tls.c <<'C'
__thread char b[64] __attribute__((aligned(8), tls_model("initial-exec")));
char *f(void);
char *f(void) { return b; }
extern char pthread_create[], chdir[];
char *c[] = {pthread_create, chdir};
C
cc -shared -fPIC -nostdlib -fno-builtin -Wl,-z,nodelete -o tls.so tls.c
x copy --libpython libtoyapi.so tls.so toyext.so noted >copied 2>err
sed -n '2s/.* -> //p' copied >want
run verify noted
check hazards_are_noted 0 '^noted: note: static-tls: limits .*, to 26 \(1 file, 64 bytes\): each copy' \
    '^noted: note: threads: matters when a copy is unloaded \(1 file\): ' '^noted: 3 copies, all sound$'
[ "$(wc -l <out)" = 3 ]
say $? what_is_cured_or_shared_is_not_noted
run verify --json noted
jq -r '.notes[0].files[]' out >names
jq -e '.ok and .findings == [] and (.notes | map(.kind)) == ["static-tls", "threads"]
    and (.notes | map(.file)) == ["noted", "noted"] and .notes[0].contexts == 26' out >/dev/null &&
    [ "$(basename "$(cat names)")" = "$(basename "$(cat want)")" ]
say $? hazards_are_noted_in_json

run clean all
check clean_of_several 0 '^all/0: removed' '^all/10: removed'
[ ! -e all ]
say $? clean_of_several_removes_their_directory

# A directory that others can change: reading warns, what acts on it refuses.
fresh
chmod o+w ctx
for c in list verify; do
    run $c ctx
    check ${c}_warns_of_a_directory_that_others_can_change 0 'ctx: warning: can be written by everyone' \
        'refuse it without --trust-dir'
done
for c in 'copy toyext.so other.so' clean; do
    # shellcheck disable=SC2086
    run $c ctx
    check "${c%% *}_refuses_a_directory_that_others_can_change" 1 'ctx: can be written by everyone' \
        'add --trust-dir'
done
[ -e "$one" ] && [ -e ctx/manifest.json ]
say $? nothing_is_removed_from_it
mkdir package
cp toyext.so package
run copy-tree --libpython libtoyapi.so package ctx/tree
check copy-tree_refuses_a_directory_below_it 1 'ctx: can be written by everyone'
run copy --trust-dir toyext.so other.so ctx
check copy_takes_it_with_trust_dir 0
run clean --trust-dir ctx
check clean_takes_it_with_trust_dir 0 '^ctx: '
finish
