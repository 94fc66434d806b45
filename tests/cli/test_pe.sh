#!/bin/bash
# PE files are copied, described and checked on any system.
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

# ---- python3.dll ----

# folder NAME: files as in an installation, and modules of the stable ABI
folder() {
    mkdir "$1"
    cp "$api" "$1/"
    cp "$x64/abi3-numbers.dll" "$1/numbers.pyd"
    cp "$x64/abi3-python3.dll" "$1/named.pyd"
    cp "$x64/numbers-late.dll" "$1/late.pyd"
}
imports() { llvm-readobj --coff-imports --coff-exports "$1"; }

folder py
run copy --libpython py/python311.dll py/named.pyd ctx1
check importers_by_name_need_no_python3 0
[ "$(ls ctx1 | grep -c '^s.*dll$')" = 0 ] && imports ctx1/named.*.pyd | grep -q 'Name: p.*\.dll'
say $? and_are_bound_to_libpython
run copy py/numbers.pyd ctx1
check importers_by_number_need_it 1 "numbers.pyd: imports '#[123]' from python3.dll, and .*/py/python311.dll does not export" \
    'copy that file first'
# LoadLibrary runs DllMain in any case, so copies for contexts are as those for programs.
run copy --for contexts --libpython py/python311.dll py/named.pyd kinds
check a_dll_can_be_for_contexts 0
cp -r kinds was && run copy --for programs py/named.pyd kinds
[ "$rc" = 0 ] && grep -q '"withheld": *false' kinds/*.json kinds/.*.json 2>/dev/null &&
    diff -r -x '*.json*' -x '.lock' was kinds >"$T/out"
say $? and_is_as_one_for_programs
run copy --libpython py/python311.dll py/numbers.pyd none
[ "$rc" = 1 ] && [ ! -e none ]
say $? and_without_it_no_directory_is_made

cp "$x64/python3.dll" py/PYTHON3.DLL
run copy py/numbers.pyd py/late.pyd ctx1
check it_is_found_beside_libpython 0
stable=$(cd ctx1 && ls s????????.dll)
p=$(cd ctx1 && ls p????????.dll)
[ "${stable#s}" = "${p#p}" ]
say $? its_copy_has_a_name_of_its_own "$stable $p"
imports ctx1/numbers.*.pyd | grep -q "Name: $stable" && imports ctx1/late.*.pyd | grep -q "Name: $stable"
say $? and_importers_name_that
imports "ctx1/$stable" >out
grep -q "ForwardedTo: ${p%.dll}.PyLong_Type" out && ! grep -q 'ForwardedTo: python' out
say $? which_forwards_to_the_contexts_libpython
sound ctx1
say $? and_all_are_sound
run list --json ctx1
[ "$(jq -r '.[0].copies[]? // .copies[] | .source' out | grep -c 'PYTHON3.DLL')" = 1 ]
say $? the_manifest_has_it
before=$(stat -c %i "ctx1/$stable")
run copy py/numbers.pyd ctx1
[ "$rc" = 0 ] && [ "$(stat -c %i "ctx1/$stable")" = "$before" ]
say $? it_is_made_once
rm "ctx1/$stable"
run copy py/numbers.pyd ctx1
[ "$rc" = 0 ] && sound ctx1
say $? and_again_when_it_is_gone
cp "$inputs/lld-x64/python3.dll" py/new && printf x >>py/new && mv py/new py/PYTHON3.DLL
run copy py/numbers.pyd ctx1
[ "$rc" = 0 ] && sound ctx1 && [ "$(tail -c 1 "ctx1/$stable")" = x ]
say $? and_when_it_is_stale
mkdir other && cp "$x64/python3.dll" other/
run copy other/python3.dll ctx1
check a_context_has_but_one 1 'other/python3.dll: the context already has a copy of python3.dll, made from .*/PYTHON3.DLL'

rm py/PYTHON3.DLL
ln -s numbers.pyd py/python3.dll
run copy --libpython py/python311.dll py/numbers.pyd linked
check a_link_to_a_file_of_another_name_is_refused 1 \
    "numbers.pyd: imports '#[123]' from python3.dll, but .*/py/python3.dll is a link to .*/py/numbers.pyd"
