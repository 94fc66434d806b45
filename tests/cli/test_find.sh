#!/bin/bash
# Which libpython a new context gets without --libpython.
. "$(dirname "$0")/support.bash"

# A library that calls itself libpython, and an extension for it.
echo 'int Py_Answer(void); int Py_Answer(void) { return 42; }' >py.c
echo 'int Py_Answer(void); int PyInit_x(void); int PyInit_x(void) { return Py_Answer(); }' >ext.c
libpython() { # FOLDER VERSION
    mkdir -p "$1"
    cc -shared -fPIC -Wl,-soname,"libpython$2.so.1.0" -o "$1/libpython$2.so.1.0" py.c
}
extension() { mkdir -p "$(dirname "$1")" && cc -shared -fPIC -o "$1" ext.c "${@:2}"; }
python() { # FOLDER MAJOR MINOR FLAGS LIBDIR [NAME [IMPLEMENTATION]]
    mkdir -p "$1"
    cat >"$1/${6:-python3}" <<SH
#!/bin/sh
echo '{"name": "${7:-cpython}", "major": $2, "minor": $3, "flags": "$4", "exe": "$1/${6:-python3}",
  "libs": ["libpython$2.$3$4.so.1.0"], "dirs": ["$5"]}'
SH
    chmod +x "$1/${6:-python3}"
}
if ! libpython "$T/p399" 3.99 || ! extension x.cpython-399-x86_64-linux-gnu.so; then
    echo 'not ok toy: it cannot be built'
    exit 1
fi
libpython "$T/p399t" 3.99t
libpython "$T/p398" 3.98
python "$T/bin399" 3 99 '' "$T/p399"
python "$T/bin398" 3 98 '' "$T/p398"
python "$T/binboth" 3 98 '' "$T/p398"
python "$T/binboth" 3 99 '' "$T/p399" python3.99
python "$T/binpypy" 3 99 '' "$T/p399" python3 pypy
python "$T/binempty" 3 99 '' "$T/nowhere"
sys=/usr/bin:/bin
ext=x.cpython-399-x86_64-linux-gnu.so
cp $ext x.abi3.so
cp $ext x.so
cp $ext y.cpython-398-x86_64-linux-gnu.so
cp $ext x.cpython-399t-x86_64-linux-gnu.so

