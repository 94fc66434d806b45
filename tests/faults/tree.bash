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