[ ! -e linked ]
say $? and_leaves_nothing
rm py/python3.dll
run copy --libpython py/python311.dll py/numbers.pyd other/python3.dll ctx2
check it_can_be_given_as_a_file 0 "other/python3.dll -> .*/ctx2/s.*\.dll" 'numbers.pyd -> '
sound ctx2
say $? and_that_is_sound
sed 's/python311\./python310./g' other/python3.dll >other.dll
mkdir wrong && mv other.dll wrong/python3.dll
run copy --libpython py/python311.dll wrong/python3.dll ctx3
check another_versions_is_refused 1 'wrong/python3.dll: does not forward to python311.dll' 'python310.Py'
sed 's/python311.PyModule_Create2/python311.PyModule_Create9/' "$x64/python3.dll" >wrong/python3.dll
run copy --libpython py/python311.dll wrong/python3.dll py/numbers.pyd ctx3
check one_that_leads_nowhere_is_refused 1 "imports '#2' from python3.dll, which forwards it to python311.PyModule_Create9"
rm -rf ctx3
for i in 1 2 3 4 5 6; do
    x copy --libpython py/python311.dll other/python3.dll py/numbers.pyd py/late.pyd ctx3 >out$i 2>&1 &
done
wait
sound ctx3 && [ "$(ls ctx3/s????????.dll | wc -l)" = 1 ]
say $? six_processes_make_one "$(cat out?)"

for m in x86 arm64; do
    from=$inputs/lld-$m
    # lld gives the names that forwarders lead to an underscore on x86.
    [ $m = arm64 ] && python3=$from/python3.dll || python3=$inputs/gnu-x86/python3.dll
    if [ ! -f "$from/abi3-numbers.dll" ] || [ ! -f "$python3" ]; then
        skip "on_$m" "$(cat "$from/abi3-numbers.skip" "${python3%.dll}.skip" 2>/dev/null)"
        continue
    fi
    run copy --libpython "$from/python311.dll" "$from/abi3-numbers.dll" "$from/numbers-late.dll" "$python3" on-$m
    check "on_${m}_it_is_copied_too" 0 'python3.dll -> .*/s'
    sound on-$m
    say $? and_that_is_sound
done

# ---- nothing leaves the context ----

# forge NAME FILE SED: makes a context and changes FILE in it
forge() {
    cp -rp ctx2 "$1"
    LC_ALL=C sed -i "$3" "$1"/$2
    run verify "$1"
}
x copy py/named.pyd py/late.pyd ctx2 >out
stable=$(cd ctx2 && ls s????????.dll) p=$(cd ctx2 && ls p????????.dll)
run verify ctx2
check a_whole_context_is_sound 0 'all sound'
forge f1 'named.*.pyd' "s/${p}/python311.dll/"
check an_import_of_the_original_is_found 1 'named\..*: imports from python311.dll, the original'
forge f2 'numbers.*.pyd' "s/${stable}/python3.dll\x00\x00/"
check an_import_of_python3_is_found 1 'numbers\..*: imports from python3.dll, the original'
forge f3 'late.*.pyd' "s/${stable}/python3.dll\x00\x00/"
check a_delay_import_is_found 1 'late\..*: imports late from python3.dll, the original'
forge f4 "$stable" "s/${p%.dll}\.PyLong/python311.PyLong/"
check a_forwarder_to_the_original_is_found 1 "$stable: forwards 'PyLong_Type' to python311.PyLong_Type" \
    "numbers.*: imports '#1' from $stable: $stable forwards it to python311.PyLong_Type"
forge f5 "$p" 's/PyLong_Type/PyLong_Typo/g'
check a_lost_export_is_found 1 "named.*: imports 'PyLong_Type' from $p: $p does not export PyLong_Type" \
    "numbers.*: imports '#1' from $stable: $p does not export PyLong_Type"
forge f6 'named.*.pyd' "s/${p}/pzzzzzzzz.dll/"
check an_import_of_another_contexts_copy_is_found 1 'imports from pzzzzzzzz.dll, which is none of .* in place of python3.dll'
cp -rp ctx2 f7 && ln -f f7/named.*.pyd f7/late.*.pyd
run verify f7
check a_hard_link_is_found 1 'is the same file as (named|late)'
cp -rp ctx2 f8 && ln -f py/named.pyd f8/named.*.pyd
run verify f8
check a_link_to_the_original_is_found 1 'is the same file as its original, .*/py/named.pyd'