# found NAME EXPECTED FILE...: copies FILEs and checks which libpython came with them
found() {
    local name=$1 want=$2
    shift 2
    rm -rf ctx
    run copy --json "$@" ctx
    [ $rc = 0 ] && [ "$(jq -r .api_library.source out)" = "$want" ] &&
        [ "$(jq '.copies | length' out)" = $# ]
    say $? "$name" "expected $want"
}
PATH=$T/bin399:$sys found python3_on_PATH "$T/p399/libpython3.99.so.1.0" $ext
PATH=$T/bin398:$sys found python3_decides_for_abi3 "$T/p398/libpython3.98.so.1.0" x.abi3.so
PATH=$T/bin398:$sys found python3_decides_without_a_tag "$T/p398/libpython3.98.so.1.0" x.so
PATH=$T/binboth:$sys found pythonXY_when_python3_is_another "$T/p399/libpython3.99.so.1.0" $ext x.abi3.so
PATH=$sys LD_LIBRARY_PATH=/nowhere:$T/p399 found LD_LIBRARY_PATH "$T/p399/libpython3.99.so.1.0" $ext
PATH=$sys LD_LIBRARY_PATH=$T/p399:$T/p399t found free_threaded_is_another_abi \
    "$T/p399t/libpython3.99t.so.1.0" x.cpython-399t-x86_64-linux-gnu.so
PATH=$T/bin398:$sys LD_LIBRARY_PATH=$T/p399 found search_path_after_PATH \
    "$T/p399/libpython3.99.so.1.0" $ext
PATH=$T/binpypy:$sys LD_LIBRARY_PATH=$T/p399 found another_python_is_passed_over \
    "$T/p399/libpython3.99.so.1.0" $ext

libpython "$T/inst/lib" 3.99
extension "inst/lib/python3.99/site-packages/$ext"
PATH=$T/bin399:$sys found the_files_own_installation_first "$T/inst/lib/libpython3.99.so.1.0" \
    inst/lib/python3.99/site-packages/$ext
cp inst/lib/python3.99/site-packages/$ext inst/lib/python3.99/site-packages/x.abi3.so
PATH=$T/bin398:$sys found the_installations_version_for_abi3 "$T/inst/lib/libpython3.99.so.1.0" \
    inst/lib/python3.99/site-packages/x.abi3.so

libpython "$T/own/lib" 3.99
extension own/mod/x.so -L"$T/own/lib" -l:libpython3.99.so.1.0 -Wl,-rpath,'$ORIGIN/../lib'
PATH=$T/bin398:$sys found a_libpython_that_the_file_needs "$T/own/lib/libpython3.99.so.1.0" own/mod/x.so
extension own/mod/y.so -L"$T/own/lib" -l:libpython3.99.so.1.0
PATH=$T/bin399:$sys found a_needed_libpython_tells_the_version "$T/p399/libpython3.99.so.1.0" own/mod/y.so

# failed NAME PATTERN... -- FILE...
failed() {
    local name=$1 patterns=()
    shift
    while [ "$1" != -- ]; do
        patterns+=("$1")
        shift
    done
    shift
    rm -rf ctx
    run copy "$@" ctx
    check "$name" 1 "${patterns[@]}"
    [ ! -e ctx ]
    say $? "${name}_leaves_nothing"
}
PATH=$T/bin398:$sys failed none_of_the_version "extisolate: $ext: found no libpython3.99 for 64-bit x86-64" \
    "python3 on PATH \($T/bin398/python3\), which is CPython 3.98" \
    'python3.99 on PATH \(none' '/etc/ld.so.conf' 'apt-get install libpython3.99' \
    '--libpython PATH' -- $ext
PATH=$T/binempty:$sys failed python_without_shared_libpython \
    'which is CPython 3.99, but has no shared libpython' -- $ext
PATH=$T/bin399:$sys failed files_of_two_versions \
    'y.cpython-398-x86_64-linux-gnu.so: is built for CPython 3.98, but x.cpython-399' \
    'one CPython version: use a CTXDIR for each' -- $ext y.cpython-398-x86_64-linux-gnu.so
mkdir badbin
printf '#!/bin/sh\necho {nonsense\n' >badbin/python3
chmod +x badbin/python3
PATH=$T/badbin:$sys failed python_that_answers_nonsense 'none answers' -- $ext
printf '#!/bin/sh\nexit 1\n' >badbin/python3
PATH=$T/badbin:$sys failed python_that_fails 'none answers' -- $ext
printf '#!/bin/sh\nyes\n' >badbin/python3
PATH=$T/badbin:$sys failed python_that_never_ends 'none answers' -- $ext

# Windows files: libpython comes from the installation that contains them, on any host.
inputs=$(dirname "$EXTISOLATE")/pe_inputs
if "$ROOT/tests/pe_inputs/build.sh" "$inputs" && [ -f "$inputs/gnu-x64/ext.dll" ]; then
    mkdir -p win/Lib/site-packages/pkg win/DLLs env/Lib/site-packages flat win32/DLLs other/DLLs
    cp "$inputs/gnu-x64/python311.dll" win
    cp "$inputs/gnu-x64/ext.dll" win/Lib/site-packages/pkg/x.cp311-win_amd64.pyd
    cp "$inputs/gnu-x64/ext.dll" win/DLLs/x.pyd
    found a_pyd_in_site_packages "$T/win/python311.dll" win/Lib/site-packages/pkg/x.cp311-win_amd64.pyd
    found a_pyd_in_DLLs "$T/win/python311.dll" win/DLLs/x.pyd
    printf 'home = %s\r\nversion = 3.11.4\r\n' "$T/win" >env/pyvenv.cfg
    cp win/DLLs/x.pyd env/Lib/site-packages
    found a_pyd_of_a_virtual_environment "$T/win/python311.dll" env/Lib/site-packages/x.pyd
    cp win/DLLs/x.pyd win/python311.dll flat
    found a_pyd_beside_its_dll "$T/flat/python311.dll" flat/x.pyd
    if [ -f "$inputs/lld-x64/delayed.dll" ]; then
        cp "$inputs/lld-x64/delayed.dll" flat/late.pyd
        found a_pyd_that_loads_its_dll_late "$T/flat/python311.dll" flat/late.pyd
    fi
    printf 'LIBRARY python3.dll\nEXPORTS\n    PyModule_Create2\n' >python3.def
    sed 's/Py_Answer/PyModule_Create2/g' ext.c >abi3.c
    x86_64-w64-mingw32-dlltool -d python3.def -l libpython3.a &&
        x86_64-w64-mingw32-gcc -shared -nostdlib -Wl,-e,0 -o win/DLLs/abi3.pyd abi3.c libpython3.a
    say $? abi3_pyd
    cp win/python311.dll win/python312t.dll
    found a_pyd_of_the_stable_ABI "$T/win/python311.dll" win/DLLs/abi3.pyd
    cp flat/x.pyd other/DLLs/y.cp312-win_amd64.pyd
    cp flat/python311.dll other
    failed a_pyd_of_another_version 'no python312.dll for 64-bit x86-64' "$T/other, which" 'beside python.exe' \
        -- other/DLLs/y.cp312-win_amd64.pyd
    if [ -f "$inputs/gnu-x86/ext.dll" ]; then
        cp "$inputs/gnu-x86/ext.dll" win32/DLLs/x.pyd
        cp flat/python311.dll win32
        failed a_pyd_of_another_machine 'no python311.dll for 32-bit i386' -- win32/DLLs/x.pyd
    fi
else
    skip pyds 'there is no mingw-w64 to build them with'
fi

# The system's own libpython.
if [ -n "$DEBIAN_LIBPYTHON" ] && [ -n "$DEBIAN_NUMPY" ]; then
    PATH=$sys found debian_numpy_gets_debians_libpython "$(realpath "$DEBIAN_LIBPYTHON")" "$DEBIAN_NUMPY"
else
    skip debian_numpy_gets_debians_libpython 'no numpy and libpython of the system'
fi
finish
