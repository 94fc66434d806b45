# Makes, in the current folder, an extension that needs libouter, which needs libinner, and a libpython that
# needs libbase.  Sets `api` and `one`.
make_faults_tree() {
    mkdir -p tree/sub apidir
    echo 'int base(void); int base(void) { return 3; }' >base.c
    echo 'int base(void); int Toy_Next(void); int Toy_Next(void) { return base(); }' >api.c
    echo 'int inner(void); int inner(void) { return 1; }' >inner.c
    echo 'int inner(void); int outer(void); int outer(void) { return inner(); }' >outer.c
    echo 'int Toy_Next(void); int outer(void); void *PyInit_one(void);
void *PyInit_one(void) { static int n; n += Toy_Next() + outer(); return &n; }' >one.c
    api=$PWD/apidir/libpython3.11.so.1.0
    one=tree/one.cpython-311-x86_64-linux-gnu.so
    cc -shared -fPIC -o apidir/libbase.so.1 base.c -Wl,-soname,libbase.so.1 &&
        cc -shared -fPIC -o "$api" api.c -Wl,-soname,libpython3.11.so.1.0 apidir/libbase.so.1 -Wl,-rpath,'$ORIGIN' &&
        cc -shared -fPIC -o tree/libinner.so.1 inner.c -Wl,-soname,libinner.so.1 &&
        cc -shared -fPIC -o tree/libouter.so.1 outer.c -Wl,-soname,libouter.so.1 tree/libinner.so.1 -Wl,-rpath,'$ORIGIN' &&
        cc -shared -fPIC -o "$one" one.c tree/libouter.so.1 -Wl,-rpath,'$ORIGIN' &&
        cp "$one" tree/sub/one.so
}

# Runs SCRIPT.py on the program with the library of SHIM.c before libc's functions.
faults_by() { # SHIM SCRIPT ARGUMENT...
    local shim=$1 script=$2
    shift 2
    make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
    cc -shared -fPIC -O1 -o "$shim.so" "$ROOT/tests/faults/$shim.c" -ldl ||
        { echo 'not ok shim: it cannot be built'; exit 1; }
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
    python3 -I -S "$ROOT/tests/faults/$script.py" "$EXTISOLATE" "$T/$shim.so" "$T" \
        "$([ "${EXTI_ALL:-}" = 1 ] && echo all || echo some)" "$@"
}
