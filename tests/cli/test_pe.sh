#!/bin/bash
# PE files, which are copied, described and checked on any system.
. "$(dirname "$0")/support.bash"

inputs=$(dirname "$EXTISOLATE")/pe_inputs
"$ROOT/tests/pe_inputs/build.sh" "$inputs" || { echo 'not ok inputs: they cannot be built'; exit 1; }
x64=$inputs/lld-x64
if [ ! -f "$x64/ext.dll" ]; then
    skip pe "$(cat "$inputs"/*/*.skip 2>/dev/null | head -n 1)"
    exit 0
fi
api=$x64/python311.dll

# ---- names ----

odd="my module é ü.cp311-win_amd64.pyd"
cp "$x64/ext.dll" "$odd"
run copy --libpython "$api" "$odd" ctx
check a_file_with_blanks_in_its_name_is_copied 0 "$odd -> .*/ctx/my module é ü\..*\.cp311-win_amd64\.pyd"
sound ctx
say $? and_its_copy_is_sound
run list --json ctx
[ "$(jq '[.. | .edits? // empty | select(has("id"))] | length' out)" = 1 ]
say $? libpython_alone_gets_an_id
cp "$api" "my python.dll"
run copy --libpython "my python.dll" "$odd" blank
check libpython_may_have_one_too 0 '/blank/p[0-9a-z]{8}\.dll'
run copy "$x64/fixed.dll" ctx
check one_without_relocations_is_refused 1 'fixed.dll' 'IMAGE_FILE_RELOCS_STRIPPED'

finish
