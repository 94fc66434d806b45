#!/bin/bash
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }

run inspect libtoyapi.so toyext.so
check inspects_two_files 0 'exports 0 symbols' 'imports 1 symbol,.*: Py_Unknown' '^  id +libtoyapi.so.1$' \
    '^  TLS +16 bytes for each thread'
build_id=$(readelf -n toyext.so | sed -n 's/.*Build ID: //p')
run inspect toyext.so
[ -z "$build_id" ] || grep -q "build id  $build_id" out
say $? build_id_is_readelfs

# The layout, of a file in which nothing depends on the machine or compiler.
cc -shared -fPIC -nostdlib -Wl,--build-id=none -Wl,-rpath,'$ORIGIN/../lib' -Wl,--enable-new-dtags \
    -o plain.so -x c - <<'C'
int Toy_Next(void);
int PyInit_plain(void);
int PyInit_plain(void) { return Toy_Next(); }
C
run inspect plain.so
sed -i '/^  format/d' out
cat >want <<'TXT'
plain.so
  id        none; extension modules need none, they are opened by path
  needed    none
  rpath     none
  runpath   $ORIGIN/../lib
  build id  none
  API       imports 0 symbols
            exports 1 symbol: PyInit_plain
  TLS       none
  lean      no: no section of code or constants is large enough
  flags     none that matter here
  hazards   none
TXT
same golden_layout out want
run inspect --symbols --libpython libtoyapi.so toyext.so
sed -n '/^  API/,/^  TLS/p' out >part
cat >want <<'TXT'
  API       imports 2 symbols
              Toy_Next
              Toy_counter
            exports 0 symbols
  TLS       16 bytes for each thread
TXT
same api_is_what_the_library_exports part want

run inspect --json --symbols --libpython libtoyapi.so toyext.so plain.so
jq -e 'length == 2 and .[0].file == "toyext.so" and .[0].bits == 64 and .[0].id == null
    and .[0].tls_size == 16 and .[0].api == {library: "libtoyapi.so", imported: 2, exported: 0,
        imports: ["Toy_Next", "Toy_counter"], exports: []}
    and .[1].runpath == "$ORIGIN/../lib" and .[1].needed == []
    and (.[1].flags | keys) == ["bind_now", "interp", "nodeflib", "nodelete", "static_tls",
        "symbolic", "textrel", "unique", "withheld"]' out >/dev/null
say $? json_has_the_facts

# Flags, compared with readelf.
flag() {
    local name=$1 pattern=$2
    shift 2
    if ! cc -shared -fPIC -o "flag.so" -x c "$@" flag.c 2>cc.err; then
        skip "flag_$name" "$(head -n 1 cc.err)"
        return
    fi
    run inspect flag.so
    check "flag_$name" 0 "$pattern"
}
echo 'int f(void); int f(void) { return 1; }' >flag.c
flag nodelete 'nodelete: ' -Wl,-z,nodelete
flag nodeflib 'nodeflib: ' -Wl,-z,nodefaultlib
flag symbolic 'symbolic: ' -Wl,-Bsymbolic
flag bind_now 'bind now: ' -Wl,-z,now
echo '__thread int t __attribute__((tls_model("initial-exec"))); int f(void); int f(void) { return t; }' >flag.c
flag static_tls 'static TLS: '
if c++ --version >/dev/null 2>&1; then
    echo 'template <class T> struct S { static int n; }; template <class T> int S<T>::n = 1;
        int f() { return S<int>::n; }' >u.cc
    c++ -shared -fPIC -fgnu-unique -o u.so u.cc
    run inspect --json u.so
    [ "$(jq '.[0].unique_symbols' out)" = "$(readelf --dyn-syms -W u.so | grep -c ' UNIQUE ')" ] &&
        [ "$(jq '.[0].flags.unique' out)" = true ]
    say $? unique_symbols_are_readelfs
else
    skip unique_symbols_are_readelfs 'there is no C++ compiler'
fi

# ---- hazards -------------------------------------------------------------------------------------

mkdir -p tree/sub
hazard() { # FILE SOURCE [FLAG...]
    echo "$2" | cc -shared -fPIC -nostdlib -fno-builtin -o "$1" "${@:3}" -x c -
}
hazard tree/tls.so '__thread char b[100] __attribute__((aligned(8), tls_model("initial-exec")));
    char *f(void); char *f(void) { return b; }'
hazard tree/sub/tls2.so '__thread char b[64] __attribute__((aligned(8), tls_model("initial-exec")));
    char *f(void); char *f(void) { return b; } extern char chdir[]; char *c = chdir;'
hazard tree/sub/calls.so 'extern char sigaction[], chdir[]; char *c[] = {sigaction, chdir};'
ln -s .. tree/sub/loop
ln -s tls.so tree/link.so
echo 'no library' >tree/text.so
printf '\177ELF' >tree/sub/torn.txt
cc -c -o tree/object.o flag.c
run inspect tree/tls.so
sed -n '/^  hazards/,$p' out >part
cat >want <<'TXT'
  hazards   static-tls: limits the number of contexts, to 16 (104 bytes, DF_STATIC_TLS)
              each copy takes that much of a block whose size is fixed when the process starts; GLIBC_TUNABLES=glibc.rtld.optional_static_tls=N makes room for N bytes of copies
