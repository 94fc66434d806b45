#!/bin/bash
# Rules in files: which of them apply, and the errors of faulty ones.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }
cc -shared -fPIC -O1 -o needy.so toyext.c -Wl,--no-as-needed -L. -l:libtoyapi.so

cat >mine.json <<'JSON'
{"extisolate_quirks": 1, "quirks": [
  {"id": "by-name", "match": {"file": "toyext.so"}, "library": "isolate", "note": "first"},
  {"id": "by-soname", "match": {"file": "libtoyapi.so.1"}, "rename": {"Toy_Next": "Toy_Other"}},
  {"id": "by-path", "match": {"file": "*/toyext.*"}, "environment": {"TOY": "1", "TOY_MORE": "2"}},
  {"id": "by-need", "match": {"needs": "libtoyapi.so.?"}, "redirect": {"Toy_Next": "Toy_Reset"}},
  {"id": "by-import", "match": {"imports": "Py_Unknown"}, "environment": {"TOY": "3"}},
  {"id": "by-export", "match": {"exports": "ext_*", "text": "Toy_Next"}, "note": "it steps"},
  {"id": "never", "match": {"file": "toyext.so", "imports": "Nobody_*"}, "refuse": "it cannot"}
]}
JSON

run quirks
check built_in_rules_are_listed 0
run quirks --quirks mine.json
sed -n '/^by-name /,$p' out >part
cat >want <<'TXT'
by-name (mine.json)
  match        file toyext.so
  library      isolate
  note         first
by-soname (mine.json)
  match        file libtoyapi.so.1
  rename       Toy_Next -> Toy_Other
by-path (mine.json)
  match        file */toyext.*
  environment  TOY=1, TOY_MORE=2
by-need (mine.json)
  match        needs libtoyapi.so.?
  redirect     Toy_Next -> Toy_Reset
by-import (mine.json)
  match        imports Py_Unknown
  environment  TOY=3
by-export (mine.json)
  match        exports ext_*, text Toy_Next
  note         it steps
never (mine.json)
  match        file toyext.so, imports Nobody_*
  refuse       it cannot
TXT
same all_rules_are_listed part want

applying() { jq -r --arg f "$1" '.[] | select(.file == $f) | .quirks[].id' out | tr '\n' ' '; }
run quirks --json --quirks mine.json toyext.so libtoyapi.so needy.so
[ "$(applying toyext.so)" = 'by-name by-path by-import by-export ' ] &&
    [ "$(applying libtoyapi.so)" = 'by-soname ' ] &&
    [ "$(applying needy.so)" = 'by-need by-import by-export ' ]
say $? rules_apply_to_real_files
jq -e '.[0].environment == {"TOY": "3", "TOY_MORE": "2"} and .[1].environment == {} and
    .[0].quirks[0].file == "mine.json" and .[0].quirks[0].index == 0 and
    .[0].quirks[0].rule.library == "isolate"' out >/dev/null
say $? json_has_rules_and_environment
ln -s toyext.so another-name.so
run quirks --quirks mine.json another-name.so mine.json libtoyapi.so
check applying_rules_are_printed 1 '^another-name.so$' '^  by-name \(mine.json\)$' '^    library +isolate$'
run quirks libtoyapi.so
check files_without_rules_are_named 0 '^libtoyapi.so$' '^  none$'

cat >more.json <<'JSON'
{"extisolate_quirks": 1, "disable": ["by-path", "by-export"], "quirks": [
  {"id": "by-name", "match": {"file": "toyext.so"}, "note": "second"}]}
JSON
run quirks --json --quirks mine.json --quirks more.json toyext.so
[ "$(applying toyext.so)" = 'by-import by-name ' ]
say $? later_files_disable_and_replace_rules
run quirks --quirks mine.json --quirks more.json
check disabled_rules_are_told 0 '^  disabled by  more.json$' '^by-path'
run quirks --json --quirks mine.json --quirks more.json
jq -e 'map(select(.disabled_by == "more.json") | .id) == ["by-name", "by-path", "by-export"]' out >/dev/null
say $? disabled_rules_are_told_in_json
run quirks --quirks more.json --quirks mine.json
check files_count_in_their_order 1 "more.json: disable\[0\]: no earlier file has a rule 'by-path'"

# Errors name file, place or rule and member, and where the format is described.
fault() { # NAME TEXT PATTERN
    printf '%s' "$2" >bad.json
    run quirks --quirks bad.json
    check "$1" 1 "bad.json: $3" 'man 5 extisolate-quirks'
    [ ! -s out ] || say 1 "${1}_prints_nothing_else"
}
fault bad_json $'{"extisolate_quirks": 1,\n}' "line 2, column 1: "
fault no_quirks '{"a": 1}' 'is not a quirk file'
fault bad_member '{"extisolate_quirks": 1, "quirks": [{"id": "a", "match": {"file": "b"}, "sharing": []}]}' \
    "quirks\[0\] \(a\): unknown member 'sharing'; known are id, match, library"
fault bad_glob '{"extisolate_quirks": 1, "quirks": [{"id": "a", "match": {"file": "b["}, "note": "n"}]}' \
    "quirks\[0\] \(a\): match.file: 'b\[' has a '\[' without a '\]'"
