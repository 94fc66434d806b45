#!/bin/bash
# Rules of files, which of them apply, and what is said of faulty ones.
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

# Faults: with file, place or rule and member, and where the format is told.
fault() { # NAME TEXT PATTERN
    printf '%s' "$2" >bad.json
    run quirks --quirks bad.json
    check "$1" 1 "bad.json: $3" 'man 5 extisolate-quirks'
    [ ! -s out ] || say 1 "${1}_prints_nothing_else"
}
fault bad_json $'{"extisolate_quirks": 1,\n}' "line 2, column 1: "
fault no_quirks '{"a": 1}' 'is not a file of quirks'
fault bad_member '{"extisolate_quirks": 1, "quirks": [{"id": "a", "match": {"file": "b"}, "sharing": []}]}' \
    "quirks\[0\] \(a\): there is no member 'sharing'; there are id, match, library"
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
check later_format 1 'bad.json: is of format 9; this library knows format 1'
run quirks --quirks mine.json mine.json
check rules_are_for_libraries 1 'mine.json: '
finish