TXT
same hazards_of_a_file part want
run inspect --contexts 17 tree/tls.so
check room_for_contexts 0 'for 17 contexts: GLIBC_TUNABLES=glibc.rtld.optional_static_tls=1768$'
run inspect --contexts 16 tree/tls.so
[ $rc = 0 ] && ! grep -q 'for 16' out
say $? no_room_is_asked_for_that_is_there
for n in 0 -1 x 10001 ''; do
    run inspect --contexts "$n" tree/tls.so
    check "contexts_'$n'" 2 'takes a number from 1 to 10000' || break
done
run inspect --contexts 20 tree
sed -i '/^              [^/t]/d' out
cat >want <<'TXT'
tree
  files     3 libraries
  hazards   static-tls: limits the number of contexts, to 9 (2 files, 168 bytes)
              tree/sub/tls2.so
              tree/tls.so
            signals: shared by all contexts (1 file)
              tree/sub/calls.so
            directory: shared by all contexts (2 files)
              threads that are not a context's own share the current directory: use absolute paths
              tree/sub/calls.so
              tree/sub/tls2.so
TXT
sed -i '/ the last handler/d' out
same hazards_of_a_tree out want
check torn_files_of_a_tree_are_told 1 'extisolate: tree/sub/torn.txt: '
rm tree/sub/torn.txt
run inspect --json --contexts 20 tree tree/tls.so
jq -e '.[0].directory == "tree" and .[0].files == 3
    and (.[0].hazards | map(.kind)) == ["static-tls", "signals", "directory"]
    and .[0].hazards[0] == {kind: "static-tls", outcome: "limits-contexts", count: 168, contexts: 9,
        tunables: "glibc.rtld.optional_static_tls=3360", advice: .[0].hazards[0].advice,
        files: ["tree/sub/tls2.so", "tree/tls.so"]}
    and .[0].hazards[2].count == 2 and .[0].hazards[2].outcome == "shared"
    and (.[1].hazards | map(.evidence)) == ["DF_STATIC_TLS"]' out >/dev/null
say $? json_has_the_hazards
# On arm64 TLS descriptors may take 512 of the 1664 bytes.
if command -v aarch64-linux-gnu-gcc >/dev/null; then
    mkdir arm
    for i in 1 2; do
        echo '__thread char room[100]; int f(int i); int f(int i) { return room[i]++; }' |
            aarch64-linux-gnu-gcc -shared -fPIC -nostdlib -ftls-model=initial-exec -x c -o arm/$i.so -
    done
    run inspect arm
    check a_tree_for_another_machine_has_its_room 0 'to 5 \(2 files, 208 bytes\)$'
else
    skip a_tree_for_another_machine_has_its_room 'no compiler for arm64'
fi
mkdir none
run inspect none
check hazards_of_an_empty_tree 0 'files     0 libraries' 'hazards   none'
for i in 1 2 3 4 5 6 7; do cp tree/sub/calls.so "none/$i.so"; done
run inspect none
check only_some_files_are_named 0 'none/5.so' 'and 2 more; --json lists all'

# needed, id and symbol counts of installed files, compared with readelf.
n=0 bad=0
for f in /usr/lib/python3*/lib-dynload/*.so /usr/lib/python3/dist-packages/numpy/*/*.so \
    /usr/lib/*-linux-gnu/lib[a-f]*.so.?; do
    [ -f "$f" ] || continue
    x inspect --json "$f" >one.json 2>>err || { bad=$((bad + 1)); continue; }
    readelf -dW "$f" >dyn
    jq -r '.[0].needed[]' one.json >a
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' dyn >b
    jq -r '.[0].id // empty' one.json >>a
    sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' dyn >>b
    cmp -s a b || { bad=$((bad + 1)); echo "    $f"; }
    n=$((n + 1))
    [ $n -lt 150 ] || break
done
[ $bad = 0 ] && [ $n -gt 0 ]
say $? "needed_and_id_are_readelfs_in_${n}_files"

# Names with control characters.
weird=$'we\nird\033[31m\tn\303\244me\342\200\256.so'
cp plain.so "$weird"
run inspect "$weird"
check control_characters_are_shown 0 '^we\\nird\\x1b\[31m\\tnäme\\u202e\.so$'
run inspect --json "$weird"
[ "$(jq -r '.[0].file' out)" = "$weird" ]
say $? json_keeps_the_name
bytes=$'b\377d.so'
cp plain.so "$bytes"
run inspect --json "$bytes"
[ "$(jq -r '.[0].file' out)" = 'b\xffd.so' ]
say $? json_of_a_name_that_is_not_utf8
cp plain.so -- -dash.so
run inspect -- -dash.so
check name_beginning_with_a_dash 0 '^-dash.so$'
run inspect plain.so missing.so libtoyapi.so
check one_missing_of_three 1 'extisolate: missing.so: .*No such file' '^libtoyapi.so$'
run inspect --json missing.so
[ $rc = 1 ] && [ "$(jq length out)" = 0 ]
say $? json_stays_json_on_failure
finish