fault control_characters '{"extisolate_quirks": 1, "quirks": [{"id": "a", "match": {"file": "\u001b[31m["}}]}' \
    "quirks\[0\] \(a\): match.file: '\\\\x1b\[31m\[' has"
run quirks --quirks missing.json
check missing_file 1 'missing.json: .*No such file'
run quirks --quirks "$T"
check directory_for_a_file 1
printf '{"extisolate_quirks": 9}' >bad.json
run quirks --quirks bad.json
check later_format 1 'bad.json: has format 9; this library reads format 1'
run quirks --quirks mine.json mine.json
check rules_are_for_libraries 1 'mine.json: '

# The effects of rules on copies.
rules() { printf '{"extisolate_quirks": 1, "quirks": [%s]}' "$1" >rules.json; }
rules '{"id": "no-go", "match": {"exports": "ext_*"}, "refuse": "it steps on others"}'
run copy --quirks rules.json --libpython libtoyapi.so toyext.so ctx
check refused_files_are_told 1 'toyext.so: cannot be isolated: it steps on others \(quirk no-go\)'
[ ! -e ctx ]
say $? refused_files_leave_nothing
rules '{"id": "re", "match": {"file": "toyext.so"}, "rename": {"ext_step": "ext_other"}}'
run copy --json --quirks rules.json --libpython libtoyapi.so toyext.so ctx
check copies_with_quirks 0
copy=$(jq -r '.copies[0].copy' out)
symbols() { nm -D --defined-only "$copy" | awk '$3 ~ /^ext_/ { print $3 }' | sort | tr '\n' ' '; }
[ "$(symbols)" = 'ext_other ext_unused ' ] && sound ctx
say $? symbols_are_renamed_as_nm_sees
run list --json ctx
jq -e '.[0].copies | map(select(.is_api | not))[0].edits.renamed == {"ext_step": "ext_other"}' out >/dev/null
say $? renames_are_listed
run copy toyext.so ctx
[ $rc = 0 ] && [ "$(symbols)" = 'ext_step ext_unused ' ] && sound ctx
say $? copies_follow_the_rules_that_are_given
run copy --json --quirks bad.json --libpython libtoyapi.so toyext.so new
check faulty_rules_copy_nothing 1 'bad.json: has format 9'
jq -e '.errors[0].code == "EXTI_E_UNSUPPORTED" and .copies == []' out >/dev/null && [ ! -e new ]
say $? faulty_rules_are_told_in_json

# The built-in rules.
echo 'int llvm(void) { return 1; }' >llvm.c
cc -shared -fPIC -o libLLVM-99.so.1 llvm.c -Wl,-soname,libLLVM-99.so.1,-z,nodelete
cc -shared -fPIC -o jit.so toyext.c -Wl,--no-as-needed -L. -l:libLLVM-99.so.1 -Wl,-rpath,"$T"
printf '{"extisolate_quirks": 1, "disable": ["llvm"]}' >without.json
run copy --libpython libtoyapi.so jit.so with
[ $rc = 0 ] && [ -n "$(ls with/libLLVM-99.* 2>/dev/null)" ]
say $? llvm_is_isolated
run copy --quirks without.json --libpython libtoyapi.so jit.so without
[ $rc = 0 ] && [ -z "$(ls without/libLLVM-99.* 2>/dev/null)" ]
say $? llvm_would_be_shared

# The effects of rules on contexts of CPython.
if [ -z "$DEBIAN_LIBPYTHON" ] || [ ! -x /usr/bin/python3 ]; then
    skip rules_for_running 'there is no /usr/bin/python3 with a shared libpython'
    finish
fi
mkdir -p site/below
cp toyext.so site/below/_robot.so
export PYTHONPATH=$T/site
rules '{"id": "a", "match": {"file": "_robot.so", "imports": "Toy_*"}, "environment": {"ROBOT": "1", "ROBOTS": "1"}},
    {"id": "b", "match": {"file": "*/site/below/*"}, "environment": {"ROBOT": "2"}},
    {"id": "c", "match": {"file": "_nobody.so"}, "environment": {"ROBOT": "3"}}'
print='import os; print(*(os.environ.get(v) for v in ("ROBOT", "ROBOTS")))'
run run --python /usr/bin/python3 --quirks rules.json -c "$print"
check environment_is_set_for_what_could_be_imported 0 '^2 1$'
ROBOTS=many run run --python /usr/bin/python3 --quirks rules.json -c "$print"
check what_is_set_stays 0 '^2 many$'
run run --python /usr/bin/python3 -c "$print"
check no_environment_without_rules 0 '^None None$'
rules '{"id": "pid", "match": {"file": "_decimal.*"}, "refuse": "it is a test"}'
run run --python /usr/bin/python3 --quirks rules.json -c 'import _decimal'
check refused_modules_are_not_imported 1 'ImportError: .*cannot be isolated: it is a test \(quirk pid\)'
run run --python /usr/bin/python3 --quirks bad.json -c 1
check faulty_rules_run_nothing 1 'bad.json: has format 9'
finish