# ---- as many imports as can be ----

if command -v /usr/bin/python3 >/dev/null; then
    /usr/bin/python3 "$ROOT/tests/pe_inputs/many.py" many.pyd
    timeout 600 "$EXTISOLATE" inspect many.pyd >out 2>err
    rc=$?
    check a_file_of_many_imports_is_described_in_time 0 '4095  python3.dll: 510 by name'
    run copy --libpython "$api" many.pyd many
    timeout 600 "$EXTISOLATE" verify many >out 2>err
    rc=$?
    check and_its_copy_is_verified_in_time 0 'all sound'
else
    skip many_imports 'no /usr/bin/python3'
fi

# ---- inspect ----

cat >want <<'TXT'
py/numbers.pyd
  format    PE32+, 64-bit, x86-64
  id        abi3-numbers.dll
  needed     1  python3.dll: 3 by number; a copy has its context's own
  build id  none
  API       imports 0 symbols
            exports 1 symbol: PyInit_ext
  room      440 bytes for section headers
  signed    none
  loads     at any address
  TLS       20 bytes for each thread
  flags     dependent load flags: limit where its libraries may lie; cleared in copies
  hazards   none
TXT
run inspect py/numbers.pyd
same golden_layout out want
run inspect "$x64/abi3-python3.dll" "$x64/delayed.dll" other/python3.dll "$x64/fixed.dll" "$inputs/lld-x86/ext.dll" \
    "$inputs/lld-arm64/ext.dll" "$inputs/gnu-x64/debug.dll"
check inspect_tells_what_becomes_of_each 0 \
    "python3.dll: 3 by name; a copy has its context's libpython in place of it" \
    "python311.dll .late.: 2 by name; a copy has its context's own" \
    "forwards  3 exports to python311; a copy has its context's own" \
    'copies    none: has no relocations' 'at one address only' 'PE32, 32-bit, i386' 'PE32\+, 64-bit, arm64' \
    'overlay   [0-9]+ bytes behind the sections'
if command -v gcc >/dev/null && command -v x86_64-w64-mingw32-gcc >/dev/null; then
    cat >late.c <<'C'
void *__stdcall LoadLibraryA(const char *);
void *__stdcall LoadLibraryW(const unsigned short *);
void __stdcall Sleep(unsigned);
int work(void);
int work(void)
{
    Sleep(1);
    return LoadLibraryA("C:\\Python311\\PYTHON311.DLL") == LoadLibraryW(L"python3.dll") || LoadLibraryA("xpython3.dll");
}
C
    x86_64-w64-mingw32-gcc -shared -nostdlib -s -Wl,-e,0 -o runs.dll late.c -lkernel32
    run inspect runs.dll
    check names_in_text_are_told 0 'mentions  python3.dll at 0x' "KERNEL32.dll: 3 by name; stays: the system's"
    [ "$(grep -c 'python3.dll at' out)" = 1 ]
    say $? but_not_parts_of_longer_ones
    run inspect --json --libpython "$api" runs.dll
    jq -e '.[0] | (.mentions | map(.name)) == ["python311.dll", "python3.dll"] and .imports[0].kind == "system"
        and .unfit == null and .static_crt == false and .relocatable' out >/dev/null
    say $? json_has_the_facts
    at=$(jq -r '.[0].mentions[1].offset' out)
    [ "$(dd if=runs.dll bs=1 skip="$at" count=6 status=none | tr -d '\0')" = pyt ]
    say $? and_where_they_are
    run inspect runs.dll
    check inspect_tells_the_same_place 0 "python3.dll at 0x$(printf %x "$at")\$"
    run copy runs.dll ctx2
    run verify ctx2
    check verify_notes_them 0 'runs-.*\.dll: note: its original has the name python311.dll at 0x' 'all sound'
    run verify --json ctx2
    jq -e '.ok and .findings == [] and (.notes | map(.name)) == ["python311.dll", "python3.dll"]' out >/dev/null
    say $? in_json_too
else
    skip names_in_text_are_told 'there is no x86_64-w64-mingw32-gcc'
fi
for n in 4 63 200 1000; do
    head -c "$n" "$x64/ext.dll" >"cut$n.dll"
    run copy "cut$n.dll" ctx2
    check "cut_to_${n}_bytes_is_refused" 1 "cut$n.dll"
done

finish
